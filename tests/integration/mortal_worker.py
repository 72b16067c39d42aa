"""A worker process that the kill test starts and kills: ``python mortal_worker.py URL FINALIZED_LOG``."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from pathlib import Path

from penstock import ItemContext, JobContext, Penstock, load_settings


def build(url: str, log: Path) -> Penstock:
    """The same application in every process; leases are short so that the dead are noticed soon."""
    settings = load_settings(
        database_url=url, heartbeat_seconds=0.2, sweep_seconds=0.2, poll_seconds=0.5, lock_floor_ms=1_000, claim_max=250
    )
    app = Penstock(settings=settings)

    @app.kind("flow", concurrency=8)
    class Flow:
        async def process(self, item: ItemContext) -> int:
            await asyncio.sleep(0.005)  # the work: long enough that a kill always finds some in hand
            return int(item.input) * 2

        def finalize(self, job: JobContext) -> int:
            with log.open("a") as out:
                out.write(f"{os.getpid()} {job.run}\n")
            return sum(job.results())

    return app


def main() -> None:
    """Work until killed."""
    app = build(sys.argv[1], Path(sys.argv[2]))
    print("working", flush=True)
    app.worker().run(threading.Event())


if __name__ == "__main__":
    main()
