"""Log lines: JSON where nobody looks, one way for everybody's lines, and silence inside somebody's program."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys

import pytest
import structlog

from penstock.logs import configure_logs

pytestmark = pytest.mark.usefixtures("kept_logs")


def test_our_lines_and_those_of_logging_are_json_alike() -> None:
    out = io.StringIO()
    configure_logs("info", stream=out)
    structlog.get_logger("penstock.worker").info("worker started", kinds=["greet"])
    structlog.get_logger("penstock.worker").debug("too small to tell")
    logging.getLogger("shop").warning("%d left", 3)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [(one["event"], one["level"], one["logger"]) for one in lines] == [
        ("worker started", "info", "penstock.worker"),
        ("3 left", "warning", "shop"),
    ]
    assert lines[0]["kinds"] == ["greet"]


def test_an_exception_is_one_line_too() -> None:
    out = io.StringIO()
    configure_logs("INFO", stream=out)
    try:
        raise ValueError("no such thing")
    except ValueError:
        structlog.get_logger("penstock").exception("it broke")
    [line] = out.getvalue().splitlines()
    assert "no such thing" in json.loads(line)["exception"]


class Terminal(io.StringIO):
    """What takes itself for one."""

    def isatty(self) -> bool:
        return True


def test_on_a_terminal_it_is_for_eyes() -> None:
    out = Terminal()
    configure_logs("INFO", stream=out)
    structlog.get_logger("penstock").info("worker started", kinds=["greet"])
    assert "worker started" in out.getvalue()
    assert not out.getvalue().startswith("{")


def test_a_traceback_on_a_terminal_keeps_the_variables_of_its_frames_to_itself() -> None:
    out = Terminal()
    configure_logs("INFO", stream=out)
    password = "opensesame"
    try:
        _open(password[:4], password[4:])
    except ValueError:
        structlog.get_logger("penstock").exception("it broke")
    assert "ValueError: no such door" in out.getvalue()
    assert "opensesame" not in out.getvalue()


def _open(*_: str) -> None:
    raise ValueError("no such door")


SCRIPT = """
import logging, sys
from penstock import Penstock
if len(sys.argv) > 1:
    logging.basicConfig(level=sys.argv[1], format="%(name)s: %(message)s", stream=sys.stdout)
app = Penstock("sqlite://")
app.kind("greet")(lambda item: "hello")
app.submit("greet")
app.drain()
"""


def run(*arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments], capture_output=True, text=True, check=True, timeout=60
    ).stdout


def test_inside_somebodys_program_nothing_is_printed_unless_they_ask() -> None:
    assert run() == ""
    assert "penstock.worker: worker started worker=" in run("INFO")
