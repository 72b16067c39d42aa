"""A table taken in and worked off by a process that is killed again and again, as it plans and as it processes."""

from __future__ import annotations

import random
import subprocess
import threading
import time
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import func, select

from penstock import ItemStatus, JobState, Penstock
from penstock.ingest import look_at_file, table_limits
from penstock.lifecycle import ItemRole
from penstock.store.tables import job_items
from penstock.testing.invariants import violations
from tests.integration import mortal_pipeline
from tests.integration.mortal_pipeline import build
from tests.sizes import size

PATIENCE = 600.0
POLL = 0.005
PLANNING, PROCESSING = 0.2, 0.2
"""How far into its stretch of the rows a kill may fall."""


class Mortal:
    """A worker process; one that is killed is replaced."""

    def __init__(self, programs: Path, url: str, log: Path) -> None:
        self._command = [str(programs / "python"), mortal_pipeline.__file__, url]
        self._log = log
        self._process = self._started()

    def _started(self) -> subprocess.Popen[str]:
        with self._log.open("a") as log:
            return subprocess.Popen(self._command, stdout=subprocess.PIPE, stderr=log, text=True)

    def kill(self) -> None:
        """SIGKILL."""
        process = self._process
        assert process.poll() is None, self._log.read_text()
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()

    def replace(self) -> None:
        """Another one."""
        self._process = self._started()


def so_far(app: Penstock, job_id: UUID) -> tuple[int, int]:
    """How many rows are planned, and how many processed."""
    progress = app.jobs.get(job_id).progress
    return progress.total, progress.processed


def write_table(path: Path, rows: int) -> None:
    """A table whose rows can be told apart."""
    with path.open("w") as out:
        out.write("sku,title\n")
        out.writelines(f'A-{number},"article {number}, the best"\n' for number in range(1, rows + 1))


def whole_rows(app: Penstock, job_id: UUID) -> list[Any]:
    """All rows of a job as they are in the database."""
    item = job_items.c
    question = (
        select(item.position, item.status, item.input_json, item.normalized_json, item.result_json)
        .where(item.job_id == job_id, item.role == ItemRole.ITEM.value)
        .order_by(item.position)
    )
    return app.in_transaction(lambda one: list(one.execute(question)), reads=True)


def counted(app: Penstock, job_id: UUID) -> dict[str, int]:
    """How many rows there are, by status, counted one by one."""
    item = job_items.c
    question = (
        select(item.status, func.count())
        .where(item.job_id == job_id, item.role == ItemRole.ITEM.value)
        .group_by(item.status)
    )
    return app.in_transaction(lambda one: {row[0]: int(row[1]) for row in one.execute(question)}, reads=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("migrated_url", "rows", "kills"),
    [("sqlite", size(6_000, 150_000), 6), ("postgresql", size(3_000, 20_000), 5)],
    indirect=["migrated_url"],
)
def test_a_table_is_taken_in_whole_whenever_the_worker_is_killed(
    migrated_url: str, rows: int, kills: int, tmp_path: Path, programs: Path
) -> None:
    chance = random.Random(rows)
    table = tmp_path / "table.csv"
    write_table(table, rows)
    app = build(migrated_url)
    app.system.migrate()
    shape = look_at_file(table, table.name, table_limits(app.settings)).shape
    assert shape is not None
    job = app.submit("table", {"file": str(table), "shape": shape.to_json()}).job
    deadline, pause = time.monotonic() + PATIENCE, threading.Event()
    met: list[tuple[int, int]] = []
    mortal = Mortal(programs, migrated_url, tmp_path / "workers.log")
    try:
        for number in range(kills):
            # All but two of the kills fall into the planning: more than the kind has tries.
            planning = number < kills - 2
            begun = number / (kills - 2) if planning else (number - kills + 2) / 4
            goal = rows * (begun + chance.random() * (PLANNING if planning else PROCESSING))
            before = sum(so_far(app, job.id))
            while True:
                planned, processed = so_far(app, job.id)
                reached = planned >= goal if planning else planned == rows and processed >= goal
                if reached and planned + processed > before:
                    break
                assert time.monotonic() < deadline, f"stuck at {planned, processed}"
                assert not app.jobs.get(job.id).finished, f"{app.jobs.get(job.id).last_error} after {number} kills"
                pause.wait(POLL)
            mortal.kill()
            met.append(so_far(app, job.id))
            assert met[-1] != (rows, rows), "the work was over before the last kill: nothing was proved"
            mortal.replace()
        done = app.jobs.wait(job.id, timeout=PATIENCE)
    finally:
        mortal.kill()
    assert any(planned < rows for planned, _ in met), f"no kill fell into the planning: {met}"
    assert any(planned == rows for planned, _ in met), f"no kill fell into the processing alone: {met}"
    assert done.state is JobState.SUCCEEDED, f"{done.state} with {done.progress}: {done.last_error}"
    progress = done.progress
    assert (progress.total, progress.processed, progress.failed, progress.not_found, progress.skipped) == (
        rows, rows, 0, 0, 0,
    )  # fmt: skip
    assert counted(app, job.id) == {ItemStatus.DONE.value: rows}
    wrong = [
        (number, found)
        for number, found in enumerate(whole_rows(app, job.id), start=1)
        if tuple(found)
        != (
            number,
            "DONE",
            {"row": number + 1, "cells": [f"A-{number}", f"article {number}, the best"]},
            {"sku": f"A-{number}"},
            number + 1,  # the headers are the table's first row
        )
    ]
    assert wrong[:5] == []
    assert violations(app.store) == []
    app.close()
