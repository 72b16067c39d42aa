"""``run_on_celery`` and ``penstock dispatch``: what they refuse, and how the task is set up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from celery import Celery, signals
from hypothesis import given
from hypothesis import strategies as st

from penstock import Penstock
from penstock.celery import run_on_celery
from penstock.celery.ticket import holder_of, read_ticket, share_out
from penstock.cli.program import run
from penstock.errors import ConfigurationError, InvalidInput, KindUnknown

pytestmark = pytest.mark.usefixtures("kept_logs")


@pytest.fixture
def app() -> Penstock:
    made = Penstock("sqlite://")
    made.kind("thumbs")(lambda item: None)
    return made


@pytest.fixture
def celery_app() -> Celery:
    return Celery("shop", broker="memory://")


def test_the_task_promises_nothing_that_celery_would_have_to_keep(app: Penstock, celery_app: Celery) -> None:
    celery_app.conf.update(task_acks_late=True, task_time_limit=30, task_ignore_result=False)
    run_on_celery(celery_app, app, kinds=["thumbs"], queue="images")
    task = celery_app.tasks["penstock.ticket.images"]
    assert (task.acks_late, task.ignore_result, task.max_retries, task.typing) == (False, True, 0, False)
    assert task.time_limit > 24 * 3600
    assert task.soft_time_limit > 24 * 3600


class StartingWorker:
    """What a worker of Celery is when it tells that it starts."""

    prefetch_multiplier = 4

    def __init__(self, app: Celery) -> None:
        self.app = app


@pytest.mark.parametrize(("queues", "multiplier"), [({"images"}, 1), ({"images", "celery"}, 4)])
def test_a_worker_of_the_queue_alone_takes_one_ticket_ahead(
    app: Penstock, celery_app: Celery, queues: set[str], multiplier: int
) -> None:
    run_on_celery(celery_app, app, queue="images")
    celery_app.amqp.queues.select(sorted(queues))
    worker = StartingWorker(celery_app)
    signals.worker_init.send(sender=worker)
    assert worker.prefetch_multiplier == multiplier


@pytest.mark.parametrize("wrong", [{"kinds": []}, {"kinds": "thumbs"}, {"queue": ""}, {"window": 0}, {"expires": 0}])
def test_what_cannot_be_is_refused(app: Penstock, celery_app: Celery, wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        run_on_celery(celery_app, app, **wrong)


def test_an_unknown_kind_and_a_queue_that_is_taken_are_refused(app: Penstock, celery_app: Celery) -> None:
    with pytest.raises(KindUnknown):
        run_on_celery(celery_app, app, kinds=["nobody's"])
    run_on_celery(celery_app, app)
    with pytest.raises(ConfigurationError, match="name another queue"):
        run_on_celery(celery_app, app)


def test_a_database_in_memory_is_refused(app: Penstock, celery_app: Celery) -> None:
    run_on_celery(celery_app, app)
    with pytest.raises(ConfigurationError, match="in memory"):
        app.dispatcher("celery")


def test_the_command_names_its_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lone.py").write_text("from penstock import Penstock\napp = Penstock()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENSTOCK_APP", "lone:app")
    assert run(["dispatch"]) == 2
    assert "--celery" in capsys.readouterr().err
    assert run(["dispatch", "--celery"]) == 2
    assert "ENGINE_UNKNOWN" in capsys.readouterr().err


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=3)
)


@given(st.lists(JSON_VALUES, max_size=2), st.dictionaries(st.sampled_from(["kind", "size", "more"]), JSON_VALUES))
def test_whatever_a_stranger_sends_is_a_ticket_or_refused(arguments: list[Any], keywords: dict[str, Any]) -> None:
    refusal: InvalidInput | None = None
    try:
        ticket = read_ticket(arguments, keywords, ["thumbs"])
        assert (ticket.kind, ticket.size >= 1) == ("thumbs", True)
    except InvalidInput as error:
        refusal = error
    assert refusal is None or (refusal.code == "TICKET_INVALID" and len(refusal.message) < 500)


@given(st.text(), st.text())
def test_a_holder_fits_its_column(task_id: str, node: str) -> None:
    assert len(holder_of(task_id, node)) <= 64


@given(
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 10**6)), st.integers(0, 40), st.integers(1, 32),
    st.integers(1, 1000),
)  # fmt: skip
def test_tickets_never_fill_more_than_the_window_and_each_kind_gets_its_turn(
    due: dict[str, int], waiting: int, window: int, largest: int
) -> None:
    tickets = share_out(due, waiting=waiting, window=window, largest=largest)
    assert len(tickets) <= max(0, window - waiting)
    assert all(1 <= ticket.size <= largest for ticket in tickets)
    kinds = [kind for kind, items in due.items() if items]
    if waiting == 0:
        assert {ticket.kind for ticket in tickets} == set(kinds[:window])
