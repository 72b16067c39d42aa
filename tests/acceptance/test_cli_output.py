"""What the program writes, and where: to pipes, devices, full disks, terminals of other encodings, and nowhere."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from sqlalchemy import update

from penstock.cli.as_json import print_lines, print_one
from penstock.store.tables import job_items
from tests.acceptance.terminal import Terminal

WORDS = "a sentence that says at some length what went wrong with this row, and what its owner may do about it " * 3


def test_items_in_a_pipe_keep_their_columns(terminal: Terminal) -> None:
    job = terminal.app.submit("squares", items=[3]).job
    terminal.app.drain()
    with terminal.app.store.engine.begin() as connection:
        connection.execute(update(job_items).values(last_error=WORDS))
    wide, narrow = terminal.run_each_in([(["items", str(job.id)], {}), (["items", str(job.id)], {"COLUMNS": "60"})])
    head, line = wide.out.splitlines()
    assert head.split() == ["position", "status", "attempts", "input", "result", "or", "error"]
    assert line.split()[:5] == ["1", "ERROR", "1", "3", "THREE:"]
    assert WORDS.strip() in line, "whoever reads a pipe cuts by himself"
    head, line = narrow.out.splitlines()
    assert head.startswith("position  status  attempts")
    assert line.split()[:3] == ["1", "ERROR", "1"]
    assert len(line) <= 60


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "ascii"])
def test_json_is_json_on_every_terminal(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    paper = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(paper, encoding=encoding, errors="backslashreplace"))
    print_one({"title": "café 😀"})
    print_lines([{"title": "café 😀"}])
    sys.stdout.flush()
    printed = paper.getvalue().decode(encoding)
    first, last = printed[: printed.index("}") + 1], printed[printed.index("}") + 1 :]
    assert json.loads(first) == json.loads(last) == {"title": "café 😀"}


def test_an_export_writes_to_devices_pipes_and_links_as_they_are(terminal: Terminal) -> None:
    job = terminal.app.submit("squares", items=[1]).job
    folder = terminal.directory
    (folder / "device").symlink_to("/dev/null")
    os.mkfifo(folder / "pipe")
    (folder / "target").write_text("old")
    (folder / "link").symlink_to("target")
    (folder / "new").symlink_to("not-yet")
    (folder / "items.part").write_text("precious")
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append((folder / "pipe").read_bytes()))
    reader.start()
    names = ("device", "pipe", "link", "new", "items")
    for said in terminal.run_each(*[["export", job.id, "-o", name] for name in names]):
        assert (said.code, said.err) == (0, "")
    reader.join()
    written = (folder / "items").read_bytes()
    assert json.loads(written)["position"] == 1
    assert read == [written]
    assert (folder / "pipe").is_fifo()
    assert (folder / "device").is_symlink()
    assert Path("/dev/null").is_char_device()
    assert (folder / "link").is_symlink()
    assert (folder / "target").read_bytes() == (folder / "not-yet").read_bytes() == written
    assert (folder / "items.part").read_text() == "precious"


def shell(terminal: Terminal, line: str) -> subprocess.CompletedProcess[str]:
    """A line of a shell, in which ``penstock`` is the program."""
    return subprocess.run(
        ["bash", "-c", f'penstock() {{ "{terminal.program}" "$@"; }}; set -o pipefail; {line}'],
        cwd=terminal.directory,
        env=terminal.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        pytest.param(
            "penstock export {id} > /dev/full", 2, "penstock: No space left on device (REFUSED_BY_SYSTEM)\n",
            id="a full disk",
        ),
        pytest.param(
            "penstock export {id} -o /dev/full", 2,
            "penstock: /dev/full cannot be written: No space left on device (FILE_NOT_WRITABLE)\n",
            id="a full disk, by its name",
        ),
        pytest.param(
            "penstock items {id} --after 99999999999999999999", 2,
            "penstock: after is 99999999999999999999; it must be a whole number from 0 to 2147483647 (OUT_OF_BOUNDS)\n",
            id="a number beyond 64 bits",
        ),
    ],
)  # fmt: skip
def test_what_the_system_refuses_is_one_line_and_no_traceback(
    terminal: Terminal, line: str, code: int, said: str
) -> None:
    job = terminal.app.submit("squares", items=["x" * 200_000]).job
    ended = shell(terminal, line.format(id=job.id))
    assert (ended.returncode, ended.stderr) == (code, said)


@pytest.mark.parametrize("command", ["export", "show"])
def test_a_pipe_whose_reader_has_seen_enough_is_no_error(terminal: Terminal, command: str) -> None:
    job = terminal.app.submit("squares", items=[1]).job
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run(
        [terminal.program, command, str(job.id)],
        cwd=terminal.directory, env=terminal.environment, stdout=writing, stderr=subprocess.PIPE, timeout=60,
        check=False,
    )  # fmt: skip
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (1, b"")


def test_a_program_without_streams_or_without_its_folder(real_terminal: Terminal) -> None:
    """In interpreters of their own: the quick ones cannot be started so."""
    real_terminal.app.submit("greet")
    silent = shell(real_terminal, "penstock jobs >&- && penstock jobs 2>&- <&-")
    assert (silent.returncode, silent.stderr) == (0, "")
    gone = shell(real_terminal, "mkdir gone && cd gone && rmdir ../gone && penstock jobs")
    refusal = "penstock: the working directory was removed: change into another one (DIRECTORY_GONE)\n"
    assert (gone.returncode, gone.stderr) == (2, refusal)
