"""What ``penstock serve`` serves in the bench: the database of ``PENSTOCK_DATABASE_URL``, and its one kind."""

from __future__ import annotations

from typing import Any

from benches.workload import KIND, RESULT
from penstock import Penstock

app = Penstock()


@app.kind(KIND)
async def noop(_item: Any) -> dict[str, str]:
    """Nothing: nobody works here."""
    return RESULT
