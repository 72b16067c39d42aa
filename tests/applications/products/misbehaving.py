"""What a library might do over a file; a child that calls one of these loads next to nothing for it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator


def end_itself(_: object) -> None:
    """Crash, as a decoder does."""
    os.kill(os.getpid(), signal.SIGSEGV)


def hang(_: object) -> None:
    """Never return."""
    threading.Event().wait()


def hang_after_a_row(_: object) -> Iterator[list[tuple[object, object]]]:
    """Give one row, and never another."""
    yield [({"row": 1, "cells": {}, "problem": "row 1: bad", "code": "BAD"}, {})]
    threading.Event().wait()
