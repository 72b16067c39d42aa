"""Names, keys and numbers have the same bounds on every database: up to them all is kept, beyond all is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from io import BytesIO
from typing import Any
from uuid import uuid4

import pytest

from penstock import SYSTEM, ItemContext, ItemStatus, JobState, Penstock, admin, owner
from penstock.app import PastJob
from penstock.errors import InvalidInput
from penstock.lifecycle import bounds
from penstock.lifecycle.transport import Message

NOW = datetime(2026, 1, 1, tzinfo=UTC)
Give = Callable[[Penstock, Any], object]


def nothing(item: ItemContext) -> None:
    """A handler."""


@pytest.fixture
def app(migrated_url: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Penstock]:
    monkeypatch.setenv("PENSTOCK_FILES_DIRECTORY", str(tmp_path / "files"))
    app = Penstock(migrated_url)
    app.kind("k", reprocess=True)(nothing)
    yield app
    app.close()


def adopted(app: Penstock, **given: Any) -> int:
    return app.system.import_jobs(
        "k", [PastJob(uuid4(), JobState.SUCCEEDED, params=None, created_at=NOW, **{"owner": None, **given})]
    )


def kept(app: Penstock, **given: Any) -> object:
    return app.files.keep(BytesIO(b"bytes"), **{"name": "a.csv", **given})


def accepted(app: Penstock, message_id: str, subscriber: str) -> object:
    message = Message(message_id, "t", None, {}, NOW)
    return app.in_transaction(lambda link: app.messages.accept(message, subscriber=subscriber, connection=link))


GIVEN: dict[str, tuple[bounds.TextBound, Give]] = {
    "owner of a job": (bounds.OWNER, lambda app, text: app.submit("k", owner=text)),
    "owner of many": (bounds.OWNER, lambda app, text: app.submit_many("k", [1], owner=text)),
    "owner of a past job": (bounds.OWNER, lambda app, text: adopted(app, owner=text)),
    "owner of a file": (bounds.OWNER, lambda app, text: kept(app, owner=text)),
    "owner of a key": (bounds.OWNER, lambda app, text: app.acting_as(SYSTEM).take_key("i", 1, owner=text)),
    "caller": (bounds.CALLER, lambda app, text: app.acting_as(owner(text)).submit("k")),
    "admin": (bounds.CALLER, lambda app, text: app.acting_as(admin(text)).jobs.cancel(app.submit("k").job.id)),
    "unique_key": (bounds.UNIQUE_KEY, lambda app, text: app.submit("k", unique_key=text)),
    "unique_key of a past job": (bounds.UNIQUE_KEY, lambda app, text: adopted(app, unique_key=text)),
    "idempotency_key": (bounds.IDEMPOTENCY_KEY, lambda app, text: app.submit("k", idempotency_key=text)),
    "idempotency_key taken": (bounds.IDEMPOTENCY_KEY, lambda app, text: app.acting_as(owner("ann")).take_key(text, 1)),
    "ip_address": (bounds.IP_ADDRESS, lambda app, text: app.submit("k", ip_address=text)),
    "ip_address of a key": (
        bounds.IP_ADDRESS,
        lambda app, text: app.acting_as(SYSTEM).take_key("j", 1, ip_address=text),
    ),
    "topic": (bounds.TOPIC, lambda app, text: app.messages.publish(text, {})),
    "key of a message": (bounds.MESSAGE_KEY, lambda app, text: app.messages.publish("t", {}, key=text)),
    "id of a message": (bounds.MESSAGE_ID, lambda app, text: accepted(app, text, "shop")),
    "subscriber": (bounds.SUBSCRIBER, lambda app, text: accepted(app, "1", text)),
    "schedule": (bounds.SCHEDULE, lambda app, text: app.schedule(text, "0 3 * * *", "k")),
    "name of a file": (bounds.FILE_NAME, lambda app, text: kept(app, name=text)),
    "media type": (bounds.MEDIA_TYPE, lambda app, text: kept(app, media_type=text)),
}


def test_a_text_at_its_bound_is_kept_and_a_longer_one_refused(app: Penstock) -> None:
    for name, (bound, give) in GIVEN.items():
        give(app, "é" * bound.longest)
        with pytest.raises(InvalidInput, match="characters") as refused:
            give(app, "é" * (bound.longest + 1))
        assert (refused.value.code, refused.value.field) == ("OUT_OF_BOUNDS", bound.field), name
    # A kind is refused when it is registered; a task whose id is too long belongs to somebody else, and is not tracked.
    assert {bound for bound, _ in GIVEN.values()} == set(bounds.TEXTS) - {bounds.KIND, bounds.TASK_ID}
    assert all(len(job.user_id or "") in (0, bounds.OWNER.longest) for job in app.jobs.list())


@pytest.mark.parametrize("wrong", ["", "a\x00b", "\ud800", 7, b"bytes"], ids=repr)
def test_a_text_that_is_none_is_refused(app: Penstock, wrong: Any) -> None:
    # A file's name is made storable, and a media type may be missing.
    asked = [one for one in GIVEN.values() if one[0] not in (bounds.FILE_NAME, bounds.MEDIA_TYPE)]
    for bound, give in asked:
        with pytest.raises(InvalidInput) as refused:
            give(app, wrong)
        assert refused.value.field == bound.field


@pytest.mark.parametrize("many", [False, True])
def test_a_priority_out_of_bounds_is_refused(app: Penstock, many: bool) -> None:
    def give(priority: Any) -> object:
        return app.submit_many("k", [1], priority=priority) if many else app.submit("k", 1, priority=priority)

    for kept_one in (-32768, 32767):
        give(kept_one)
    for wrong in (-32769, 32768, 40_000, 2**70, 1.5, True, "high"):
        with pytest.raises(InvalidInput, match="-32768 to 32767") as refused:
            give(wrong)
        assert (refused.value.code, refused.value.field) == ("OUT_OF_BOUNDS", "priority")
    assert sorted(job.priority for job in app.jobs.list()) == [-32768, 32767]


def test_numbers_of_a_question_are_refused(app: Penstock) -> None:
    job = app.submit("k", items=[1, 2]).job
    app.drain(timeout=30)
    for wrong in (-1, 2**31, 2**70):
        questions: list[tuple[str, Callable[[], object]]] = [
            ("after", partial(app.items.list, job.id, after=wrong)),
            ("after", partial(app.jobs.history, job.id, after=wrong)),
            ("limit", partial(app.items.list, job.id, limit=wrong)),
            ("limit", partial(app.jobs.list, limit=wrong)),
        ]
        for field, ask in questions:
            with pytest.raises(InvalidInput) as refused:
                ask()
            assert (refused.value.code, refused.value.field) == ("OUT_OF_BOUNDS", field)
    with pytest.raises(InvalidInput) as refused:
        app.jobs.reprocess(job.id, item_ids=[2**63])
    assert (refused.value.code, refused.value.field) == ("OUT_OF_BOUNDS", "item_ids")
    assert len(app.items.list(job.id, after=0, limit=2**31 - 1)) == 2
    assert app.items.list(job.id, after=2**31 - 1) == []


def test_the_bounds_themselves_can_be_registered_and_used(app: Penstock) -> None:
    name = "k" * bounds.KIND.longest
    app.kind(name, retries=2**31 - 2, queue_limit=2**31 - 2, priority=32767, reprocess=True)(nothing)
    job = app.submit(name, items=[1]).job
    assert app.drain(timeout=30)
    assert app.jobs.reprocess(job.id, statuses=[ItemStatus.DONE], reset_attempts=False).run == 2
