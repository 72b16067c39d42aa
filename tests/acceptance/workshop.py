"""An app for the command line's tests; it is copied into a scratch directory and named with PENSTOCK_APP."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from penstock import ItemContext, JobContext, Penstock, Permanent


def greet(item: ItemContext) -> str:
    """Say hello."""
    return f"hello {item.input['name']}"


def refuse(item: ItemContext) -> None:
    """Fail for good."""
    raise Permanent("closed on Mondays", code="CLOSED")


class Squares:
    """Square numbers; three is not liked until the file 'better' is there."""

    def process(self, item: ItemContext) -> Any:
        """Square one, or give a text back."""
        if item.input == 3 and not Path("better").exists():
            raise Permanent("=three is not liked", code="THREE")
        return item.input if isinstance(item.input, str) else item.input**2

    def finalize(self, job: JobContext) -> dict[str, int]:
        """How many there were."""
        return {"squares": job.progress.done}


def patient(item: ItemContext) -> str:
    """Wait until somebody writes the file 'go', and stop when told to."""
    Path("started").touch()
    while not Path("go").exists():
        item.check()
        threading.Event().wait(0.01)
    return "gone"


def stubborn(item: ItemContext) -> str:
    """Wait for the file 'go', whatever anybody says."""
    Path("started").touch()
    while not Path("go").exists():
        threading.Event().wait(0.01)
    return "gone"


def register(app: Penstock) -> Penstock:
    """Make the kinds known."""
    app.kind("greet")(greet)
    app.kind("refuse")(refuse)
    app.kind("squares", reprocess=True)(Squares)
    app.kind("patient", retries=0)(patient)
    app.kind("stubborn", retries=0)(stubborn)
    return app


app = register(Penstock())
nothing = Penstock()
number = 7
