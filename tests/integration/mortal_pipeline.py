"""A worker process that takes in a table until it is killed: ``python -m tests.integration.mortal_pipeline URL``."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penstock import ItemContext, JobContext, Penstock, Planned, load_settings
from penstock.ingest import TableShape, open_table, table_limits


def build(url: str) -> Penstock:
    """The same application in every process. Leases are long: the next worker knows by itself who has died.

    A row takes a moment: most of a table is still to be processed when the last row is planned.
    """
    app = Penstock(
        settings=load_settings(
            database_url=url, heartbeat_seconds=0.2, poll_seconds=0.2, sweep_seconds=0.2, ingest_max_rows=2_000
        )
    )

    @app.kind("table", concurrency=8)
    class Table:
        def plan(self, job: JobContext, after: int) -> Iterator[Planned]:
            params: Any = job.params
            table = open_table(Path(params["file"]), TableShape.from_json(params["shape"]), table_limits(app.settings))
            for row in table.rows(after):
                yield Planned({"row": row.number, "cells": row.cells}, {"sku": row.cells[0]})

        async def process(self, item: ItemContext) -> int:
            given: Any = item.input
            await asyncio.sleep(0.005)
            return int(given["row"])

    return app


def main() -> None:
    """Work until killed."""
    app = build(sys.argv[1])
    print("working", flush=True)
    app.worker().run(threading.Event())


if __name__ == "__main__":
    main()
