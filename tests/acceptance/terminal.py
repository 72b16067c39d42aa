"""The ``penstock`` program, in a scratch directory, as somebody at a terminal has it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from penstock import Penstock, load_settings
from tests.acceptance import many_commands, workshop

MANY = Path(str(many_commands.__file__))
PATIENCE = 60.0


@dataclass(frozen=True)
class Said:
    """What a command came to."""

    code: int
    out: str
    err: str


class Terminal:
    """A directory with the workshop app in it, and the program to use there."""

    def __init__(self, directory: Path, programs: Path) -> None:
        self.directory = directory
        self.program = programs / "penstock"
        self._python = programs / "python"
        shutil.copy(str(workshop.__file__), directory / "workshop.py")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PENSTOCK_", "DOCUMENTS_"))}
        self.environment = kept | {
            "PENSTOCK_APP": "workshop:app",
            "LOGNAME": "tester",
            "NO_COLOR": "1",
            "PYTHONFAULTHANDLER": "1",
        }
        self.environment.pop("COLUMNS", None)
        settings = load_settings(
            database_url=f"sqlite:///{directory}/penstock.db", files_directory=directory / "penstock-files"
        )
        self.app = workshop.register(Penstock(settings=settings))

    def run(self, *arguments: object, stdin: str | None = None, **environment: str) -> Said:
        """Run one command to its end."""
        ended = subprocess.run(
            [self.program, *map(str, arguments)],
            cwd=self.directory,
            env=self.environment | environment,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=PATIENCE,
            check=False,
        )
        return Said(ended.returncode, ended.stdout, ended.stderr)

    def run_each(self, *commands: Sequence[object], **environment: str) -> list[Said]:
        """Run commands one after the other in a single process, which is the quicker way to ask for many."""
        return self.run_each_in([(command, environment) for command in commands])

    def run_each_in(self, commands: Sequence[tuple[Sequence[object], dict[str, str]]]) -> list[Said]:
        """The same, each with an environment of its own."""
        asked = [[[str(one) for one in command], environment] for command, environment in commands]
        ended = subprocess.run(
            [self._python, MANY],
            cwd=self.directory,
            env=self.environment,
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=PATIENCE,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return [Said(*answer) for answer in json.loads(ended.stdout)]

    @contextmanager
    def running(self, *arguments: object, **environment: str) -> Iterator[subprocess.Popen[str]]:
        """Start a command; at the end of the block it is gone, one way or the other."""
        with subprocess.Popen(
            [self.program, *map(str, arguments)],
            cwd=self.directory,
            env=self.environment | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        ) as process:
            try:
                yield process
            except BaseException:
                process.kill()
                print("what ran meanwhile had said:", *process.communicate(), sep="\n")
                raise
            finally:
                process.kill()


def until(holds: Callable[[], bool], what: str) -> None:
    """Ask again and again, for a bounded time."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, f"waited {PATIENCE:g} s in vain until {what}"
        time.sleep(0.02)


def next_line(process: subprocess.Popen[str]) -> str:
    """The next line a running command prints; the test's own time limit bounds the wait."""
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")
