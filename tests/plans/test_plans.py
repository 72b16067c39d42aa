"""No statement of the hot path reads a whole table, with fresh statistics or without any.

The operations run for real on a large database and are rolled back; each statement they send is then explained with
the very parameters it was sent with. A query is run by itself, and is known by its name.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from typing import Any

import pytest
from psycopg._queries import MAX_CACHED_STATEMENT_LENGTH, MAX_CACHED_STATEMENT_PARAMS
from sqlalchemy import delete, event, insert, select, text

from penstock.clock import ManualClock
from penstock.lifecycle import outcomes
from penstock.lifecycle.callers import SYSTEM, owner, worker
from penstock.lifecycle.job import ClaimedItem
from penstock.lifecycle.kind import Kind, Kinds
from penstock.lifecycle.policy import Policy
from penstock.lifecycle.states import ItemRole, ItemStatus, JobState
from penstock.operations import control, heartbeat, maintenance, read_items, read_jobs, single_flight
from penstock.operations.claim import claim_in_steps
from penstock.operations.forgotten_kinds import forgotten_kinds
from penstock.operations.job_report import get_report
from penstock.operations.outbox import backlog, count_unsubscribed
from penstock.operations.read_items import ItemCursor, TimeRange
from penstock.operations.read_jobs import JobFilter
from penstock.operations.record import ItemResult, record, record_free
from penstock.operations.reprocess import reprocess
from penstock.operations.request import Request
from penstock.operations.samples import samples, thinned_samples
from penstock.operations.submit import submit
from penstock.operations.watermarks import Reach, Watermarks
from penstock.store.engine import Store, open_store
from penstock.store.queries import claim as claim_queries
from penstock.store.queries import line as line_queries
from penstock.store.queries.ages import expired_leases, oldest_item
from penstock.store.queries.claim import NewLease, Stretch
from penstock.store.queries.inbox import delete_old, insert_message
from penstock.store.queries.outbox import take_messages
from penstock.store.queries.record import finish_held_items, finish_items
from penstock.store.queries.rescue import expired_items
from penstock.store.queries.served_jobs import claim_in_one_statement
from penstock.store.queries.settle import lock_jobs
from penstock.store.schema import migrate
from penstock.store.tables import inbox, job_items, lane_samples, outbox
from penstock.store.transaction import Transaction
from penstock.testing.drive import MAX_BYTES
from tests.plans.large import DUE, RETURNED, RUNNING, analyze, fill, item_id, job_id, table_name

RULES = Policy(reprocess=True, hold_limit=60, wait_limit=60, run_limit=60, abandon_after=60, queue_limit=100)
KIND, RUNS = (Kind.of(name, lambda item: None, RULES) for name in ("kind0", "kind1"))
OTHER = "kind2"
LATER = 1000.0
MADE_AT = datetime(2026, 1, 1, tzinfo=UTC)
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Explained:
    """A statement and how the database means to run it."""

    statement: str
    plan: str


@pytest.fixture(scope="module")
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """Makes copies of the large database, which is filled once of each kind; the answer is a copy's URL."""
    made: set[str] = set()
    numbers = count()
    directory = tmp_path_factory.mktemp("large")

    def copy(database: str) -> str:
        name = f"large_{next(numbers)}"
        server = request.getfixturevalue("postgres_server") if database == "postgresql" else None
        origin = server.url("large") if server else f"sqlite:///{directory}/large.db"
        if database not in made:
            made.add(database)
            if server:
                server.create_database("large")
            store = open_store(origin, clock=ManualClock(MADE_AT), sqlite_synchronous="OFF")
            migrate(store)
            fill(store, MADE_AT)
            store.close()
        if server:
            server.create_database(name, "large")
            return str(server.url(name))
        shutil.copy(directory / "large.db", directory / f"{name}.db")
        return f"sqlite:///{directory}/{name}.db"

    return copy


@pytest.fixture(
    scope="module", params=[(database, fresh) for database in ("sqlite", "postgresql") for fresh in (False, True)],
    ids=["sqlite-unanalyzed", "sqlite-analyzed", "postgresql-unanalyzed", "postgresql-analyzed"],
)  # fmt: skip
def large(request: pytest.FixtureRequest, filled: Callable[[str], str]) -> Iterator[Store]:
    """The large database, with statistics and without."""
    database, fresh = request.param
    clock = ManualClock(MADE_AT)
    store = open_store(filled(database), clock=clock, sqlite_synchronous="OFF")
    if fresh:
        analyze(store)
    clock.advance(LATER)
    yield store
    store.close()


class RolledBack(Exception):
    """Nothing of what was explained is kept."""


@contextmanager
def sent_by(store: Store) -> Iterator[list[tuple[str, Any]]]:
    """The statements sent meanwhile, with their parameters."""
    sent: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        sent.append((statement, parameters))

    event.listen(store.engine, "before_cursor_execute", note)
    yield sent
    event.remove(store.engine, "before_cursor_execute", note)


def explained(store: Store, operation: Callable[[Transaction], Any]) -> list[Explained]:
    """Run an operation, undo it, and ask how each of its statements was run."""

    def undone(transaction: Transaction) -> None:
        operation(transaction)
        raise RolledBack

    with sent_by(store) as sent, pytest.raises(RolledBack):
        store.write(undone)
    words = "EXPLAIN QUERY PLAN " if store.dialect.name == "sqlite" else "EXPLAIN "
    plans = []
    with store.engine.connect().execution_options(penstock_begins="BEGIN") as connection:
        for statement, parameters in sent:
            if statement.startswith(("BEGIN", "SELECT pg_notify")):
                continue
            rows = connection.exec_driver_sql(words + statement, parameters)
            plans.append(Explained(statement, "\n".join(str(row[-1]) for row in rows)))
    assert plans
    return plans


WHOLE_TABLE = {
    "sqlite": re.compile(r"\bSCAN (jobs|job_items)\b(?! USING (COVERING )?INDEX ix_jobs_next_claim)"),
    "postgresql": re.compile(r"Seq Scan on (jobs|job_items)\b"),
}


def held(number: int, role: ItemRole = ItemRole.ITEM) -> list[ClaimedItem]:
    """The items of a running job that are in a worker's hands."""
    return [
        ClaimedItem(item_id(number, position), job_id(number), "kind1", "user1", 1, role, position, 1, 3, None, None,
                job_id(number))
        for position in range(6, 11)
    ]  # fmt: skip


def ending(number: int, outcome: outcomes.Outcome) -> list[ItemResult]:
    return [ItemResult(one.item_id, one.lease, one.job_id, one.role, outcome) for one in held(number)]


KINDS = Kinds()
KINDS.add(KIND)
REQUEST: dict[str, Any] = {"owner": "user1", "caller": owner("user1")}

OPERATIONS: dict[str, Callable[[Transaction], Any]] = {
    "claim one": lambda one: claim_in_steps(one, "kind0", "w", size=1, lease_seconds=30),
    "claim many": lambda one: claim_in_steps(one, "kind0", "w", size=50, lease_seconds=30),
    "claim what came back": lambda one: claim_in_steps(one, OTHER, "w", size=50, lease_seconds=30),
    "claim of nothing": lambda one: claim_in_steps(one, "none", "w", size=50, lease_seconds=30),
    "record done": lambda one: record(one, ending(RUNNING, outcomes.done("1")), worker("w")),
    "record done of many": lambda one: record(
        one, [each for n in range(20) for each in ending(RUNNING + 1000 * n, outcomes.done("1"))], worker("w")
    ),
    "record what is free": lambda one: record_free(one, ending(RUNNING, outcomes.done("1")), worker("w")),
    "record failed": lambda one: record(one, ending(RUNNING, outcomes.failed("f", "F")), worker("w")),
    "record retried": lambda one: record(one, ending(RUNNING, outcomes.retried("f", "F", 1.0)), worker("w")),
    "extend": lambda one: heartbeat.extend(one, held(RUNNING), 30),
    "stopped": lambda one: heartbeat.find_stopped_jobs(one, [job_id(n) for n in range(50)]),
    "rescue": lambda one: maintenance.rescue(one, KINDS, 5),
    "start followers": lambda one: single_flight.start_followers(one, [job_id(n) for n in range(10)], SYSTEM),
    "succeed followers": lambda one: single_flight.succeed_followers(one, [job_id(RUNNING)], SYSTEM),
    "fail followers": lambda one: single_flight.fail_followers(one, [job_id(RUNNING)], SYSTEM),
    "requeue due": maintenance.requeue_due,
    "cancel held": lambda one: maintenance.cancel_held(one, KIND),
    "fail waiting": lambda one: maintenance.fail_waiting(one, KIND),
    "fail overrunning": lambda one: maintenance.fail_overrunning(one, RUNS),
    "abandon unused": lambda one: maintenance.abandon_unused(one, RUNS),
    "mend stale": lambda one: maintenance.rescue_stuck(one, 100.0),
    "mend postponed": lambda one: maintenance.mend_postponed(one, KIND),
    "submit": lambda one: submit(one, KIND, 1, Request(**REQUEST), items=None, max_bytes=MAX_BYTES),
    "submit with keys": lambda one: submit(
        one,
        KIND,
        1,
        Request(**REQUEST, unique_key="new", idempotency_key="i", fresh_for=60),
        items=None,
        max_bytes=MAX_BYTES,
    ),
    "submit to follow": lambda one: submit(
        one, KIND, 1, Request(owner="other", unique_key=f"key{DUE}"), items=None, max_bytes=MAX_BYTES
    ),
    "pause": lambda one: control.pause(one, job_id(DUE), SYSTEM),
    "cancel": lambda one: control.cancel(one, job_id(RUNNING), SYSTEM),
    "commit": lambda one: control.commit(one, job_id(5), SYSTEM),
    "reprocess": lambda one: reprocess(one, KIND, job_id(5), SYSTEM, statuses=[ItemStatus.DONE]),
    "look at one": lambda one: read_jobs.get_job(one, job_id(7), owner("user7")),
    "list an owner's": lambda one: read_jobs.list_jobs(one, owner("user7"), limit=20),
    "list some states of a kind": lambda one: read_jobs.list_jobs(
        one, SYSTEM, JobFilter(states=(JobState.QUEUED, JobState.PAUSED), kind="kind0", created_from=LONG_AGO)
    ),
    "list a common state of a kind": lambda one: read_jobs.list_jobs(
        one, SYSTEM, JobFilter(states=(JobState.COMMITTED,), kind="kind0", created_from=LONG_AGO), limit=20
    ),
    "anything in flight": lambda one: read_jobs.any_in_flight(one, ["kind0", "kind1"]),
    "kinds that jobs wait for": lambda one: forgotten_kinds(one, ["kind0"]),
    "list what was killed": lambda one: read_jobs.list_jobs(
        one, SYSTEM, JobFilter(states=(JobState.FAILED,), killed=True)
    ),
    "items": lambda one: read_jobs.items(one, job_id(7), limit=20),
    "history": lambda one: read_jobs.history(one, job_id(7)),
    "last change": lambda one: read_jobs.last_change_to(one, job_id(7), JobState.CANCELED),
    "report": lambda one: get_report(one, job_id(7), SYSTEM, with_trace=True),
}


# Pages of items: each part is one stretch of an index, and only the page itself is put in order.
PENDING, PROCESSING, FINISHED = ItemStatus.PENDING, ItemStatus.PROCESSING, ItemStatus.DONE
AFTER = ItemCursor(datetime(2020, 1, 1, tzinfo=UTC), 1, 1)
BY_POSITION, BY_CHANGE = "position", "ix_job_items_job_id_status_updated_at_id"
OF_USER, OF_KIND = "ix_job_items_status_user_id_updated_at_id", "ix_job_items_status_kind_updated_at_id"


def by_position(**asked: Any) -> Callable[[Transaction], Any]:
    return lambda one: read_items.page_in_order(one, job_id(RUNNING), limit=5, **asked)


def by_change(*statuses: ItemStatus, after: ItemCursor | None = None, **asked: Any) -> Callable[[Transaction], Any]:
    return lambda one: read_items.page_by_change(one, job_id(RUNNING), statuses=statuses, after=after, limit=5, **asked)


def pending(
    user: str | None, kind: str | None = None, after: ItemCursor | None = None, **asked: Any
) -> Callable[..., Any]:
    return lambda one: read_items.pending_page(
        one, statuses=(PENDING, PROCESSING), user=user, kind=kind, after=after, limit=5, **asked
    )


PAGES: dict[str, tuple[Callable[[Transaction], Any], str]] = {
    "page by position": (by_position(behind=None), BY_POSITION),
    "page behind a position": (by_position(behind=3), BY_POSITION),
    "page by position backwards": (by_position(behind=None, descending=True), BY_POSITION),
    "page before a position": (by_position(behind=8, descending=True), BY_POSITION),
    "page of one status": (by_change(FINISHED), BY_CHANGE),
    "page of one status, after": (by_change(FINISHED, after=AFTER), BY_CHANGE),
    "page of three statuses": (by_change(FINISHED, PENDING, PROCESSING), BY_CHANGE),
    "page of three statuses, after": (by_change(FINISHED, PENDING, PROCESSING, after=AFTER), BY_CHANGE),
    "page of three statuses backwards": (by_change(FINISHED, PENDING, PROCESSING, descending=True), BY_CHANGE),
    "page of three statuses in a time": (
        by_change(FINISHED, PENDING, PROCESSING, after=AFTER, between=TimeRange()), BY_CHANGE
    ),
    "what waits of a user": (pending("user1"), OF_USER),
    "what waits of a user, after": (pending("user1", after=AFTER), OF_USER),
    "what waits of all": (pending(None), OF_KIND),
    "what waits of all, after": (pending(None, after=AFTER, between=TimeRange()), OF_KIND),
    "what waits of a kind": (pending(None, kind="kind1", after=AFTER), OF_KIND),
}  # fmt: skip
# Lists of jobs: one stretch of an index, from its newest end; a search looks through its first so many jobs.
IN_ORDER = re.compile(r"\bix_jobs_(user_id_)?(state_)?created_at_id\b")
SEARCHED = 200


def listed(caller: Any, after: int | None = None, **asked: Any) -> Callable[[Transaction], Any]:
    def operation(one: Transaction) -> Any:
        now = one.store.clock.held()
        assert now is not None
        behind = None if after is None else read_jobs.JobCursor(now - timedelta(seconds=LATER), job_id(after))
        bounds: dict[str, Any] = {"created_from": LONG_AGO, "created_to": now} if asked else {}
        return read_jobs.page_of_jobs(one, caller, JobFilter(**asked, **bounds), after=behind, limit=5)

    return operation


JOB_LISTS: dict[str, Callable[[Transaction], Any]] = {
    "jobs of all": listed(SYSTEM),
    "jobs of all, after": listed(SYSTEM, 15_000),
    "jobs of a kind in a time": listed(SYSTEM, 15_000, kind="kind3"),
    "jobs of an owner": listed(owner("user7")),
    "jobs of an owner, after": listed(owner("user7"), 15_000),
    "jobs of an owner in a time": listed(owner("user7"), 15_000, states=(JobState.COMMITTED,)),
    "jobs in a state": listed(SYSTEM, 15_000, states=(JobState.COMMITTED,)),
    "jobs in several states, merged": listed(SYSTEM, 15_000, states=(JobState.COMMITTED, JobState.SUCCEEDED)),
    "jobs of an owner in several states, merged": listed(
        owner("user7"), 15_000, states=(JobState.COMMITTED, JobState.SUCCEEDED)
    ),
    "jobs found among all": listed(SYSTEM, 15_000, search="kind3"),
    "jobs found among an owner's": listed(owner("user7"), search="kind3"),
}
OPERATIONS |= {name: page for name, (page, _) in PAGES.items()} | {
    "open counts": lambda one: read_items.open_counts(one, user=None),
    "open counts of a user": lambda one: read_items.open_counts(one, user="user1"),
    "failures by code": lambda one: read_items.error_groups(one, job_id(RUNNING)),
    "what waits of a user and kind": pending("user1", kind="kind1", after=AFTER),
}


def knowing(*priorities: int) -> Watermarks:
    """The marks of a lane that has heard of these priorities."""
    marks = Watermarks()
    marks.learn(priorities)
    return marks


LEASE = NewLease(job_id(1), "w", 30.0)

SERVERS_OPERATIONS: dict[str, Callable[[Transaction], Any]] = {
    "claim one in one statement": lambda one: claim_in_one_statement(one, "kind0", knowing(0).claim_looks(), 1, LEASE),
    "claim many in one statement": lambda one: claim_in_one_statement(
        one, "kind0", knowing(5, 0).claim_looks(), 50, LEASE
    ),
    "claim from marks on": lambda one: claim_in_steps(one, "kind0", "w", size=50, lease_seconds=30, marks=knowing(0)),
    "look at the line": lambda one: line_queries.first_turns(one, "kind0", knowing(5, 0).looks(Reach.WHOLE)),
    "discover priorities": lambda one: line_queries.priorities(one, "kind0"),
}


def operations(store: Store) -> dict[str, Callable[[Transaction], Any]]:
    return OPERATIONS | ({} if store.dialect.is_embedded else SERVERS_OPERATIONS)


# How a few of them must be found: the index's name (on SQLite a rowid has none), whatever the statistics.
FRESH, RETURNED_INDEX = "uq_job_items_job_id_position", "ix_job_items_returned"
FIVE_STRETCHES = [Stretch(job_id(DUE + 1000 * n), 1, 5) for n in range(5)]
FINISHED_ITEMS = [(one.item_id, "1") for one in held(RUNNING)]


QUERIES: dict[str, tuple[Callable[[Transaction], object], dict[str, str]]] = {
    "pick_jobs": (
        lambda one: line_queries.pick_jobs(one, "kind0", 10),
        {
            "sqlite": "ix_jobs_next_claim (kind=? AND priority=? AND next_claim_at<?)",
            "postgresql": "ix_jobs_next_claim",
        },
    ),
    "next_turn": (
        lambda one: line_queries.next_turn(one, "kind0"),
        {
            "sqlite": "ix_jobs_next_claim (kind=? AND priority=? AND next_claim_at>?)",
            "postgresql": "ix_jobs_next_claim",
        },
    ),
    "take_stretch": (
        lambda one: claim_queries.take_stretch(one, Stretch(job_id(DUE), 1, 5), LEASE),
        {"sqlite": "sqlite_autoindex_job_items_1 (job_id=? AND position", "postgresql": FRESH},
    ),
    "take_stretches": (
        lambda one: claim_queries.take_stretches(one, FIVE_STRETCHES, LEASE),
        {"sqlite": "sqlite_autoindex_job_items_1 (job_id=? AND position", "postgresql": FRESH},
    ),
    "returned_items": (
        lambda one: claim_queries.returned_items(one, [job_id(RETURNED)], 10),
        {"sqlite": RETURNED_INDEX, "postgresql": RETURNED_INDEX},
    ),
    "soonest_returned": (
        lambda one: claim_queries.soonest_returned(one, [job_id(RETURNED)]),
        {"sqlite": RETURNED_INDEX, "postgresql": RETURNED_INDEX},
    ),
    "expired_items": (
        lambda one: expired_items(one, before=None, spared_workers=["w"], limit=1000),
        {"sqlite": "ix_job_items_status_", "postgresql": "ix_job_items_status_"},
    ),
    "oldest_item": (
        lambda one: oldest_item(one, "bulk", ItemStatus.PENDING),
        {"sqlite": "ix_job_items_status_kind_updated_at_id (status=? AND kind=?)",
         "postgresql": "ix_job_items_status_kind_updated_at_id"},
    ),
    "expired_leases": (
        lambda one: expired_leases(one, limit=1000),
        {"sqlite": "ix_job_items_status_", "postgresql": "ix_job_items_status_"},
    ),
    "finish_items": (
        lambda one: finish_items(one, job_id(RUNNING), FINISHED_ITEMS),
        {"sqlite": "INTEGER PRIMARY KEY", "postgresql": "pk_job_items"},
    ),
    "finish_held_items": (
        lambda one: finish_held_items(one, job_id(RUNNING), FINISHED_ITEMS),
        {"sqlite": "INTEGER PRIMARY KEY", "postgresql": "pk_job_items"},
    ),
    "lock_jobs": (
        lambda one: lock_jobs(one, [job_id(n) for n in range(10)]),
        {"sqlite": "sqlite_autoindex_jobs_1", "postgresql": "pk_jobs"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_uses_its_index(large: Store, name: str) -> None:
    query, indexes = QUERIES[name]
    [one] = explained(large, query)
    assert indexes[large.dialect.name] in one.plan, one.plan
    assert not WHOLE_TABLE[large.dialect.name].search(one.plan)


SERVERS_QUERIES: dict[str, tuple[Callable[[Transaction], Any], tuple[str, ...]]] = {
    "claim_in_one_statement": (
        SERVERS_OPERATIONS["claim many in one statement"],
        ("kind", "priority = looks.priority", "next_claim_at >= looks.since", "next_claim_at <= "),
    ),
    "lock_due": (
        lambda one: line_queries.lock_due(one, "kind0", knowing(5, 0).claim_looks(), 10),
        ("kind", "priority = looks.priority", "next_claim_at >= looks.since", "next_claim_at <= "),
    ),
    "first_turns": (
        SERVERS_OPERATIONS["look at the line"], ("kind", "priority = looks.priority", "next_claim_at >= looks.since")
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "large", [("postgresql", False), ("postgresql", True)], ids=["plain", "analyzed"], indirect=True, scope="module"
)
@pytest.mark.parametrize("name", SERVERS_QUERIES)
def test_a_look_at_the_line_is_one_stretch_for_each_priority(large: Store, name: str) -> None:
    """All conditions are the index's own, nothing is sorted, and what is locked is locked one by one."""
    operation, conditions = SERVERS_QUERIES[name]
    [one] = explained(large, operation)
    stretches = re.findall(r"using ix_jobs_next_claim on .*\n\s*Index Cond: (.*)", one.plan)
    assert any(all(condition in stretch for condition in conditions) for stretch in stretches), one.plan
    assert not re.search(r"\bSort\b|Seq Scan on jobs", one.plan), one.plan


def test_the_operations_find_what_they_look_for(large: Store) -> None:
    """A plan for nothing proves nothing: these are the numbers the database was made with."""
    kinds = Kinds()
    found: dict[str, Callable[[Transaction], int]] = {
        "claimed": lambda one: len(claim_in_steps(one, "kind0", "w", size=50, lease_seconds=30).items),
        "returned": lambda one: len(claim_in_steps(one, OTHER, "w", size=50, lease_seconds=30).items),
        "landed": lambda one: len(record(one, ending(RUNNING, outcomes.done("1")), worker("w"))),
        "rescued": lambda one: maintenance.rescue(one, kinds, 5),
        "requeued": maintenance.requeue_due,
        "waited": lambda one: maintenance.fail_waiting(one, KIND),
        "ran": lambda one: maintenance.fail_overrunning(one, RUNS),
        "unused": lambda one: maintenance.abandon_unused(one, RUNS),
    }
    answers: dict[str, int] = {}

    def undone(transaction: Transaction, name: str) -> None:
        answers[name] = found[name](transaction)
        raise RolledBack

    for name in found:
        with pytest.raises(RolledBack):
            large.write(partial(undone, name=name))
    assert answers == {
        "claimed": 40, "returned": 40, "landed": 5, "rescued": 100, "requeued": 20, "waited": 40, "ran": 20,
        "unused": 20,
    }  # fmt: skip


def reads_of_whole_tables(store: Store) -> str:
    """The operations that make any, and their plans."""
    found = WHOLE_TABLE[store.dialect.name]
    guilty = [
        f"{name}: {one.statement}\n{one.plan}"
        for name, operation in operations(store).items()
        for one in explained(store, operation)
        if found.search(one.plan)
    ]
    return "\n\n".join(guilty)


def test_no_operation_reads_a_whole_table(large: Store) -> None:
    assert reads_of_whole_tables(large) == ""


@pytest.mark.parametrize("large", [("postgresql", True)], ids=["analyzed"], indirect=True, scope="module")
def test_no_operation_reads_a_whole_table_that_was_analyzed_while_nobody_was_in_line(large: Store) -> None:
    """Of a table of finished jobs an analysis sees only a sample, and of the line often nothing."""
    with large.engine.begin() as connection:
        connection.execute(
            text("CREATE TABLE turns AS SELECT id, next_claim_at FROM penstock.jobs WHERE next_claim_at IS NOT NULL")
        )
        connection.execute(text("UPDATE penstock.jobs SET next_claim_at = NULL WHERE next_claim_at IS NOT NULL"))
        connection.execute(text("ANALYZE penstock.jobs"))
        connection.execute(
            text("UPDATE penstock.jobs SET next_claim_at = t.next_claim_at FROM turns t WHERE t.id = jobs.id")
        )
        connection.execute(text("DROP TABLE turns"))
    try:
        assert reads_of_whole_tables(large) == ""
    finally:
        analyze(large)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_found_in_order_and_only_itself_is_sorted(large: Store, name: str) -> None:
    page, index = PAGES[name]
    if index == BY_POSITION:
        index = {"sqlite": "sqlite_autoindex_job_items_1 (job_id=? AND position", "postgresql": FRESH}[
            large.dialect.name
        ]
    one = explained(large, page)[-1]
    assert index in one.plan, one.plan
    assert not sorts_of_all(one.plan), one.plan
    assert large.read(page), "a plan for nothing proves nothing"


@pytest.mark.parametrize("name", JOB_LISTS)
def test_a_list_of_jobs_is_read_from_its_newest_end(large: Store, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_jobs, "MAX_SEARCHED", SEARCHED)
    plans = explained(large, JOB_LISTS[name])
    for one in plans:
        assert IN_ORDER.search(one.plan), one.plan
        assert not re.search(r"\bSCAN jobs(?! USING (COVERING )?INDEX)|Seq Scan", one.plan), one.plan
    # What a search found, or several states together, are put in order again; a list never is.
    assert "found" in name or "merged" in name or not re.search(r"TEMP B-TREE|\bSort\b", plans[0].plan), plans[0].plan
    assert large.read(JOB_LISTS[name]).jobs, "a plan for nothing proves nothing"


def sorts_of_all(plan: str) -> list[str]:
    """The sorts of a plan that have items to sort which no LIMIT has cut; rows by their own id are cut already."""
    guilty: list[str] = []
    above: list[tuple[int, str]] = []
    ours = False
    for line in plan.splitlines():
        if line.startswith(("SEARCH job_items", "SCAN job_items")):  # SQLite: a part's sort follows its search at once
            ours = "PRIMARY KEY" not in line
        elif line.startswith("SCAN "):
            ours = False
        elif line.startswith("USE TEMP B-TREE") and ours:
            guilty.append(line)
        if "(cost=" not in line:
            continue
        depth = len(line) - len(line.lstrip(" ->"))
        above = [(at, node) for at, node in above if at < depth]
        node = line.strip(" ->")
        if " on job_items" in node and "pk_job_items" not in node:
            for _, higher in reversed(above):
                if higher.startswith("Limit"):
                    break
                if higher.startswith(("Sort", "Incremental Sort")):
                    guilty.append(higher)
        above.append((depth, node))
    return guilty


def test_a_sort_of_all_would_be_noticed(large: Store) -> None:
    """By the error message there is no index: it has to sort."""
    unsorted = select(job_items.c.id).where(job_items.c.job_id == job_id(RUNNING)).order_by(job_items.c.last_error)
    [one] = explained(large, lambda transaction: transaction.values(int, unsorted.limit(5)))
    assert sorts_of_all(one.plan), one.plan


def test_samples_are_found_by_their_time(large: Store) -> None:
    """Those of a kind in any case; of all kinds once the database knows how many there are, as it soon does."""
    now = large.clock.held()
    assert now is not None
    many = [
        {"kind": f"kind{kind}", "at": now - timedelta(seconds=5 * n), "worker": f"w{worker}", "data": {}}
        for n in range(1_000)
        for kind in range(5)
        for worker in range(2)
    ]
    with large.engine.begin() as connection:
        connection.execute(insert(lane_samples), many)
        connection.execute(text(f"ANALYZE {table_name(large, 'lane_samples')}"))
    try:
        since = now - timedelta(seconds=60)
        for kind in (None, "kind1"):
            [one] = explained(large, partial(samples, since=since, kind=kind))
            assert not re.search(r"SCAN lane_samples|Seq Scan on lane_samples", one.plan), one.plan
        asked = partial(thinned_samples, kind="kind1", since=now - timedelta(hours=1), until=now, limit=300)
        first, newest, last = explained(large, asked)
        for one in (first, newest, last):
            assert not re.search(r"SCAN (lane_samples|other)|Seq Scan on lane_samples", one.plan), one.plan
            assert not sorts_of_all(one.plan) or one is last, "the last sorts the few it has found"
        assert len(large.read(lambda one: samples(one, since=since))) == 120
    finally:
        with large.engine.begin() as connection:
            connection.execute(delete(lane_samples))


def test_a_take_reads_what_it_takes(large: Store) -> None:
    """Not the messages that were sent, nor those of other topics, of which any number may wait."""
    now = large.clock.held()
    assert now is not None
    message: dict[str, Any] = {"topic": "other", "key": None, "payload": {}, "ready_at": now, "created_at": now}
    many = [{**message, "sent_at": None if number % 2 else now} for number in range(10_000)]
    for number in range(0, 10_000, 1_000):
        many[number] |= {"topic": "t", "key": f"k{number % 3}", "sent_at": None}
    with large.engine.begin() as connection:
        connection.execute(insert(outbox), many)
    try:
        for topic, index in (
            ("t", "ix_outbox_unsent_topic"),
            ("nobody's", "ix_outbox_unsent_topic"),
            (None, "ix_outbox"),
        ):
            take = partial(take_messages, lease=job_id(1), topic=topic, limit=100, seconds=60.0, in_flight=[])
            [one] = explained(large, take)
            assert index in one.plan, one.plan
            assert not re.search(r"SCAN (outbox|earlier)(?! USING)|Seq Scan", one.plan), one.plan
            assert "Anti Join" not in one.plan, "the earlier ones of a key are looked up, for each message"
    finally:
        with large.engine.begin() as connection:
            connection.execute(delete(outbox))


def test_a_backlog_is_found_among_what_was_sent(large: Store) -> None:
    """By the index of what was not: an outbox of a week has a few that wait and very many that do not."""
    now = large.clock.held()
    assert now is not None
    message = {"topic": "t", "payload": {}, "ready_at": now, "created_at": now}
    many = [{**message, "sent_at": None if number % 1_000 == 0 else now} for number in range(20_000)]
    with large.engine.begin() as connection:
        connection.execute(insert(outbox), many)
    try:
        [one] = explained(large, partial(backlog, topics=["t"]))
        assert "ix_outbox_unsent" in one.plan, one.plan
        assert not re.search(r"SCAN outbox(?! USING (COVERING )?INDEX ix_outbox_unsent)|Seq Scan", one.plan), one.plan
        assert large.read(partial(backlog, topics=["t"])).waiting == 20
        [one] = explained(large, partial(count_unsubscribed, live_topics=["another"]))
        assert "ix_outbox_unsent" in one.plan, one.plan
        assert not re.search(r"SCAN outbox(?! USING (COVERING )?INDEX ix_outbox_unsent)|Seq Scan", one.plan), one.plan
    finally:
        with large.engine.begin() as connection:
            connection.execute(delete(outbox))


def test_what_was_accepted_is_found_by_its_key_and_forgotten_by_its_age(large: Store) -> None:
    """A consumer accepts a message with each of its transactions, while those of two weeks are there."""
    now = large.clock.held()
    assert now is not None
    row = {"subscriber": "s", "topic": "t", "accepted_at": now}
    with large.engine.begin() as connection:
        connection.execute(insert(inbox), [{**row, "message_id": f"id-{number}"} for number in range(20_000)])
        connection.execute(text(f"ANALYZE {table_name(large, 'inbox')}"))
    try:
        [forget] = explained(large, partial(delete_old, seconds=60.0))
        assert "ix_inbox_accepted_at" in forget.plan, forget.plan
        assert not large.write(partial(insert_message, subscriber="s", topic="t", message_id="id-7"))
    finally:
        with large.engine.begin() as connection:
            connection.execute(delete(inbox))


def test_the_driver_remembers_the_statements_somebody_waits_for(large: Store) -> None:
    """Psycopg parses a longer statement, or one with more parameters, anew each time; that costs a third of a claim."""
    known = operations(large)
    for name in {"submit", "record done", *SERVERS_OPERATIONS} & known.keys():
        for one in explained(large, known[name]):
            assert len(one.statement) <= MAX_CACHED_STATEMENT_LENGTH, one.statement
            assert one.statement.count("%(") <= MAX_CACHED_STATEMENT_PARAMS, one.statement
