"""How large the largest tests are: small enough for every run, or as large as their promise with ``TESTS_LARGE=1``."""

from __future__ import annotations

import os

LARGE = os.environ.get("TESTS_LARGE") == "1"


def size(usual: int, large: int) -> int:
    """One of the two."""
    return large if LARGE else usual
