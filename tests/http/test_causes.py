"""Every kill source and every error code of the task-status seed, from a real cause, as ``/api/jobs`` tells it."""

from __future__ import annotations

import asyncio
import importlib.util
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete

from penstock import ItemContext, Job, JobContext, JobState, Penstock, Settings, load_settings, owner
from penstock.http.jobs.schemas import JobStatusResponse
from penstock.lifecycle import effective_status
from penstock_apps.catalogs.application import catalogs as catalogs_application
from penstock_apps.catalogs.settings import CatalogSettings
from penstock_apps.catalogs.tables import catalogs as catalogs_table
from tests.http.causes import ERRORS, die, meet
from tests.http.conftest import Served, serving
from tests.http.shapes import read_as
from tests.integration.handlers import spin, swell

PATIENCE = 60.0
Serve = Callable[..., Served]
Answer = dict[str, Any]


# There is neither a Redis client nor a graphics card here: modules with their names raise what theirs raise. The
# refused connection is a real one.
STAND_INS = {
    "redis": """
        import socket

        class RedisError(Exception): ...
        class ConnectionError(RedisError): ...

        class Redis:
            def __init__(self, host, port):
                self.address = host, port

            def ping(self):
                try:
                    socket.create_connection(self.address, timeout=5)
                except OSError as error:
                    where = "{}:{}".format(*self.address)
                    raise ConnectionError(f"Error {error.errno} connecting to {where}. {error.strerror}.") from error
        """,
    "torch": """
        class OutOfMemoryError(RuntimeError): ...

        def empty(size, device):
            raise OutOfMemoryError(f"CUDA out of memory. Tried to allocate {size} bytes.")
        """,
}  # fmt: skip


@pytest.fixture
def stand_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The libraries that are not installed."""
    missing = [name for name in STAND_INS if importlib.util.find_spec(name) is None or name == "torch"]
    for name in missing:
        (tmp_path / "libraries").mkdir(exist_ok=True)
        (tmp_path / "libraries" / f"{name}.py").write_text(textwrap.dedent(STAND_INS[name]))
    monkeypatch.syspath_prepend(tmp_path / "libraries")
    yield
    for name in missing:
        sys.modules.pop(name, None)


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that refuses: it is taken, and nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


# What is asked of every answer -----------------------------------------------------------------------------------


def finished(app: Penstock, job: Job) -> Job:
    """The job once it is over."""
    done = app.jobs.wait(job.id, timeout=PATIENCE, every=0.01)
    assert done.finished, done.state
    return done


def told(served: Served, job: Job) -> Answer:
    """A finished job as its owner sees it; an admin sees the same, and perhaps a stack trace."""
    finished(served.app, job)
    path = f"/api/jobs/{job.id}"
    answer: Answer = served.client().get(path).json()
    read_as(JobStatusResponse, answer)
    admins = served.client("root", admin=True).get(path).json()
    assert answer["stack_trace"] is None, "stack traces are for admins"
    # A heartbeat that was on its way when the job ended may still land between the two questions.
    same = answer.keys() - {"stack_trace", "last_heartbeat", "updated_at", "result"}
    assert {name: answer[name] for name in same} == {name: admins[name] for name in same}
    if answer["status"] == "failed":
        admins["result"]["stack_trace"] = None
    assert answer["result"] == admins["result"]
    return answer


def stack_trace(served: Served, job: Job) -> str:
    """What an admin is shown."""
    shown: str = served.client("root", admin=True).get(f"/api/jobs/{job.id}").json()["stack_trace"]
    return shown


def check_killed(answer: Answer, killed_by: str, *, total: int = 1) -> None:
    """All that is said of a job that was killed."""
    assert (answer["status"], answer["killed_by"]) == ("killed", killed_by)
    assert answer["killed_reason"]
    assert _moment(answer["created_at"]) <= _moment(answer["killed_at"]) <= datetime.now(UTC)
    _check_counts(answer["progress_at_kill"], total)
    assert answer["progress"]["percent"] < 100


def check_failed(answer: Answer, code: str, *, phase: str = "processing", total: int = 1) -> None:
    """All that is said of a job that failed, killed or not."""
    assert (answer["error_code"], answer["failed_phase"]) == (code, phase)
    assert answer["celery_status"] == ("FAILURE" if answer["killed_by"] is None else "REVOKED")
    assert effective_status(answer["celery_status"], answer["result"]) == answer["status"]
    assert answer["error"]
    assert answer["error_type"].isidentifier()
    assert answer["failure_type"] == "TERMINAL"
    assert _moment(answer["created_at"]) <= _moment(answer["failed_at"]) <= datetime.now(UTC)
    counts = answer["progress_at_failure"]
    _check_counts(counts, total)
    in_batches = phase == "processing" and total > 1
    assert answer["failed_batch"] == (counts["processed"] // 100 + 1 if in_batches else None)


def check_not_killed(answer: Answer) -> None:
    """Nothing of a kill is said of what failed by itself."""
    assert answer["status"] == "failed"
    assert {answer[name] for name in ("killed_by", "killed_at", "killed_reason", "progress_at_kill")} == {None}


def _check_counts(counts: Answer, total: int) -> None:
    assert counts["total"] == total
    assert 0 <= counts["processed"] <= total
    batches = (counts["processed"] // 100, -(-total // 100)) if total > 1 else (None, None)
    assert (counts["batches_completed"], counts["batches_total"]) == batches


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    assert moment.tzinfo is not None
    return moment


# Kill sources ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("handler", "limits", "killed_by", "code"),
    [
        pytest.param(spin, {"timeout": "300ms"}, "timeout", "WORKER_TIMEOUT", id="timeout"),
        pytest.param(swell, {"memory_limit": "400MiB"}, "oom", "WORKER_OOM", id="oom"),
        pytest.param(die, {}, "worker_crash", "WORKER_CRASH", id="its-process-is-killed"),
    ],
)
def test_a_process_that_is_killed(
    app: Penstock,
    serve: Serve,
    handler: Callable[[ItemContext], None],
    limits: dict[str, Any],
    killed_by: str,
    code: str,
) -> None:
    app.kind("doomed", runs_in="processes", retries=0, concurrency=1, **limits)(handler)
    answer = told(serve(), app.submit("doomed", {}, owner="ada").job)
    check_killed(answer, killed_by)
    check_failed(answer, code)
    assert answer["killed_reason"] == answer["error"]


def test_a_worker_that_is_killed_costs_the_job_no_try(app: Penstock, settings: Settings, serve: Serve) -> None:
    app.kind("held", retries=0)(lambda item: "done by the next worker")
    job = app.submit("held", {}, owner="ada").job
    command = "import sys; from tests.http.test_causes import work; work(*sys.argv[1:])"
    arguments = [sys.executable, "-c", command, settings.database_url, str(settings.files_directory)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as worker:
        try:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "started\n"
        finally:
            worker.kill()
    answer = told(serve(), job)
    assert (answer["status"], answer["deaths"], answer["killed_by"]) == ("completed", 1, None)


def work(database_url: str, files_directory: str) -> None:
    """A worker process of its own, which says when its handler runs."""
    app = Penstock(
        settings=load_settings(database_url=database_url, files_directory=Path(files_directory), lock_floor_ms=1000)
    )

    @app.kind("held", retries=0)
    def held(item: ItemContext) -> None:
        print("started", flush=True)
        spin(item)

    app.worker().run(threading.Event())


def test_a_job_that_takes_too_long_as_a_whole_says_in_which_batch_it_was(app: Penstock, serve: Serve) -> None:
    @app.kind("long", run_limit="1s")
    class Long:
        def plan(self, job: JobContext) -> list[int]:
            return list(range(250))

        async def process(self, item: ItemContext) -> None:
            if item.input >= 150:
                await asyncio.Event().wait()

    answer = told(serve(), app.submit("long", {}, owner="ada").job)
    check_killed(answer, "timeout", total=250)
    check_failed(answer, "JOB_TIMEOUT", total=250)


def test_a_user_stops_it_and_so_does_the_system(app: Penstock, serve: Serve) -> None:
    running = threading.Semaphore(0)

    @app.kind("endless")
    async def endless(item: ItemContext) -> None:
        running.release()
        await asyncio.Event().wait()

    served = serve()
    users, systems = (app.submit("endless", {}, owner="ada").job for _ in range(2))
    for _ in range(2):
        assert running.acquire(timeout=PATIENCE)
    served.client().delete(f"/api/jobs/{users.id}")
    app.jobs.cancel(systems.id, reason="deployment of 2.1")  # as programs do that work for nobody in particular
    answer = told(served, users)
    check_killed(answer, "user")
    assert answer["killed_reason"] == "User requested cancellation"
    answer = told(served, systems)
    check_killed(answer, "system")
    assert (answer["killed_reason"], answer["celery_status"]) == ("deployment of 2.1", "REVOKED")
    assert (answer["error"], answer["failed_at"], answer["progress_at_failure"]) == (None, None, None)


def test_a_server_that_is_shut_down_kills_no_job(tmp_path: Path) -> None:
    settings = load_settings(
        database_url=f"sqlite:///{tmp_path}/penstock.db", files_directory=tmp_path / "files", jwt_secret="s" * 64,
        stop_grace_seconds=0,
    )  # fmt: skip
    app = Penstock(settings=settings)
    app.system.migrate()
    running, deployed = threading.Semaphore(0), threading.Event()

    @app.kind("patient", retries=0)
    async def patient(item: ItemContext) -> str:
        running.release()
        if not deployed.is_set():
            await asyncio.Event().wait()
        return "done after all"

    with serving(app, worker=True):
        job = app.submit("patient", {}, owner="ada").job
        assert running.acquire(timeout=PATIENCE)
    between = app.jobs.get(job.id)
    assert (between.state in (JobState.QUEUED, JobState.RUNNING), between.killed_by) == (True, None)
    deployed.set()
    with serving(app, worker=True) as served:
        answer = told(served, job)
    assert (answer["status"], answer["result"], answer["killed_by"]) == ("completed", "done after all", None)
    app.close()


# Error codes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["threads", "processes"])
@pytest.mark.usefixtures("stand_ins")
def test_an_error_everybody_meets_has_its_code(app: Penstock, serve: Serve, closed_port: int, place: str) -> None:
    app.kind("failing", runs_in=place, retries=0, concurrency=1)(meet)
    served = serve()
    jobs = {code: app.submit("failing", {"code": code, "port": closed_port}, owner="ada").job for code in ERRORS}
    for code, job in jobs.items():
        check_error(served, job, code)


def check_error(served: Served, job: Job, code: str) -> None:
    """All that is said of a job that failed by itself."""
    handler, words = ERRORS[code]
    answer = told(served, job)
    check_not_killed(answer)
    check_failed(answer, code)
    assert words in answer["error"]
    assert handler.__name__ in stack_trace(served, job)


def test_a_catalog_that_is_gone_when_its_turn_comes(app: Penstock, serve: Serve, tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    photos.mkdir()
    catalogs = app.install(
        catalogs_application, CatalogSettings(roots=(photos.resolve(),), thumbnails_directory=tmp_path / "thumbnails")
    )
    app.system.migrate()
    catalog = catalogs.create("Gone", [str(photos)], user="ada")
    ada = owner("ada")
    jobs = [
        catalogs.start_scan(catalog.id, by=ada),
        catalogs.start_thumbnails(catalog.id, by=ada),
        catalogs.start_duplicates(catalog.id, 4, by=ada),
        catalogs.start_tagging(catalog.id, by=ada),
    ]
    app.in_transaction(lambda link: link.execute(delete(catalogs_table)))
    photos.rmdir()  # that its folders are gone too is not what matters
    served = serve()
    for job in jobs:
        answer = told(served, job)
        check_not_killed(answer)
        check_failed(answer, "CATALOG_NOT_FOUND", phase="init", total=0)
        assert str(catalog.id) in answer["error"]


def test_where_a_plan_failed_is_shown_to_admins(app: Penstock, serve: Serve) -> None:
    @app.kind("broken", retries=0)
    class Broken:
        def plan(self, job: JobContext) -> list[int]:
            raise ZeroDivisionError("in the plan")

        def process(self, item: ItemContext) -> None:
            """Nothing gets here."""

    served = serve()
    job = app.submit("broken", {}, owner="ada").job
    check_failed(told(served, job), "PROCESSING_ERROR", phase="init", total=0)
    assert "ZeroDivisionError: in the plan" in stack_trace(served, job)
