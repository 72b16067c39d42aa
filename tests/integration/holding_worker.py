"""A worker process that takes an item and never lets go: ``python -m tests.integration.holding_worker URL``."""

from __future__ import annotations

import asyncio
import sys
import threading

from penstock import ItemContext, Penstock, load_settings

LEASE_MS = 3_600_000


def build(url: str) -> Penstock:
    """Leases last an hour: nobody who waits for one to run out sees the end of a test."""
    settings = load_settings(
        database_url=url, heartbeat_seconds=0.05, sweep_seconds=0.05, lock_floor_ms=LEASE_MS, lock_cap_ms=LEASE_MS
    )
    return Penstock(settings=settings)


def main() -> None:
    """Hold what is claimed until killed."""
    app = build(sys.argv[1])

    @app.kind("hold")
    async def hold(item: ItemContext) -> None:
        print("holding", flush=True)
        await asyncio.Event().wait()

    app.worker().run(threading.Event())


if __name__ == "__main__":
    main()
