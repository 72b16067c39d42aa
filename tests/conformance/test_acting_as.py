"""The caller is said once: what is submitted is theirs, what they see is theirs, and the history names them."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from penstock import SYSTEM, ItemStatus, Penstock, admin, load_settings, owner
from penstock.app import BoundApp
from penstock.errors import FileNotFound, InvalidInput, JobNotFound, NotAllowed, NotSignedIn, PenstockError
from penstock.lifecycle import Actor


@pytest.fixture
def app(migrated_url: str, tmp_path: Path) -> Iterator[Penstock]:
    """Penstock on each database."""
    made = Penstock(settings=load_settings(database_url=migrated_url, files_directory=tmp_path / "files"))
    made.kind("letters", reprocess=True, abandon_after="1h")(lambda item: len(item.input))
    yield made
    made.close()


ASKED: dict[str, Callable[[BoundApp, str], object]] = {
    "get": lambda one, job: one.jobs.get(job),
    "history": lambda one, job: one.jobs.history(job),
    "last_change_to": lambda one, job: one.jobs.last_change_to(job, one.jobs.get(job).state),
    "stack_trace": lambda one, job: one.jobs.stack_trace(job),
    "samples": lambda one, job: one.jobs.samples(job),
    "wait": lambda one, job: one.jobs.wait(job, timeout=0.01),
    "release": lambda one, job: one.jobs.release(job),
    "pause": lambda one, job: one.jobs.pause(job),
    "resume": lambda one, job: one.jobs.resume(job),
    "cancel": lambda one, job: one.jobs.cancel(job),
    "commit": lambda one, job: one.jobs.commit(job),
    "abandon": lambda one, job: one.jobs.abandon(job),
    "reprocess": lambda one, job: one.jobs.reprocess(job),
    "kickoff": lambda one, job: one.jobs.kickoff(job, duration=0.01),
    "items": lambda one, job: one.items.list(job),
    "page": lambda one, job: one.items.page(job),
    "error_groups": lambda one, job: one.items.error_groups(job),
    "export": lambda one, job: list(one.items.export(job)[1]),
}
"""Everything that is about one job."""


@pytest.mark.parametrize("asked", ASKED)
def test_nobody_reaches_the_job_of_somebody_else(app: Penstock, asked: str) -> None:
    ask = ASKED[asked]
    job_id = str(app.acting_as(owner("ann")).submit("letters", "abc").job.id)
    before = app.jobs.get(job_id)
    for stranger in (owner("bob"), owner(None)):
        with pytest.raises(JobNotFound):
            ask(app.acting_as(stranger), job_id)
    assert app.jobs.get(job_id) == before


@pytest.mark.parametrize("asked", ASKED)
def test_an_id_is_a_uuid_or_its_text_and_a_wrong_one_is_said(app: Penstock, asked: str) -> None:
    ask = ASKED[asked]
    for wrong, code in (("12", "JOB_NOT_FOUND"), ("", "JOB_NOT_FOUND"), (7, "INVALID_INPUT"), (None, "INVALID_INPUT")):
        with pytest.raises(PenstockError) as refused:
            ask(app.acting_as(SYSTEM), wrong)  # type: ignore[arg-type]
        assert refused.value.code == code
        assert repr(wrong) in refused.value.message


def test_what_is_submitted_is_the_callers(app: Penstock) -> None:
    ann, guest, root = (app.acting_as(one) for one in (owner("ann"), owner(None), admin("root")))
    assert ann.submit("letters", "abc").job.user_id == "ann"
    assert ann.submit("letters", "abc", owner="ann").job.user_id == "ann"
    assert [app.jobs.get(one).user_id for one in ann.submit_many("letters", ["a", "b"])] == ["ann", "ann"]
    assert guest.submit("letters", "abc").job.user_id is None
    assert root.submit("letters", "abc").job.user_id is None
    assert root.submit("letters", "abc", owner="bob").job.user_id == "bob"
    assert app.submit("letters", "abc", owner="bob").job.user_id == "bob"
    count = len(app.jobs.list())
    for submit in (
        lambda: ann.submit("letters", "abc", owner="bob"),
        lambda: guest.submit("letters", "abc", owner="bob"),
        lambda: ann.submit_many("letters", ["abc"], owner="bob"),
        lambda: ann.take_key("key", 1, owner="bob"),
        lambda: ann.files.keep(io.BytesIO(b"bytes"), name="a.txt", owner="bob"),
    ):
        with pytest.raises(NotAllowed, match="may make nothing that is bob's"):
            submit()
    assert len(app.jobs.list()) == count


def test_the_history_names_the_caller(app: Penstock) -> None:
    job = app.acting_as(owner("ann")).submit("letters", "abc").job
    app.acting_as(owner("ann")).jobs.pause(job.id)
    app.jobs.resume(job.id)
    app.acting_as(admin("root")).jobs.cancel(str(job.id), reason="enough")
    said = [(line.actor, line.actor_id) for line in app.jobs.history(job.id)]
    assert said == [(Actor.OWNER, "ann"), (Actor.OWNER, "ann"), (Actor.SYSTEM, None), (Actor.ADMIN, "root")]


def test_a_list_holds_what_the_caller_sees(app: Penstock) -> None:
    for name in ("ann", "bob", None):
        app.submit("letters", "abc", owner=name)

    def seen(caller: BoundApp) -> set[str | None]:
        assert [job.id for job in caller.jobs.list()] == [job.id for job in caller.jobs.page().jobs]
        return {job.user_id for job in caller.jobs.list()}

    assert seen(app.acting_as(owner("ann"))) == {"ann"}
    assert seen(app.acting_as(owner(None))) == {None}
    assert seen(app.acting_as(admin("root"))) == seen(app.acting_as(SYSTEM)) == {"ann", "bob", None}
    assert {job.user_id for job in app.jobs.list()} == {"ann", "bob", None}


def test_what_waits_is_the_callers_too(app: Penstock) -> None:
    for name, count in (("ann", 2), ("bob", 3)):
        app.submit("letters", items=["abc"] * count, owner=name)
    ann, root = app.acting_as(owner("ann")), app.acting_as(admin("root"))
    assert {row.user_id for row in ann.items.pending()} == {"ann"}
    assert (ann.items.count_open(), root.items.count_open()) == ({"letters": 2}, {"letters": 5})
    assert root.items.count_open(user="bob") == app.items.count_open(user="bob") == {"letters": 3}
    assert len(root.items.pending(statuses=[ItemStatus.PENDING])) == 5
    with pytest.raises(NotAllowed):
        ann.items.pending(user="bob")
    with pytest.raises(NotAllowed):
        ann.items.count_open(user="bob")
    with pytest.raises(NotSignedIn):
        app.acting_as(owner(None)).items.pending()


def test_a_file_is_the_callers(app: Penstock) -> None:
    ann = app.acting_as(owner("ann"))
    kept = ann.files.keep(io.BytesIO(b"bytes"), name="a.txt")
    assert (kept.user_id, ann.files.get(str(kept.id))) == ("ann", kept)
    assert ann.files.path(kept.id).read_bytes() == app.files.path(str(kept.id)).read_bytes() == b"bytes"
    for wrong in (kept.id, str(kept.id), uuid4(), "12"):
        with pytest.raises(FileNotFound):
            app.acting_as(owner("bob")).files.get(wrong)
    with pytest.raises(InvalidInput):
        ann.files.path(7)  # type: ignore[arg-type]


def test_a_job_may_be_named_by_a_text(app: Penstock) -> None:
    name = uuid4()
    assert app.submit("letters", "abc", job_id=str(name)).job.id == name
    with pytest.raises(InvalidInput) as refused:
        app.submit("letters", "abc", job_id="mine")
    assert (refused.value.code, refused.value.field) == ("INVALID_INPUT", "job_id")
    taken = app.acting_as(owner("ann")).take_key("key", 1, resource_id=str(name))
    assert taken is None
    assert app.acting_as(owner("ann")).take_key("key", 1) == name
