"""A terminal for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.terminal import Terminal


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    """The program in an empty directory with an embedded database."""
    one = Terminal(tmp_path)
    yield one
    one.app.close()
