"""Waiting for something that another process does and nobody announces."""

from __future__ import annotations

import time
from collections.abc import Callable

PATIENCE = 30.0


def eventually(happened: Callable[[], object], patience: float = PATIENCE) -> None:
    """Look again and again until it has happened; fail when that takes too long."""
    deadline = time.monotonic() + patience
    while not happened():
        assert time.monotonic() < deadline, f"it had not happened after {patience:g} s"
        time.sleep(0.01)
