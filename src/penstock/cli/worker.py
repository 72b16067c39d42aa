"""``penstock worker``."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.options import AppOption

if TYPE_CHECKING:
    from penstock.worker.worker import Worker

_CLOSING_SECONDS = 4.0


def worker(
    kind: Annotated[
        list[str] | None, typer.Option("--kind", metavar="KIND", help="Work on this kind only; may be repeated.")
    ] = None,
    app: AppOption = None,
) -> None:
    """Run jobs until SIGTERM or Ctrl-C.

    Then it finishes what is in hand, or hands it back after the grace (PENSTOCK_STOP_GRACE_SECONDS), and exits with 0;
    with 4 when something could not be handed back. A few seconds after the grace it ends whatever hangs.
    A second signal ends the program at once; what it held is taken over when its leases run out.

    \b
    penstock worker
    penstock worker --kind price-check
    penstock worker --app shop.jobs:app --kind price-check --kind stock-check
    """
    from penstock.cli.application import open_app
    from penstock.cli.process_exit import leave_threads_behind
    from penstock.errors import ConfigurationError
    from penstock.settings import load_settings
    from penstock.worker.interpreter import settle_interpreter

    with open_app(app, log_level=load_settings().log_level) as penstock:
        names = kind or [each.name for each in penstock.kinds]
        if not names:
            raise ConfigurationError("the app has no kinds, so there is nothing to work on", code="NO_KINDS")
        settle_interpreter()
        working = penstock.worker(kinds=names)
        code = run_until_told(
            working, f"worker {working.name} runs {', '.join(names)}", penstock.settings.stop_grace_seconds
        )
    leave_threads_behind(code)
    raise typer.Exit(code)


def run_until_told(working: Worker, greeting: str, grace: float) -> int:
    """Run a worker until the first signal, and stop it; the answer is the exit code."""
    from penstock.cli.process_exit import NOT_HANDED_BACK, leave_within, say
    from penstock.worker.worker import STOP_SECONDS

    stop = _until_told_to_stop()
    working.start()
    print(greeting, flush=True)
    stop.wait()
    say("stopping: what is in hand is finished or handed back; a second signal ends it at once")
    leave_within(grace + STOP_SECONDS + _CLOSING_SECONDS, NOT_HANDED_BACK)
    return 0 if working.stop() else NOT_HANDED_BACK


def _until_told_to_stop() -> threading.Event:
    """Set by the first signal; the second one ends the program where it stands."""
    stop = threading.Event()

    def on_signal(number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    return stop
