"""Runs the examples of README.md and docs/, and compares what they print with what the page shows.

The convention, for whoever writes a page:

- A page is one session: one scratch directory and one shell, in which its blocks run from top to bottom.
- A ``python`` block whose first line is ``# file: NAME`` is written to that file; every ``python`` block is then run.
  A ``text`` block right after it is what it prints.
- A ``console`` block has commands behind ``$ ``, each with what it prints (both streams) below it. Where nothing is
  shown, nothing is compared. A command must exit with 0, unless it ends with ``# exits with N``.
- ``…`` stands for any text in a line, and on a line of its own for any lines, or none.
- A command that ends with ``&`` runs on in the background, until the page kills it or ends. It is known by ``$!``: the
  numbers that an interactive shell gives its jobs are used again.
- ``<!-- not run: why -->`` before a block leaves it out. ``<!-- needs: postgresql -->`` anywhere gives the page a
  server: the address that the page shows, ``postgresql://penstock@db.example/penstock``, becomes that of the server.
  ``<!-- needs: kafka -->`` does the same for ``broker.example:9092``, with the topics of the recipes application.
  ``<!-- needs: redis -->`` does the same for ``redis://broker.example:6379/0``.
- The ports that a page shows become others, which are free: several pages, and several runs, are served at once.

The programs start quickly, from interpreters that have their modules loaded (:mod:`tests.fork_server.server`).

Shell blocks of any other name are refused, so that none is overlooked.
"""

from __future__ import annotations

import os
import pty
import re
import socket
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.sizes import LARGE

ROOT = Path(__file__).resolve().parents[2]
# What is generated into docs/reference are signatures and tables, not examples.
PAGES = sorted(
    path
    for path in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
    if ROOT / "docs" / "reference" not in path.parents
)
TOUR = ROOT / "docs" / "tour.md"
# The tour is typed at a terminal below.
PAGES_IN_A_PLAIN_SHELL = [path for path in PAGES if LARGE or path != TOUR]
SHOWN_URL = "postgresql://penstock@db.example/penstock"
SHOWN_BROKER = "broker.example:9092"
KAFKA_TOPICS = ("parse-requests", "parse-results")
SHOWN_REDIS = "redis://broker.example:6379/0"
_BLOCK = re.compile(r"(?:<!-- not run: (?P<why>[^>]+) -->\s*\n)?^```(?P<kind>\w*)\n(?P<body>.*?)^```$", re.M | re.S)
_PORT = re.compile(r"(?:--port |http\.server |127\.0\.0\.1:)(\d{4})\b")
_EXITS = re.compile(r"\s+# exits with (\d+)$")
_MARK = "-- the command exited with"


@dataclass(frozen=True)
class Step:
    """One command of a page, and what it should come to."""

    command: str
    shown: str = ""
    code: int = 0


def with_free_ports(page: str) -> str:
    """The page with other ports than it shows, the same wherever it shows the same."""
    for shown in set(_PORT.findall(page)):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            page = re.sub(rf"\b{shown}\b", str(probe.getsockname()[1]), page)
    return page


def steps_of(page: str, directory: Path) -> Iterator[Step]:
    """The commands of a page in their order; its files are written when it is their turn."""
    blocks = list(_BLOCK.finditer(page))
    for number, block in enumerate(blocks):
        kind, body = block["kind"], block["body"]
        assert kind not in ("sh", "bash", "shell"), "write commands in a console block, behind '$ '"
        if block["why"]:
            continue
        if kind == "python":
            named = re.match(r"# file: (\S+)\n", body)
            path = directory / (named[1] if named else f"example_{number}.py")
            path.write_text(body, encoding="utf-8")
            follower = blocks[number + 1] if number + 1 < len(blocks) else None
            follows = follower and follower["kind"] == "text" and not page[block.end() : follower.start()].strip()
            yield Step(f"python {path.name}", follower["body"] if follower and follows else "")
        elif kind == "console":
            yield from _commands(body)


def _commands(body: str) -> Iterator[Step]:
    for part in re.split(r"^\$ ", body, flags=re.M)[1:]:
        command, _, shown = part.partition("\n")
        exits = _EXITS.search(command)
        yield Step(_EXITS.sub("", command), shown, int(exits[1]) if exits else 0)


def matches(shown: str, printed: str) -> bool:
    """Is what was printed what the page shows?"""
    pattern = "".join(
        "(?:[^\n]*\n)*?" if line == "…" else "[^\n]*?".join(re.escape(part) for part in line.split("…")) + " *\n"
        for line in shown.rstrip("\n").split("\n")
    )
    return re.fullmatch(pattern, printed.rstrip("\n") + "\n") is not None


class Shell:
    """One bash, which is handed a command at a time."""

    NOTICE = re.compile(r"bash: line \d+: +\d+ (Killed|Terminated)")

    def __init__(self, directory: Path, environment: dict[str, str]) -> None:
        self._process: subprocess.Popen[Any] = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=directory,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
        )

    def run(self, command: str) -> tuple[int, str]:
        """What a command exits with, and what it prints."""
        if command.endswith("&"):
            command = f"{command.removesuffix('&')} >>background.log 2>&1 </dev/null &"
        # Not in a subshell: a page may set variables. Commands get no standard input, for that is where we write.
        self._write(f"{command}\nset -- $?; echo; echo '{_MARK}' $1\n")
        printed: list[str] = []
        for line in self._lines():
            if line.startswith(_MARK):
                return int(line.removeprefix(_MARK)), "".join(printed).removesuffix("\n")
            if not self.NOTICE.match(line):
                printed.append(line)
        raise AssertionError(f"the shell ended in {command!r}: {''.join(printed)}")

    def _write(self, text: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(text)
        self._process.stdin.flush()

    def _lines(self) -> Iterator[str]:
        assert self._process.stdout is not None
        yield from iter(self._process.stdout.readline, "")

    def close(self) -> None:
        """End what runs in the background, and the shell."""
        self.run("kill $(jobs -p) 2>/dev/null; wait")
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)
        assert self._process.stdout is not None
        self._process.stdout.close()


class InteractiveShell(Shell):
    """One bash on a terminal, as somebody who types has it: with job control, and programs that see a terminal."""

    NOTICE = re.compile(r"\[\d+\]")

    def __init__(self, directory: Path, environment: dict[str, str]) -> None:
        self._terminal, slave = pty.openpty()
        attributes = termios.tcgetattr(slave)
        attributes[3] &= ~termios.ECHO
        termios.tcsetattr(slave, termios.TCSANOW, attributes)
        self._process = subprocess.Popen(
            ["setsid", "--ctty", "bash", "--noprofile", "--norc", "--noediting", "-i"],
            cwd=directory,
            env=environment | {"PS1": "", "PS2": ""},
            stdin=slave,
            stdout=slave,
            stderr=slave,
        )
        os.close(slave)

    def _write(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def _lines(self) -> Iterator[str]:
        with suppress(OSError), open(self._terminal, encoding="utf-8", closefd=False) as lines:
            yield from iter(lines.readline, "")  # the terminal of an ended session answers with an error

    def close(self) -> None:
        self.run("kill $(jobs -p) 2>/dev/null; wait")
        self._write("exit\n")
        self._process.wait(timeout=60)
        os.close(self._terminal)


@pytest.mark.timeout(400)
@pytest.mark.parametrize("path", PAGES_IN_A_PLAIN_SHELL, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_examples_do_what_the_page_says(path: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    page = with_free_ports(path.read_text(encoding="utf-8"))
    if "<!-- needs: postgresql -->" in page:
        page = page.replace(SHOWN_URL, request.getfixturevalue("postgres_url"))
    if "<!-- needs: kafka -->" in page:
        broker = request.getfixturevalue("kafka_broker")
        broker.create_topics(*KAFKA_TOPICS, *(f"{topic}-dead-letters" for topic in KAFKA_TOPICS))
        page = page.replace(SHOWN_BROKER, broker.address)
    if "<!-- needs: redis -->" in page:
        page = page.replace(SHOWN_REDIS, request.getfixturevalue("redis_broker").url)
    shell = Shell(tmp_path, environment(request.getfixturevalue("programs")))
    try:
        for step in steps_of(page, tmp_path):
            code, printed = shell.run(step.command)
            assert code == step.code, f"$ {step.command}\n{printed}"
            if step.shown.strip():
                assert matches(step.shown, printed), f"$ {step.command}\nprinted:\n{printed}\nshown:\n{step.shown}"
    finally:
        shell.close()


def environment(programs: Path) -> dict[str, str]:
    """What the commands of a page are run with."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PENSTOCK_", "DOCUMENTS_"))}
    binaries = os.pathsep.join([str(programs), str(Path(sys.executable).parent), kept["PATH"]])
    return kept | {"PATH": binaries, "NO_COLOR": "1", "LOGNAME": "tester", "PYTHONUNBUFFERED": "1"}


@pytest.mark.timeout(400)
def test_the_tour_goes_as_it_says_for_somebody_who_types_it(tmp_path: Path, programs: Path) -> None:
    """What commands print on a terminal is drawn there; each must succeed, and the last job must be done."""
    shell = InteractiveShell(tmp_path, environment(programs))
    try:
        for step in steps_of(with_free_ports(TOUR.read_text(encoding="utf-8")), tmp_path):
            code, printed = shell.run(step.command)
            assert code == step.code, f"$ {step.command}\n{printed}"
        assert shell.run("penstock show $id --json | grep -c '\"succeeded\"'")[1].strip() != "0"
    finally:
        shell.close()


@pytest.mark.parametrize(
    ("shown", "printed", "fits"),
    [
        ("a … c\n", "a b c\n", True),
        ("…\nlast\n", "last\n", True),
        ("…\nlast\n", "first\nsecond\nlast\n", True),
        ("first\n…\nlast\n", "first\nlast not\n", False),
        ("a.c\n", "abc\n", False),
    ],
)
def test_an_ellipsis_stands_for_anything_and_nothing_else_does(shown: str, printed: str, fits: bool) -> None:
    assert matches(shown, printed) is fits
