"""Workers of one machine: they tell each other at once, and notice a death long before its leases run out."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy.engine import make_url

from penstock import ItemContext, JobState, Penstock, Settings
from penstock.store.peers import Peers
from penstock.testing.invariants import violations
from tests.integration import holding_worker
from tests.integration.holding_worker import build

PATIENCE = 30.0


@pytest.fixture
def sockets(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where sockets go: a short path of this test's own, because a socket's address has little room."""
    with tempfile.TemporaryDirectory(prefix="pen-", dir="/tmp") as directory:
        monkeypatch.setattr(tempfile, "tempdir", directory)
        monkeypatch.setenv("TMPDIR", directory)  # for the processes a test starts
        yield Path(directory) / f"penstock-{os.geteuid()}"


@pytest.fixture
def held(migrated_url: str, sockets: Path, programs: Path) -> Iterator[tuple[Penstock, subprocess.Popen[str]]]:
    """A job whose only item is in the hands of another process."""
    app = build(migrated_url)
    app.system.migrate()

    @app.kind("hold", retries=1, backoff="1ms fixed")
    async def hold(item: ItemContext) -> int:
        return item.attempt

    app.submit("hold", owner="ada")
    holder = subprocess.Popen(
        [str(programs / "python"), holding_worker.__file__, migrated_url], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline().strip() == "holding"
        yield app, holder
    finally:
        holder.kill()
        holder.communicate()
        app.close()


def test_what_a_killed_worker_held_is_taken_over_by_the_next(held: tuple[Penstock, subprocess.Popen[str]]) -> None:
    app, holder = held
    holder.kill()
    holder.wait()
    assert app.drain(timeout=PATIENCE), "the next worker waited for the lease"
    [job] = [app.jobs.get(one.id) for one in app.jobs.list()]
    assert (job.state, job.result, job.deaths) == (JobState.SUCCEEDED, 1, 1), "a death used up a try"
    assert violations(app.store) == []


def test_a_worker_notices_that_its_neighbour_was_killed(held: tuple[Penstock, subprocess.Popen[str]]) -> None:
    app, holder = held
    [job] = app.jobs.list()
    with app.working():
        holder.kill()
        holder.wait()
        assert app.jobs.wait(job.id, timeout=PATIENCE).state is JobState.SUCCEEDED
    [rescued] = [one for one in app.jobs.history(job.id) if one.from_state is one.to_state]
    assert rescued.reason is not None
    assert "died while it held an item; no try is used up" in rescued.reason


def test_a_neighbour_that_lives_keeps_what_it_holds(
    held: tuple[Penstock, subprocess.Popen[str]], sockets: Path
) -> None:
    app, _ = held
    with app.working() as worker:
        worker.signals.listen()
        for _ in range(3):
            assert worker.signals.wait("swept", timeout=PATIENCE)
        assert app.store.peers.dead() == []
    [job] = app.jobs.list()
    assert job.state is JobState.RUNNING


def test_whoever_says_goodbye_leaves_nothing_behind(app: Penstock, sockets: Path) -> None:
    with app.working() as worker:
        assert [one.name for one in sockets.glob("*/*")] == [worker.name]
    assert list(sockets.glob("*/*")) == []


def test_nobody_is_remembered_who_has_left(app: Penstock, sockets: Path) -> None:
    app.kind("one")(lambda item: None)
    for _ in range(3):
        app.jobs.kickoff(app.submit("one").job.id, duration=PATIENCE)
    assert app.store.peers.alive() == []
    assert app.store.peers._own == set()


SERVERS = [
    "postgresql+psycopg:///jobs?host=/run/one",
    "postgresql+psycopg:///jobs?host=/run/two",
    "postgresql+psycopg:///jobs?host=/run/two&port=5433",
    "postgresql+psycopg:///jobs?host=one:5432&host=two:5432",
    "postgresql+psycopg:///jobs?service=one",
    "postgresql+psycopg:///jobs?hostaddr=10.0.0.1",
    "postgresql+psycopg:///jobs",
    "postgresql+psycopg:///others",
    "postgresql+psycopg://one/jobs",
    "postgresql+psycopg://one:5433/jobs",
]


def test_servers_have_a_directory_each_whatever_part_of_the_address_tells_them_apart(
    sockets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses = [Peers.of(make_url(url)) for url in SERVERS]
    for place in ("/run/three", "/run/four"):
        monkeypatch.setenv("PGHOST", place)
        addresses.append(Peers.of(make_url("postgresql+psycopg:///jobs")))
    presences = [one.settle(f"worker-{number}") for number, one in enumerate(addresses)]
    try:
        assert [one.alive() for one in addresses] == [[f"worker-{number}"] for number in range(len(addresses))]
        assert Peers.of(make_url(SERVERS[0])).alive() == ["worker-0"], "the same address is the same directory"
    finally:
        for presence in presences:
            assert presence is not None
            presence.leave()


def test_a_cancel_from_elsewhere_is_heard_at_once(
    sockets: Path, quick_settings: Settings, open_app: Callable[[], Penstock]
) -> None:
    app = Penstock(settings=quick_settings.model_copy(update={"heartbeat_seconds": 3600.0}))
    started, stopped = threading.Event(), threading.Event()

    @app.kind("endless")
    async def endless(item: ItemContext) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    elsewhere = open_app()
    elsewhere.kind("endless")(endless)
    worker = app.worker()
    worker.start()
    try:
        assert worker.listening.wait(PATIENCE)
        job = elsewhere.submit("endless").job
        assert started.wait(PATIENCE)
        elsewhere.jobs.cancel(job.id)
        assert stopped.wait(PATIENCE), "only a heartbeat in an hour would have told it"
    finally:
        worker.stop(grace=0.0)
        app.close()


def test_without_a_socket_work_from_elsewhere_is_found_all_the_same(
    open_app: Callable[[], Penstock], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Peers, "settle", lambda self, name: None)
    app, elsewhere = open_app(), open_app()
    for one in (app, elsewhere):

        @one.kind("there")
        async def there(item: ItemContext) -> str:
            return "done"

    with app.working() as worker:
        assert worker.listening.wait(PATIENCE)
        job = elsewhere.submit("there").job
        assert elsewhere.jobs.wait(job.id, timeout=PATIENCE).result == "done"


def test_a_directory_that_others_can_write_to_is_not_used(sockets: Path) -> None:
    sockets.mkdir()
    sockets.chmod(0o777)
    here = Peers.of(make_url("sqlite:///some.db"))
    assert here.settle("me") is None
    here.tell(["kind"])
    assert here.dead() == []


def test_a_link_in_its_place_is_not_followed(sockets: Path, tmp_path: Path) -> None:
    sockets.symlink_to(tmp_path, target_is_directory=True)
    assert Peers.of(make_url("sqlite:///some.db")).settle("me") is None
    assert list(tmp_path.iterdir()) == []


def test_an_address_that_is_too_long_is_no_error(sockets: Path) -> None:
    here = Peers.of(make_url("sqlite:///some.db"))
    assert here.settle("n" * 120) is None


def test_what_is_told_is_heard_by_the_others_of_the_same_database_only(sockets: Path, tmp_path: Path) -> None:
    url = make_url(f"sqlite:///{tmp_path}/some.db")
    one, other, third = (Peers.of(each) for each in (url, url, make_url(f"sqlite:///{tmp_path}/other.db")))
    mine, yours, theirs = one.settle("mine"), other.settle("yours"), third.settle("theirs")
    assert mine is not None
    assert yours is not None
    assert theirs is not None
    try:
        one.tell(["a", "b"])
        assert yours.hear(PATIENCE) == {"a", "b"}
        assert mine.hear(0.0) == frozenset(), "its own process is told by the store"
        assert theirs.hear(0.0) == frozenset()
        for number in range(5_000):
            one.tell([f"more than {number} it can take"])
        assert yours.hear(0.0), "a full socket kept what it could"
    finally:
        for presence in (mine, yours, theirs):
            presence.leave()


def test_an_in_memory_database_has_no_neighbours(sockets: Path) -> None:
    here = Peers.of(make_url("sqlite://"))
    assert here.settle("me") is None
    here.tell(["kind"])
    assert here.dead() == []
    assert not sockets.exists()
