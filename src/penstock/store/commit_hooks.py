"""Doing something once a caller's own transaction has committed, and not at all when it is taken back.

SQLAlchemy's ``commit`` event comes before the COMMIT: a worker woken by it would look for a job that nobody can see
yet, and a line in the log would tell of a change that a failing COMMIT takes back. There is no event afterwards. But
every COMMIT and ROLLBACK that SQLAlchemy makes, for Core and for an ORM session, when a connection is closed and when
the pool takes it back, is a call of ``commit`` or ``rollback`` of the pool's proxy for the driver's connection
(``Connection.connection``). So the hooks are kept by that proxy, which lives until the connection is given back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection

Hook = Callable[[], None]
_HOOKS = "_penstock_commit_hooks"


def call_after_commit(connection: Connection, hook: Hook) -> None:
    """Call ``hook`` when the transaction that is open on ``connection`` has committed."""
    proxy: Any = connection.connection
    hooks: list[Hook] | None = vars(proxy).get(_HOOKS)
    if hooks is None:
        hooks = vars(proxy)[_HOOKS] = []
        _follow(proxy, hooks)
    hooks.append(hook)


def _follow(proxy: Any, hooks: list[Hook]) -> None:
    commit, rollback = proxy.commit, proxy.rollback

    def take() -> list[Hook]:
        due = hooks.copy()
        hooks.clear()
        return due

    def commit_and_call() -> None:
        due = take()
        commit()
        for hook in due:
            hook()

    def rollback_and_forget() -> None:
        take()
        rollback()

    proxy.commit, proxy.rollback = commit_and_call, rollback_and_forget
