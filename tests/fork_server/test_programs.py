"""A program from a warm server is, for whoever starts it, like one from an interpreter of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.fork_server.programs import LIBRARIES, warm_programs

# What a script may know of its process; the two ways to start it have to answer alike. PWD, OLDPWD
# and _ are the shell's notes to itself, and a warm program comes through one.
ABOUT_ITSELF = """
import atexit, multiprocessing.spawn, os, signal, sys, tempfile
atexit.register(print, "at exit")
print(__name__, __file__, sys.argv, sys.path, os.getcwd(), sys.executable)
print(sorted((name, os.environ[name]) for name in os.environ if name not in ("PWD", "OLDPWD", "_")))
print(tempfile.gettempdir(), os.umask(0))
for stream in (sys.stdin, sys.stdout, sys.stderr):
    print(stream.encoding, stream.errors, stream.line_buffering, stream.write_through, stream.isatty(), stream.fileno())
print(sorted((one.name, str(signal.getsignal(one))) for one in signal.Signals if one.name != "SIGCHLD"))
print(sorted(int(one) for one in os.listdir("/proc/self/fd"))[:-1], len(os.listdir("/proc/self/task")))
print(sorted(name for name in sys.modules if name.startswith("penstock")), sys.stdin.read())
print({key: value for key, value in multiprocessing.spawn.get_preparation_data("child").items() if key != "authkey"})
print("an error", file=sys.stderr)
sys.exit(7)
"""
WAITING = """
import signal, sys, time
signal.signal(signal.SIGUSR1, lambda *_: print("told", flush=True))
print("waiting", flush=True)
time.sleep(1000)
"""


def told(python: Path, script: Path, **environment: str) -> tuple[int, str, str]:
    ended = subprocess.run(
        [python, script.name, "an argument"],
        cwd=script.parent,
        env=os.environ | {"TMPDIR": str(script.parent)} | environment,
        input="what came in",
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    return ended.returncode, ended.stdout, ended.stderr


@pytest.fixture(scope="module")
def warm() -> Iterator[Path]:
    """One that has our own packages still to load, as a real interpreter has."""
    with warm_programs(LIBRARIES) as directory:
        yield directory / "python"


@pytest.mark.parametrize("environment", [{}, {"PYTHONUNBUFFERED": "1"}, {"PYTHONIOENCODING": "latin-1"}])
def test_a_script_finds_what_it_would_find_in_an_interpreter_of_its_own(
    warm: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    script = tmp_path / "about.py"
    script.write_text(ABOUT_ITSELF, encoding="utf-8")
    code, out, err = told(warm, script, **environment)
    assert (code, out, err) == told(Path(sys.executable), script, **environment)
    assert (code, err) == (7, "an error\n")
    assert out.endswith("at exit\n")


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_reaches_it_and_it_ends_the_same_way(warm: Path, tmp_path: Path, name: str) -> None:
    script = tmp_path / "waiting.py"
    script.write_text(WAITING, encoding="utf-8")
    ends = []
    for python in (warm, Path(sys.executable)):
        with subprocess.Popen([python, script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert process.stdout.readline() == "waiting\n"
            process.send_signal(signal.SIGUSR1)
            assert process.stdout.readline() == "told\n"
            process.send_signal(signal.Signals[name])
            ends.append((process.wait(timeout=60), process.stderr.read().strip().rpartition("\n")[2]))
    assert ends[0] == ends[1]
    assert ends[0][0] == -signal.Signals[name]


def test_it_does_not_outlive_who_started_it(tmp_path: Path) -> None:
    script = tmp_path / "waiting.py"
    script.write_text("import os\nprint(os.getpid(), flush=True)\n" + WAITING, encoding="utf-8")
    started = []

    def start(python: Path) -> subprocess.Popen[str]:
        process = subprocess.Popen([python, script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert process.stdout is not None
        started.append(psutil.Process(int(process.stdout.readline())))
        return process

    with warm_programs(["json"]) as directory:
        with start(directory / "python") as killed:
            killed.kill()
        assert psutil.wait_procs(started, timeout=60)[1] == [], "its launcher was killed, and it runs on"
        forgotten = start(directory / "python")
    with forgotten:
        assert psutil.wait_procs(started, timeout=60)[1] == [], "the tests are over, and it runs on"
