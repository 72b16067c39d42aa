"""Ours in a process of its own: an idle worker that prints when each handler starts.

``python -m benches.pick_up_worker URL``; ends when its stdin does.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from benches.workload import KIND, RESULT, be_quiet, working
from penstock import Penstock


def main(url: str) -> None:
    """Work until stdin ends."""
    be_quiet()
    app = Penstock(url)

    @app.kind(KIND)
    async def noop(_item: Any) -> dict[str, str]:
        now = time.monotonic_ns()
        print(now, flush=True)
        return RESULT

    with working(app) as worker:
        worker.signals.wait("idle")
        time.sleep(0.5)  # the ear for new work opens in a thread of its own, and says so to nobody outside
        print("ready", flush=True)
        sys.stdin.read()
    app.close()


if __name__ == "__main__":
    main(sys.argv[1])
