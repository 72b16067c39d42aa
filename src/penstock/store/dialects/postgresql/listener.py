"""Listening for PostgreSQL's notices, and proving that they arrive.

A listener that hears nothing looks the same as one that has nothing to hear: behind a pooler in transaction mode, on
another database than the one that is written to, behind a firewall that has forgotten the connection. So it sends a
notice to itself through the connections that everybody writes with: before it says that it listens, and whenever it has
heard nothing for a while.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import closing, suppress
from time import monotonic
from typing import TYPE_CHECKING

import psycopg

from penstock.store.dialects.dialect import CannotListen
from penstock.store.dialects.postgresql.engine import (
    BoundedConnection,
    connector_of,
    is_direct,
    server_process,
)
from penstock.store.notices import is_proof, new_proof

if TYPE_CHECKING:
    from penstock.store.engine import Store

_LOOK_SECONDS = 1.0
_PROVE_AFTER_SECONDS = 30.0
_PROVE_WITHIN_SECONDS = 5.0
_ROUNDS = 30
"""In a busy pool a round is deceived about one time in three: who waits for a session may get the same one again."""


class PostgreSQLListener:
    """One connection that listens."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._connector = connector_of(store.engine)
        self._link: BoundedConnection | None = None
        self._heard_at = 0.0
        self._proof: str | None = None
        self._sent_at = 0.0
        self._proven = False
        self._closing = False

    def listen(self, on_ready: Callable[[], None], on_notices: Callable[[frozenset[str] | None], None]) -> None:
        """Call ``on_ready`` once a notice has come through, and ``on_notices`` with each; until the connection ends."""
        with closing(self._connect()) as link:
            link.execute(f"LISTEN {self._store.placement.channel}")
            self._prove()
            while self._proof is not None:
                self._hear(link, on_notices)
            self._proven = True
            on_ready()
            while not self._closing:
                self._hear(link, on_notices)
                self._prove_again()

    def close(self) -> None:
        """End the wait for notices, from another thread."""
        self._closing = True
        link = self._link
        if link is not None:
            with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(link.fileno())) as wire:
                wire.shutdown(socket.SHUT_RDWR)

    def _connect(self) -> BoundedConnection:
        link = self._connector.connect_to_listen()
        try:
            if not is_direct(link) and not self._has_own_session(link):
                raise CannotListen(
                    "the pooler hands the server's sessions round (transaction mode), so that no notices arrive"
                )
        except BaseException:
            link.close()
            raise
        self._link = link
        return link

    def _has_own_session(self, link: BoundedConnection) -> bool:
        """Does the pooler keep a session for each client? LISTEN where it does not would be left to somebody else."""
        before = server_process(link)
        with closing(self._connector.connect_to_listen()) as other:
            for _ in range(_ROUNDS):
                with other.transaction():
                    # In transaction mode this takes the session that was just given back, or the next question another.
                    if server_process(other) == before or server_process(link) != before:
                        return False
        return True

    def _prove(self) -> None:
        self._proof, self._sent_at = new_proof(), monotonic()
        proof = self._proof
        self._store.write(
            lambda transaction: transaction.dialect.tell(
                transaction.connection, self._store.placement.channel, [proof]
            ),
            single_statement=True,
        )

    def _prove_again(self) -> None:
        """After a silence it is unknown whether there were no notices or the connection is dead."""
        if self._proof is None and monotonic() - self._heard_at > _PROVE_AFTER_SECONDS:
            self._prove()

    def _hear(self, link: BoundedConnection, on_notices: Callable[[frozenset[str] | None], None]) -> None:
        for notice in link.notifies(timeout=_LOOK_SECONDS, stop_after=1):
            self._heard_at = monotonic()
            if notice.payload == self._proof:
                self._proof = None
            elif not is_proof(notice.payload):
                on_notices(frozenset({notice.payload}))
        if self._proof is not None and monotonic() - self._sent_at > _PROVE_WITHIN_SECONDS:
            if self._proven:
                raise psycopg.OperationalError("the connection for notices is dead: our own does not arrive any more")
            raise CannotListen(self._why_not())

    def _why_not(self) -> str:
        if self._connector.listens_elsewhere:
            return (
                "a notice sent by PENSTOCK_DATABASE_URL does not arrive at PENSTOCK_LISTEN_URL: "
                "it leads to another database, or through a pooler"
            )
        return "a notice sent to ourselves does not arrive: there is a pooler between, or the connection is dead"
