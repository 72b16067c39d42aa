"""Steps of a migration that running workers would not survive: they are taken only when nobody is at work."""

from __future__ import annotations

from sqlalchemy import Connection, inspect

from penstock.errors import ConfigurationError
from penstock.store.engine import Store
from penstock.store.peers import Peers
from penstock.store.placement import TablePlacement
from penstock.store.queries.workers import busy_workers, live_workers

_ALIVE_SECONDS = 30.0
"""Workers sign in every ten seconds."""


def require_stopped_workers(
    connection: Connection, store: Store, peers: Peers, placement: TablePlacement, step: str
) -> None:
    """Refuse ``step`` while workers are there: alive by their socket, their sign of life or a lease.

    Our tables are where ``placement`` says. A worker that was killed on this machine is known by its socket, and not
    waited for.
    """
    dead = set(peers.dead())
    there = dict.fromkeys(peers.alive(), "it answers on this machine")
    transaction = store.transaction_on_tables_at(connection, placement)
    if inspect(connection).has_table(placement.table("workers"), schema=placement.schema):
        for live in live_workers(transaction, alive_within=_ALIVE_SECONDS):
            there.setdefault(live.name, f"seen at {live.seen_at:%H:%M:%S}")
    for busy in busy_workers(transaction):
        there.setdefault(str(busy.locked_by), f"holds {busy.items} items")
    at_work = [f"{name} ({why})" for name, why in sorted(there.items()) if name not in dead]
    if at_work:
        raise ConfigurationError(
            f"{step}, and that needs stopped workers; these are at work: {', '.join(at_work)}. Stop them (one that was "
            f"killed is forgotten after {_ALIVE_SECONDS:g} s, or when its leases have run out), then run "
            "'penstock migrate' again",
            code="SCHEMA_IN_USE",
        )
