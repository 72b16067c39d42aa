"""``penstock demo``, in a pipe and on a terminal of 80 columns."""

from __future__ import annotations

import os
import pty
import re
import subprocess

from tests.acceptance.terminal import Terminal


def test_on_a_terminal_it_shows_a_table_that_fits_and_keeps_the_database(terminal: Terminal) -> None:
    ours, theirs = pty.openpty()
    environment = terminal.environment | {"TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
    with subprocess.Popen(
        [terminal.program, "demo", "--keep", "kept"],
        cwd=terminal.directory,
        env=environment,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        shown = _everything(ours)
        assert process.wait(timeout=60) == 0
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)
    assert re.search(r"penstock\.pdf +SUCCEEDED +0/3 ", text)
    assert "━" in text
    assert max(map(len, re.split(r"[\r\n]+", text))) <= 80
    listed = terminal.run("jobs", PENSTOCK_DATABASE_URL=f"sqlite:///{terminal.directory}/kept/penstock.db").out
    assert "slow-count  canceled" in re.sub(" +", "  ", listed)


def _everything(descriptor: int) -> str:
    """What is written until the other side is closed, which a pseudo-terminal calls an error."""
    parts = []
    try:
        while part := os.read(descriptor, 65_536):
            parts.append(part)
    except OSError:
        pass
    finally:
        os.close(descriptor)
    return b"".join(parts).decode()
