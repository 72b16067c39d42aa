"""An app with one row that kills whoever runs it: as ``app`` for ``penstock worker``, or made in a function.

``python -m tests.integration.poisoned`` works until killed, with an app that no other process can find.
"""

from __future__ import annotations

import os
import signal
import threading

from penstock import ItemContext, Penstock, load_settings

POISON = 500


def build() -> Penstock:
    """The app; its database is the environment's. Leases are long: the next worker knows by itself who has died."""
    made = Penstock(settings=load_settings(heartbeat_seconds=0.2, poll_seconds=0.2, sweep_seconds=0.2))

    @made.kind("rows", backoff="1ms fixed", concurrency=2)
    def rows(item: ItemContext) -> int:
        if item.input == POISON:
            os.kill(os.getpid(), signal.SIGKILL)
        return int(item.input)

    @made.kind("neighbour", backoff="1ms fixed")
    async def neighbour(item: ItemContext) -> int:
        return int(item.input)

    return made


app = build()


def main() -> None:
    """Work until killed."""
    build().worker().run(threading.Event())


if __name__ == "__main__":
    main()
