"""A terminal for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.terminal import Terminal
from tests.fork_server.programs import REAL


@pytest.fixture
def terminal(tmp_path: Path, programs: Path) -> Iterator[Terminal]:
    """The program in an empty directory with an embedded database, in processes that had the libraries loaded."""
    one = Terminal(tmp_path, programs)
    yield one
    one.app.close()


@pytest.fixture
def real_terminal(tmp_path: Path) -> Iterator[Terminal]:
    """The same, each command in an interpreter of its own: the script as it is installed, and slower to start."""
    one = Terminal(tmp_path, REAL.parent)
    yield one
    one.app.close()
