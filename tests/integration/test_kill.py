"""Worker processes killed with SIGKILL at random while twenty thousand items flow."""

from __future__ import annotations

import random
import subprocess
import threading
import time
from pathlib import Path

import pytest

from penstock import ItemStatus, JobState, Penstock
from penstock.testing.invariants import violations
from tests.integration import mortal_worker
from tests.integration.mortal_worker import build
from tests.sizes import size

ITEMS = size(4_000, 20_000)
KILLS = 8
PATIENCE = 300.0
POLL = 0.01


class Mortal:
    """A worker process that says when it has begun to work."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.is_working = threading.Event()
        self._listener = threading.Thread(target=self._listen)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        if self._process.stdout.readline().strip() == "working":
            self.is_working.set()

    def kill(self) -> None:
        """SIGKILL."""
        self._process.kill()
        self._process.wait()
        self._listener.join()
        assert self._process.stdout is not None
        self._process.stdout.close()


class Herd:
    """A few worker processes; one that is killed is replaced."""

    def __init__(self, programs: Path, url: str, log: Path, size: int) -> None:
        self._command = [str(programs / "python"), mortal_worker.__file__, url, str(log)]
        self._workers = [Mortal(self._command) for _ in range(size)]

    def kill_one(self, chance: random.Random) -> bool:
        """Kill one that is at work, and start another; False when none is at work yet."""
        at_work = [worker for worker in self._workers if worker.is_working.is_set()]
        if not at_work:
            return False
        victim = chance.choice(at_work)
        victim.kill()
        self._workers[self._workers.index(victim)] = Mortal(self._command)
        return True

    def stop(self) -> None:
        """The end of all of them."""
        for worker in self._workers:
            worker.kill()


def processed(app: Penstock, job_id: object) -> int:
    """How far the job is."""
    return app.jobs.get(job_id).progress.processed  # type: ignore[arg-type]


@pytest.mark.slow
def test_nothing_is_lost_or_done_twice_when_workers_are_killed(
    postgres_url: str, tmp_path: Path, programs: Path
) -> None:
    chance = random.Random(20_000)
    log = tmp_path / "finalized.log"
    app = build(postgres_url, log)
    app.system.migrate()
    job = app.submit("flow", items=range(ITEMS)).job
    herd = Herd(programs, postgres_url, log, size=2)
    deadline = time.monotonic() + PATIENCE
    pause = threading.Event()
    try:
        for number in range(KILLS):
            # Not too near to the end: who is not killed goes on meanwhile.
            goal = (number + chance.random()) * ITEMS * 0.7 / KILLS
            while processed(app, job.id) < goal or not herd.kill_one(chance):
                assert time.monotonic() < deadline, f"stuck at {processed(app, job.id):,} items"
                pause.wait(POLL)
            assert processed(app, job.id) < ITEMS, "the work was over before the last kill: nothing was proved"
        done = app.jobs.wait(job.id, timeout=PATIENCE)
    finally:
        herd.stop()
    assert done.state is JobState.SUCCEEDED, f"{done.state} with {done.progress}"
    assert (done.progress.total, done.progress.processed, done.progress.failed) == (ITEMS, ITEMS, 0)
    assert done.result == sum(range(ITEMS)) * 2
    assert len(log.read_text().splitlines()) == 1, "finalize ran more than once"
    positions: set[int] = set()
    after = 0
    while page := app.items.list(job.id, statuses=[ItemStatus.DONE], after=after):
        positions.update(item.position for item in page)
        after = page[-1].position
    assert positions == set(range(1, ITEMS + 1))
    lines = app.jobs.history(job.id)
    assert [one.to_state for one in lines if one.from_state is not one.to_state] == [
        JobState.QUEUED,
        JobState.RUNNING,
        JobState.SUCCEEDED,
    ]
    assert 0 < done.deaths == len(lines) - 3
    assert violations(app.store) == []
    app.close()
