"""A row that kills its worker, under a supervisor that starts another: it fails alone, and all others are done."""

from __future__ import annotations

import os
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from sqlalchemy import select

from penstock import ItemStatus, JobState, Penstock
from penstock.lifecycle.transitions import RESCUE
from penstock.store.tables import job_items
from penstock.testing.invariants import violations
from tests.integration import poisoned as program
from tests.integration.poisoned import POISON

ROWS = 1_000
NEIGHBOURS = 200
PATIENCE = 100.0
POLL = 0.05
CLI = ["penstock", "worker", "--app", "tests.integration.poisoned:app"]
EMBEDDED = ["python", program.__file__]


class Supervisor:
    """Starts a worker again whenever it has died."""

    def __init__(self, command: list[str], url: str, suspect_deaths: int, log: Path) -> None:
        self._command = command
        self._environment = os.environ | {
            "PENSTOCK_DATABASE_URL": url,
            "PENSTOCK_SUSPECT_DEATHS": str(suspect_deaths),
        }
        self._log = log
        self.deaths = 0
        self._process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        with self._log.open("a") as log:
            return subprocess.Popen(self._command, stdout=log, stderr=log, env=self._environment)

    def look(self) -> None:
        """Is it dead? Then another."""
        code = self._process.poll()
        if code is not None:
            assert code == -9, self._log.read_text()
            self.deaths += 1
            self._process = self._started()

    def stop(self) -> None:
        """The end."""
        self._process.kill()
        self._process.wait()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("migrated_url", "command", "suspect_deaths", "deaths"),
    [("sqlite", CLI, 5, 5), ("postgresql", EMBEDDED, 2, 4)],
    indirect=["migrated_url"],
    ids=["in a process of its own", "alone in its worker"],
)
def test_a_poisonous_row_fails_alone(
    migrated_url: str, command: list[str], suspect_deaths: int, deaths: int, tmp_path: Path, programs: Path
) -> None:
    app = Penstock(migrated_url)
    app.system.migrate()
    app.kind("rows", backoff="1ms fixed")(lambda item: item.input)
    app.kind("neighbour", backoff="1ms fixed")(lambda item: item.input)
    poisoned = app.submit("rows", items=range(1, ROWS + 1)).job
    beside = app.submit("rows", items=range(1, POISON)).job
    other = app.submit("neighbour", items=range(NEIGHBOURS)).job
    supervisor = Supervisor(
        [str(programs / command[0]), *command[1:]], migrated_url, suspect_deaths, tmp_path / "workers.log"
    )
    deadline = time.monotonic() + PATIENCE
    try:
        while not all(app.jobs.get(one.id).finished for one in (poisoned, beside, other)):
            assert time.monotonic() < deadline, f"{app.jobs.get(poisoned.id).progress} after {supervisor.deaths} deaths"
            supervisor.look()
            time.sleep(POLL)
    finally:
        supervisor.stop()
    item = job_items.c
    rows = app.in_transaction(
        lambda one: list(one.execute(select(*item).where(item.job_id == poisoned.id).order_by(item.position))),
        reads=True,
    )
    assert Counter(row.status for row in rows) == {ItemStatus.DONE.value: ROWS - 1, ItemStatus.ERROR.value: 1}
    poison = rows[POISON - 1]
    assert (poison.status, poison.error_code, poison.killed_by) == ("ERROR", "WORKER_CRASH", "worker_crash")
    assert {row.attempts for row in rows} == {1}, "a death used up a try"
    assert supervisor.deaths == deaths
    assert poison.deaths == deaths
    done = app.jobs.get(poisoned.id)
    assert (done.state, done.progress.processed, done.progress.failed) == (JobState.SUCCEEDED, ROWS, 1)
    said = [line for line in app.jobs.history(poisoned.id) if line.from_state is RESCUE.target is line.to_state]
    assert len(said) == done.deaths
    assert all("no try is used up" in str(line.reason) for line in said)
    for job in (beside, other):
        ended = app.jobs.get(job.id)
        assert (ended.state, ended.progress.failed) == (JobState.SUCCEEDED, 0)
    assert app.system.count_worker_deaths() == supervisor.deaths
    assert violations(app.store) == []
    app.close()
