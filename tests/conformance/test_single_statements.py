"""Who promises a single statement sends one: without BEGIN and COMMIT a second would be a transaction of its own.

Each such call is made here, and what it really sends is counted. A new call has to be made here too.
"""

from __future__ import annotations

import ast
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import event, text

import penstock
from penstock import ItemContext, JobContext, Penstock, load_settings
from penstock.celery.ticket import Ticket
from penstock.celery.ticket_dispatcher import TicketDispatcher
from penstock.celery.ticket_queue import TicketQueue
from penstock.http.jobs.routes import get_job
from penstock.http.service import Service
from penstock.http.tokens import Identity
from penstock.operations.maintenance import holds_any
from penstock.operations.prune import is_recorded
from penstock.store.engine import Store
from penstock.store.observation import observe
from penstock.store.queries.maintenance import current_moment
from penstock.store.transaction import Transaction
from tests.conformance.databases import needs
from tests.waiting import PATIENCE, eventually

SOURCES = Path(penstock.__file__).parent


def calls_that_promise() -> set[str]:
    """Every function of ours that calls something with ``single_statement=``, as ``module:function``."""
    return {call for path in SOURCES.rglob("*.py") for call in _calls_of(ast.parse(path.read_text()), _module(path))}


def _module(path: Path) -> str:
    return ".".join(("penstock", *path.relative_to(SOURCES).with_suffix("").parts))


def _calls_of(node: ast.AST, module: str, names: tuple[str, ...] = ()) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call) and any(keyword.arg == "single_statement" for keyword in child.keywords):
            yield f"{module}:{'.'.join(names).removesuffix('.<locals>')}"
        inside = names
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            inside = (*names, child.name, "<locals>")
        elif isinstance(child, ast.ClassDef):
            inside = (*names, child.name)
        yield from _calls_of(child, module, inside)


class Count:
    """How many statements each promising call has sent, each time it was made."""

    def __init__(self) -> None:
        self.sent: defaultdict[str, list[int]] = defaultdict(list)
        self._here = threading.local()

    @contextmanager
    def of(self, store: Store, patch: pytest.MonkeyPatch) -> Iterator[None]:
        """Count what is sent inside the block."""
        patch.setattr(store, "read", self._counting(store.read))
        patch.setattr(store, "write", self._counting(store.write))
        event.listen(store.engine, "before_cursor_execute", self._note)
        yield
        event.remove(store.engine, "before_cursor_execute", self._note)

    def _counting(self, run: Callable[..., Any]) -> Callable[..., Any]:
        def run_counted(question: Callable[[Transaction], Any], *, single_statement: bool = False, **more: Any) -> Any:
            caller = sys._getframe(1)
            name = f"{caller.f_globals['__name__']}:{caller.f_code.co_qualname}"

            def count(transaction: Transaction) -> Any:
                self._here.sent = 0
                answer = question(transaction)
                if single_statement:
                    self.sent[name].append(self._here.sent)
                return answer

            return run(count, single_statement=single_statement, **more)

        return run_counted

    def _note(self, *_: Any) -> None:
        self._here.sent = getattr(self._here, "sent", 0) + 1


class Planned:
    """Some items that take until a heartbeat has come by, and a finalize step."""

    may_end = threading.Event()

    def plan(self, job: JobContext) -> list[int]:
        return [1, 2, 3]

    def process(self, item: ItemContext) -> None:
        assert self.may_end.wait(PATIENCE)

    def finalize(self, job: JobContext) -> str:
        return "done"


class NoBroker(TicketQueue):
    """Somewhere for tickets."""

    def __init__(self) -> None:
        self.tickets: list[Ticket] = []

    def count_waiting(self) -> int:
        return 0

    def send(self, tickets: Sequence[Ticket]) -> None:
        self.tickets += tickets


@contextmanager
def elsewhere(app: Penstock) -> Iterator[None]:
    """What a dispatcher asks for: before anybody here works on it."""
    app.submit("single")
    queue = NoBroker()
    TicketDispatcher(app.store, app.settings, ["single"], queue, window=4).top_up()
    assert queue.tickets == [Ticket("single", 1)]
    yield


ASKED: list[Callable[[Penstock], object]] = [
    lambda app: app.jobs.list(),
    lambda app: app.jobs.page(),
    lambda app: app.system.count_jobs(),
    lambda app: app.system.change_marks([uuid4()]),
    lambda app: app.items.count_open(),
    lambda app: app.system.samples(since=datetime.now(UTC)),
    lambda app: app.system.workers(),
    lambda app: app.system.ended_sessions(datetime.now(UTC)),
    lambda app: app.system.count_worker_deaths(),
    lambda app: app.in_transaction(lambda link: link.execute(text("SELECT 1")), reads=True, single_statement=True),
    lambda app: holds_any(app.store, "nobody"),
    lambda app: app.schedules.list(),
    lambda app: app.system.count_pruned(),
    lambda app: app.system.prune(dry_run=True),
    lambda app: is_recorded(app.store, "0" * 64),
]


@needs("commits_single_statements")
def test_each_call_that_promises_one_statement_sends_one(
    migrated_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Planned.may_end.clear()
    settings = load_settings(
        database_url=migrated_url, heartbeat_seconds=0.02, jwt_secret="s" * 64, files_directory=tmp_path
    )
    app = Penstock(settings=settings)
    app.kind("planned")(Planned)
    app.kind("single", keep_for="30d")(lambda item: None)
    sent = threading.Event()
    app.messages.subscribe("topic")(lambda message: sent.set())
    count = Count()
    with count.of(app.store, monkeypatch), elsewhere(app), app.working():
        job = app.submit("planned").job
        app.submit("single")
        app.messages.publish("topic", {})
        for ask in ASKED:
            ask(app)
        assert sent.wait(PATIENCE)
        eventually(lambda: any("lease_keeper" in name for name in list(count.sent)))
        Planned.may_end.set()
        assert app.drain(timeout=PATIENCE)
        app.files.get(app.files.keep(BytesIO(b"bytes"), name="a.txt").id)
        canceled = app.jobs.cancel(app.submit("single", hold=True).job.id)
        get_job(canceled.id, Identity("root", admin=True), Service(app))
        _, lines, _ = app.items.export(app.jobs.get(job.id).id)
        assert len(list(lines)) == 3
        app.system.sweep()
    promised = calls_that_promise()
    assert count.sent.keys() <= promised
    assert {name: sent for name, sent in count.sent.items() if set(sent) != {1}} == {}
    assert promised - count.sent.keys() == set(), "make these calls here too"
    app.close()


def test_whoever_looks_on_does_not_let_a_second_one_pass(store: Store) -> None:
    def twice(transaction: Transaction) -> None:
        current_moment(transaction)
        current_moment(transaction)

    with observe(store, lambda *_: None):
        store.read(current_moment, single_statement=True)
        store.read(twice)
        with pytest.raises(AssertionError, match="current_moment follows current_moment"):
            store.read(twice, single_statement=True)
