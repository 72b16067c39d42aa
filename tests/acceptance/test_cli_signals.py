"""The programs that run on: what SIGTERM, a second one and Ctrl-C do to them."""

from __future__ import annotations

import json
import signal

from penstock import ItemStatus, JobState
from tests.acceptance.terminal import Terminal, next_line, until


def test_a_worker_takes_work_and_hands_back_what_it_cannot_finish(terminal: Terminal) -> None:
    started, go = terminal.directory / "started", terminal.directory / "go"
    with terminal.running("worker", PENSTOCK_STOP_GRACE_SECONDS="0.2") as worker:
        line = next_line(worker)
        assert line.startswith("worker ")
        assert line.endswith("runs greet, refuse, squares, patient, stubborn")
        waited = terminal.run("submit", "greet", '{"name": "world"}', "--wait")
        assert (waited.code, "hello world" in waited.out) == (0, True)
        job_id = terminal.run("submit", "patient").out.strip()
        until(started.exists, "the handler has started")
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(timeout=60) == 0
        assert "stopping" in next_line(worker)
        assert worker.stderr is not None
        logged = [json.loads(one) for one in worker.stderr.read().splitlines()]
        about_sqlite = [one for one in logged if one["event"].startswith("SQLite 3.")]  # said once, of some versions
        assert len(about_sqlite) <= 1
        assert [one["event"] for one in logged if one not in about_sqlite] == [
            "worker started", "start: running", "succeed: succeeded", "start: running", "worker stopped"
        ]  # fmt: skip
    job = terminal.app.jobs.list(kind="patient")[0]
    [item] = terminal.app.items.list(job.id)
    assert (item.status, item.locked_by) == (ItemStatus.PENDING, None)
    assert not job.finished
    go.touch()
    with terminal.running("worker", "--kind", "patient"):
        assert terminal.run("watch", job_id).code == 0
    assert terminal.app.jobs.get(job.id).result == "gone"


def test_a_second_signal_ends_a_worker_at_once(real_terminal: Terminal) -> None:
    with real_terminal.running("worker") as worker:
        next_line(worker)
        real_terminal.app.submit("stubborn")
        until((real_terminal.directory / "started").exists, "the handler has started")
        worker.send_signal(signal.SIGTERM)
        assert "a second signal" in next_line(worker)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(timeout=10) == 128 + signal.SIGTERM
    assert real_terminal.app.jobs.list(kind="stubborn")[0].state is JobState.RUNNING


def test_control_c_ends_a_watch_quietly_and_the_job_goes_on(terminal: Terminal) -> None:
    job = terminal.app.submit("greet", {"name": "a"}).job
    with terminal.running("watch", job.id) as watch:
        assert next_line(watch).endswith("queued")
        watch.send_signal(signal.SIGINT)
        assert watch.wait(timeout=60) == 130
        assert watch.stderr is not None
        assert "Traceback" not in watch.stderr.read()
    assert terminal.app.jobs.get(job.id).state is JobState.QUEUED


def test_a_watch_without_a_worker_says_so(terminal: Terminal) -> None:
    job = terminal.app.submit("greet", {"name": "a"}).job
    with terminal.running("watch", job.id) as watch:
        assert watch.stderr is not None
        assert watch.stderr.readline() == "no worker has taken it yet; start one with: penstock worker\n"
        terminal.app.drain()
        assert watch.wait(timeout=60) == 0


def test_control_c_ends_the_demo_quietly(terminal: Terminal) -> None:
    with terminal.running("demo", TMPDIR=str(terminal.directory)) as demo:
        while not next_line(demo).startswith("count-words: running"):
            assert demo.poll() is None
        demo.send_signal(signal.SIGINT)
        assert demo.wait(timeout=60) == 130
        assert demo.stderr is not None
        assert demo.stderr.read() == ""
    assert not list(terminal.directory.glob("penstock-demo-*")), "what was temporary is gone"


HANGING = """
import sys, threading, asyncio
from pathlib import Path
from penstock import Penstock

app = Penstock()
never = threading.Event()


@app.kind("thread")
def thread(item):
    threading.Thread(target=never.wait, name="left-behind", daemon=False).start()
    sys.stdout = None
    Path("thread").touch()
    never.wait()


@app.kind("loop")
async def loop(item):
    Path("loop").touch()
    never.wait()


@app.kind("classified", classify=lambda error: Path("classified").touch() or never.wait())
def classified(item):
    raise ValueError("no")
"""


def test_a_worker_ends_at_its_deadline_whatever_hangs(terminal: Terminal) -> None:
    (terminal.directory / "hanging.py").write_text(HANGING)
    settings = {
        "PENSTOCK_APP": "hanging:app",
        "PENSTOCK_STOP_GRACE_SECONDS": "0.1",
        "PENSTOCK_TIMEOUT_GRACE_SECONDS": "600",
    }
    names = ("thread", "loop", "classified")
    with terminal.running("worker", **settings) as worker:
        next_line(worker)
        for name in names:
            assert terminal.run("submit", name, PENSTOCK_APP="hanging:app").code == 0
        until(lambda: all((terminal.directory / name).exists() for name in names), "all of them hang")
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(timeout=60) == 0
        assert "stopping" in next_line(worker)
        assert next_line(worker) == "ending, with threads that still run: left-behind"
    for name in names:
        [job] = terminal.app.jobs.list(kind=name)
        [item] = terminal.app.items.list(job.id)
        assert (item.status, item.attempts, item.locked_by) == (ItemStatus.PENDING, 0, None)
