"""Steps of a migration that running workers would not survive: they are taken only when nobody is at work."""

from __future__ import annotations

from sqlalchemy import Connection, inspect

from penstock.errors import ConfigurationError
from penstock.store.engine import Store
from penstock.store.peers import Peers
from penstock.store.placement import TablePlacement, placed_copy
from penstock.store.statement_cache import prepared
from penstock.store.statements.workers import busy_workers, live_workers

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
    dialect = placed_copy(connection.dialect, placement)
    if inspect(connection).has_table(placement.table("workers"), schema=placement.schema):
        ago = {"the_seconds_ago": -_ALIVE_SECONDS}
        for row in prepared(live_workers(store.dialect), dialect).run(connection, ago):
            there.setdefault(row.name, f"seen at {row.seen_at:%H:%M:%S}")
    for row in prepared(busy_workers(store.dialect), dialect).run(connection, {}):
        there.setdefault(str(row.locked_by), f"holds {row.items} items")
    at_work = [f"{name} ({why})" for name, why in sorted(there.items()) if name not in dead]
    if at_work:
        raise ConfigurationError(
            f"{step}, and that needs stopped workers; these are at work: {', '.join(at_work)}. Stop them (one that was "
            f"killed is forgotten after {_ALIVE_SECONDS:g} s, or when its leases have run out), then run "
            "'penstock migrate' again",
            code="SCHEMA_IN_USE",
        )
