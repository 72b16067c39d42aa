"""What clients of the task-status design read and call: one truth in every field, and all of its addresses."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from penstock import ItemContext, Job, JobContext, Penstock, Permanent, Retryable
from penstock.errors import Killed, MemoryLimitExceeded, TimeLimitExceeded, WorkerCrashed
from penstock.http.jobs.report import job_status
from penstock.http.jobs.schemas import JobKilled, JobRerun, JobStatusResponse, WorkerHealth
from penstock.lifecycle import effective_status, outcomes
from penstock.lifecycle.job import Progress
from penstock.lifecycle.states import Actor, JobState, KilledBy, Phase, Work
from penstock.operations.job_report import JobReport
from penstock.store.engine import Store
from penstock.testing.drive import Workbench
from tests.http.conftest import SECRET, Served, on_sqlite, serving
from tests.http.shapes import read_as
from tests.http.test_live import events
from tests.on_store import OnStore
from tests.properties.engine_kinds import engine_kinds

PATIENCE = 30.0
Serve = Callable[..., Served]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class DatabaseConnectionError(Exception):
    """An error of somebody's own."""


def ended(app: Penstock, kind: str, **options: Any) -> UUID:
    """A job of the kind that is over."""
    job = app.submit(kind, {}, owner="ada", **options).job
    done = app.jobs.wait(job.id, timeout=PATIENCE, every=0.01)
    assert done.finished, done.state
    return job.id


# One truth --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recorded() -> Iterator[Job]:
    """A job, of which others are made."""
    app = Penstock("sqlite://")
    app.kind("some")(lambda item: None)
    yield app.submit("some", {}).job
    app.close()


@pytest.mark.parametrize("state", list(JobState))
def test_celerys_word_and_the_result_together_are_always_the_status(recorded: Job, state: JobState) -> None:
    killers: tuple[KilledBy | None, ...] = (None, *KilledBy) if state.work is Work.LEFT else (None,)
    for killer in killers:
        for phase in Phase:
            for processed, total in ((0, 0), (0, 1), (0, 250), (100, 250), (250, 250)):
                result = {"groups": 3} if state.work is Work.DONE else None
                progress = Progress(total=total, processed=processed, failed=0, not_found=0, skipped=0)
                job = replace(recorded, state=state, killed_by=killer, phase=phase, progress=progress, result=result)
                told = job_status(JobReport(job), NOON, actor=Actor.OWNER, policy=None)
                assert effective_status(told.celery_status, told.result) == told.status, told


def test_a_failure_names_its_class_and_tells_the_same_within_the_result(app: Penstock, serve: Serve) -> None:
    @app.kind("buggy", retries=0)
    def buggy(item: ItemContext) -> None:
        raise DatabaseConnectionError("Connection refused: PostgreSQL not available")

    @app.kind("said", retries=0)
    def said(item: ItemContext) -> None:
        try:
            raise DatabaseConnectionError("refused")
        except DatabaseConnectionError as error:
            raise Retryable("the database is away", code="DB_CONN_REFUSED") from error

    @app.kind("unopened")
    class Unopened:
        def plan(self, job: JobContext) -> list[int]:
            raise Permanent("there is no such catalog", code="CATALOG_NOT_FOUND")

        def process(self, item: ItemContext) -> None: ...

    @app.kind("unread", retries=0)
    class Unread:
        def plan(self, job: JobContext) -> Iterator[int]:
            yield from range(10_000)
            raise ValueError("the rest cannot be read")

        def process(self, item: ItemContext) -> None: ...

    served = serve()
    ada, root = served.client(), served.client("root", admin=True)
    job_id = ended(app, "buggy")
    told = ada.get(f"/api/jobs/{job_id}").json()
    read_as(JobStatusResponse, told)
    assert (told["error_type"], told["failure_type"]) == ("DatabaseConnectionError", "TERMINAL")
    assert told["result"] == {
        "status": "failed",
        "error": "DatabaseConnectionError: Connection refused: PostgreSQL not available",
        "error_type": "DatabaseConnectionError",
        "error_code": "PROCESSING_ERROR",
        "failed_at": told["failed_at"],
        "failed_phase": "processing",
        "failed_batch": None,
        "progress_at_failure": {"processed": 1, "total": 1, "batches_completed": None, "batches_total": None},
        "stack_trace": None,
    }
    assert "refused" in root.get(f"/api/jobs/{job_id}").json()["result"]["stack_trace"]
    for kind, error_type, code, phase in (
        ("said", "DatabaseConnectionError", "DB_CONN_REFUSED", "processing"),
        ("unopened", "Permanent", "CATALOG_NOT_FOUND", "init"),
        ("unread", "ValueError", "PROCESSING_ERROR", "batching"),
    ):
        told = ada.get(f"/api/jobs/{ended(app, kind)}").json()
        assert (told["error_type"], told["error_code"], told["failed_phase"]) == (error_type, code, phase)


@on_sqlite
@pytest.mark.parametrize("error", [TimeLimitExceeded, MemoryLimitExceeded, WorkerCrashed])
def test_a_job_that_time_memory_or_a_crash_killed_says_so_everywhere(
    app: Penstock, serve: Serve, error: type[Killed]
) -> None:
    @app.kind("killed", retries=0)
    def killed(item: ItemContext) -> None:
        raise error("it had to end")

    told = serve().client().get(f"/api/jobs/{ended(app, 'killed')}").json()
    assert (told["status"], told["celery_status"], told["killed_by"]) == ("killed", "REVOKED", error.killed_by)
    assert effective_status(told["celery_status"], told["result"]) == "killed"
    assert told["result"] == {
        "status": "killed",
        "killed_by": error.killed_by,
        "killed_at": told["killed_at"],
        "killed_reason": "it had to end",
        "progress_at_kill": told["progress_at_kill"],
    }
    assert told["error_type"] == error.__name__


@on_sqlite
def test_what_an_operators_program_stops_was_stopped_by_the_system(app: Penstock, serve: Serve) -> None:
    app.kind("held")(lambda item: None)
    served = serve(worker=False)
    tokens = served.server.config.app.state.penstock.tokens  # type: ignore[union-attr]
    by_program = served.client(None, token=tokens.issue("deployment", is_program=True))
    first, second = (app.submit("held", {}, owner="ada").job.id for _ in range(2))
    killed = by_program.post(f"/api/jobs/{first}/kill", json={"reason": "a deployment"}).json()
    assert (killed["status"], killed["killed_by"], killed["killed_reason"]) == ("killed", "system", "a deployment")
    assert killed["progress"]["message"] == "Canceled by system"
    [line] = by_program.get(f"/api/jobs/{first}/history", params={"after": 1}).json()
    assert (line["actor"], line["actor_id"]) == ("system", "deployment")
    by_admin = served.client("root", admin=True).delete(f"/api/jobs/{second}").json()
    assert by_admin["killed_by"] == "user"
    assert by_program.get("/api/system").status_code == 200, "it may what an admin may"


# Addresses --------------------------------------------------------------------------------------------------------


def test_kill_stream_health_and_rerun(app: Penstock, serve: Serve) -> None:
    gate = threading.Event()

    @app.kind("gated")
    class Gated:
        def process(self, item: ItemContext) -> int:
            gate.wait(PATIENCE)
            return int(item.input) * 2

        def finalize(self, job: JobContext) -> list[int]:
            return sorted(job.results())

    served = serve()
    ada, bob = served.client(), served.client("bob")
    job_id = app.submit("gated", {"n": 1}, items=[1, 2, 3], owner="ada", title="three numbers").job.id
    early = ada.post(f"/api/jobs/{job_id}/rerun")
    assert (early.status_code, early.json()["code"]) == (409, "TRANSITION_REFUSED")
    seen: list[str] = []
    killed = None
    with ada.stream("GET", f"/api/jobs/{job_id}/stream") as answer:
        for name, _, told in events(answer):
            assert name == "message"
            read_as(JobStatusResponse, told)
            seen.append(told["status"])
            if told["status"] == "running" and not gate.is_set():
                killed = ada.post(f"/api/jobs/{job_id}/kill", json={"reason": "enough"})
                gate.set()
    assert seen[-1] == "killed"
    assert seen.count("killed") == 1
    assert killed is not None
    read_as(JobKilled, killed.json())
    assert (killed.json()["message"], killed.json()["killed_reason"]) == ("Job cancelled", "enough")
    again = ada.post(f"/api/jobs/{job_id}/rerun")
    assert again.status_code == 202
    read_as(JobRerun, again.json())
    new = again.json()
    assert (new["rerun_of"], new["title"], new["user_id"]) == (str(job_id), "three numbers", "ada")
    assert new["job_id"] != str(job_id)
    done = app.jobs.wait(UUID(new["job_id"]), timeout=PATIENCE, every=0.01)
    assert (done.state, done.result, done.params) == (JobState.SUCCEEDED, [2, 4, 6], {"n": 1})
    for method, path in (("POST", "kill"), ("POST", "rerun"), ("GET", "stream")):
        for other, who in ((job_id, bob), (uuid4(), ada)):
            missing = who.request(method, f"/api/jobs/{other}/{path}")
            assert (missing.status_code, missing.json()["code"]) == (404, "JOB_NOT_FOUND")
        assert served.client(None).request(method, f"/api/jobs/{job_id}/{path}").status_code == 401
    health = ada.get("/api/jobs/health").json()
    read_as(WorkerHealth, health)
    assert health == {"status": "healthy", "workers": 1, "active_tasks": 0, "message": "1 worker(s) online"}


@on_sqlite
def test_without_workers_nobody_is_healthy_and_a_slash_at_the_end_changes_nothing(app: Penstock, serve: Serve) -> None:
    app.kind("held")(lambda item: None)
    for _ in range(2):
        app.submit("held", {}, owner="ada")
    ada = serve(worker=False).client()
    assert ada.get("/api/jobs/health/").json() == {
        "status": "unhealthy", "workers": 0, "active_tasks": 0, "message": "No workers available",
    }  # fmt: skip
    plain, slash = (ada.get(path, params={"limit": 1}) for path in ("/api/jobs", "/api/jobs/"))
    assert [one["job_id"] for one in slash.json()] == [one["job_id"] for one in plain.json()]
    assert slash.headers["link"] == plain.headers["link"]
    assert ada.get(f"/api/jobs/{plain.json()[0]['job_id']}/").status_code == 200
    assert ada.get("/api/nothing/").status_code == 404


# Times ------------------------------------------------------------------------------------------------------------


def test_times_and_what_is_left_over_http(file_store: Store, tmp_path: Path) -> None:
    app = OnStore(file_store, tmp_path, jwt_secret=SECRET)
    bench = Workbench(file_store, file_store.clock, engine_kinds())  # type: ignore[arg-type]
    app.deploy(bench.kinds)
    job = bench.submit("bulk", owner="ada", items=list(range(200))).job
    bench.clock.advance(4)
    with serving(app, worker=False) as served:
        ada = served.client()

        def told() -> tuple[dict[str, float], float | None]:
            status = ada.get(f"/api/jobs/{job.id}").json()
            [listed] = ada.get("/api/jobs").json()
            assert (listed["times"], listed["progress"]) == (status["times"], status["progress"])
            return status["times"], status["progress"]["eta_seconds"]

        def times(waiting: float, active: float, paused: float) -> dict[str, float]:
            return {
                "total_seconds": waiting + active + paused, "active_seconds": active, "paused_seconds": paused,
                "waiting_seconds": waiting,
            }  # fmt: skip

        def work(batches: int) -> None:
            for _ in range(batches):
                held = bench.claim("bulk", size=10)
                bench.clock.advance(2)
                bench.record(held, outcomes.done(None))

        assert told() == (times(4, 0, 0), None)
        work(10)
        assert told() == (times(4, 20, 0), 20.0)
        assert ada.post(f"/api/jobs/{job.id}/pause").status_code == 200
        bench.clock.advance(3600)
        assert told() == (times(4, 20, 3600), None)
        resumed = ada.post(f"/api/jobs/{job.id}/resume").json()
        assert (resumed["times"], resumed["progress"]["eta_seconds"]) == (times(4, 20, 3600), None)
        work(5)
        assert told() == (times(4, 30, 3600), 10.0)
        ada.post(f"/api/jobs/{job.id}/kill")
        bench.clock.advance(60)
        assert told() == (times(4, 30, 3600), None)
