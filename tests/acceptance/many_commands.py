"""Runs many command lines one after the other in one process: a fresh interpreter for each costs a second or two.

Reads a JSON list of ``[arguments, environment]`` from standard input and writes a list of ``[code, out, err]``. Each is
run by what the ``penstock`` program itself runs; what it imported from the scratch directory is forgotten afterwards.
"""

from __future__ import annotations

import io
import json
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from penstock.cli.program import run


def main() -> None:
    """One answer for each question."""
    answers = []
    for arguments, environment in json.load(sys.stdin):
        before = dict(os.environ)
        os.environ.update(environment)
        out, err = _Paper(), _Paper()
        with redirect_stdout(out), redirect_stderr(err):
            code = run(arguments)
        answers.append([code, out.written(), err.written()])
        os.environ.clear()
        os.environ.update(before)
        _forget_the_scratch_directory()
    json.dump(answers, sys.stdout)


class _Paper(io.TextIOWrapper):
    """A stream like a program's own, with the bytes below it."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", newline="", write_through=True)

    def written(self) -> str:
        """All of it."""
        below = self.buffer
        assert isinstance(below, io.BytesIO)
        return below.getvalue().decode()


def _forget_the_scratch_directory() -> None:
    here = str(Path.cwd())
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(here):
            del sys.modules[name]


if __name__ == "__main__":
    main()
