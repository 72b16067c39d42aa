"""Who is in line: the jobs of a kind whose turn it is, the first turn of each priority, the priorities there are.

The line is the index ``ix_jobs_turn``: kind, priority from the highest down, turn. Every question here is one stretch
of it for each priority. A question that named the kind alone would step over all that lies between two priorities: the
turns that are still to come and, on PostgreSQL, the entries of finished jobs that somebody's old snapshot keeps.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    CTE,
    BigInteger,
    ColumnElement,
    Integer,
    Select,
    Text,
    bindparam,
    case,
    cast,
    func,
    literal_column,
    select,
)

from penstock.store.dialects.contract import Dialect, Field
from penstock.store.queries.built_once import built_once
from penstock.store.statements.visibility import by_id, by_ids
from penstock.store.tables import jobs
from penstock.store.types import Moment

_OF_KIND = jobs.c.kind == bindparam("the_kind")
_IN_LINE = _OF_KIND & jobs.c.next_claim_at.is_not(None)
_IN_ORDER = (jobs.c.priority.desc(), jobs.c.next_claim_at)
_LIMIT: ColumnElement[int] = bindparam("the_limit", type_=Integer)
_ONE = literal_column("1", Integer)
"""A limit that the planner can see; of a parameter it expects a tenth of all rows."""

PICKED = (
    jobs.c.id,
    jobs.c.state,
    jobs.c.user_id,
    jobs.c.run,
    jobs.c.params,
    jobs.c.last_claimed,
    jobs.c.last_claimable,
    jobs.c.returned_items,
    jobs.c.max_retries,
    jobs.c.single_step,
    jobs.c.has_followers,
)
"""What a claim has to know of a job."""


def not_before_now(dialect: Dialect, turn: ColumnElement[Any]) -> ColumnElement[Any]:
    """A turn as it is written: one that has passed is now, so that nobody gets in line where others have looked."""
    return case((turn < dialect.now(), dialect.now()), else_=turn)


@built_once
def pick_jobs(dialect: Dialect, *, one: bool = False) -> Select[Any]:
    """The jobs of a kind whose turn it is (or ``one`` of them), locked; those that others have locked are left out."""
    known = by_id() if one else jobs.c.priority.in_(select(priorities_in_line().c.priority))
    return (
        select(*PICKED)
        .where(_OF_KIND, known, jobs.c.next_claim_at <= dialect.now())
        .order_by(*_IN_ORDER)
        .limit(_LIMIT)
        .with_for_update(skip_locked=True, key_share=True)
    )


@built_once
def next_turn(dialect: Dialect, *, one: bool = False) -> Select[Any, Any]:
    """The next turn of any job of a kind (or of one), which is null when none is in line; and the time."""
    if one:
        soonest = select(jobs.c.next_claim_at).where(_IN_LINE, by_id()).scalar_subquery()
        return select(soonest, dialect.now().label("now"))
    found = priorities_in_line()
    first = _first_turn(found.c.priority, jobs.c.next_claim_at.is_not(None))
    return select(func.min(first), dialect.now().label("now")).select_from(found)


@built_once
def priorities(_ways: Dialect) -> Select[Any]:
    """The priorities that are in line."""
    found = priorities_in_line()
    return select(found.c.priority).where(found.c.priority.is_not(None))


def priorities_in_line() -> CTE:
    """From the highest down, each found by one step into the index; the last is null."""
    found = select(func.max(jobs.c.priority).label("priority")).where(_IN_LINE).cte("priorities", recursive=True)
    following = select(func.max(jobs.c.priority)).where(_IN_LINE, jobs.c.priority < found.c.priority).scalar_subquery()
    return found.union_all(select(following).where(found.c.priority.is_not(None)))


def _first_turn(priority: ColumnElement[Any], turn: ColumnElement[bool]) -> ColumnElement[Any]:
    return (
        select(jobs.c.next_claim_at)
        .where(_OF_KIND, jobs.c.priority == priority, turn)
        .order_by(jobs.c.next_claim_at)
        .limit(_ONE)
        .scalar_subquery()
    )


# Looking from a moment on, on a database server -----------------------------------------------------------------------

LOOKS = (Field("priority", Integer()), Field("since", Moment()))
"""Where to look, from the highest priority down: at one priority, from a moment on."""
WIDE_LOOKS = (*LOOKS, Field("above", Integer()))
"""The same, and which one is the next above it: what lies between them nobody has heard of yet."""

JOB = jobs.alias("j")
"""A short name: what is asked here is part of a claim, of which the driver remembers 4,096 characters."""
VERSION: ColumnElement[Any] = literal_column("j.xmin")
"""Changes with each change of the row."""


def due_jobs(dialect: Dialect, *columns: ColumnElement[Any]) -> Select[Any]:
    """The given columns of the jobs whose turn it is, locked, found by looks; what others have locked is left out.

    There is no ORDER BY around the looks: they come in the order of the array and each one's jobs in the order of the
    index, one by one until there are enough. A sort would lock everything that is due.
    """
    one = JOB.c
    looks = dialect.rows("looks", LOOKS)
    found = (
        select(*columns)
        .where(one.kind == bindparam("the_kind"), one.priority == looks.c.priority)
        .where(one.next_claim_at >= looks.c.since, one.next_claim_at <= dialect.now())
        .order_by(one.next_claim_at)
        .limit(_LIMIT)
        .with_for_update(skip_locked=True, key_share=True)
        .correlate(looks)
        .lateral("found")
    )
    return select(*found.c).select_from(looks, found).limit(_LIMIT)


@built_once
def lock_due(dialect: Dialect) -> Select[Any]:
    """The ids of the jobs whose turn it is, locked."""
    return due_jobs(dialect, JOB.c.id)


@built_once
def picked_jobs(dialect: Dialect) -> Select[Any]:
    """What a claim has to know of the jobs it has locked, in the order of the line."""
    return select(*PICKED).where(by_ids(dialect)).order_by(*_IN_ORDER)


@built_once
def first_turns(dialect: Dialect) -> Select[Any]:
    """For each look, the first turn that is in line and the highest priority nobody has heard of; and when this was.

    A plain read: jobs that somebody has locked count, because they are in line again if that transaction is undone.
    When it was is told in three ways: by the clock, by the number of this transaction (those that wrote before it have
    a lower one), and by the lowest number of a transaction that had not ended (those below it are all in the answer).
    The last column is how long the database has taken until this row.
    """
    looks = dialect.rows("looks", WIDE_LOOKS)
    # Not IS NOT NULL as well, which this implies: where nothing was in line when the table was analyzed, the planner
    # then expects no row from a scan of the whole table, and a third of all from the index.
    first = _first_turn(looks.c.priority, jobs.c.next_claim_at >= looks.c.since)
    unheard = (
        select(jobs.c.priority)
        .where(_IN_LINE, jobs.c.priority > looks.c.priority, jobs.c.priority < looks.c.above)
        .order_by(jobs.c.priority.desc())
        .limit(_ONE)
        .scalar_subquery()
    )
    number: ColumnElement[Any] = literal_column("pg_current_xact_id()")
    oldest: ColumnElement[Any] = literal_column("pg_snapshot_xmin(pg_current_snapshot())")
    took: ColumnElement[Any] = literal_column("extract(microseconds FROM clock_timestamp() - statement_timestamp())")
    return select(
        looks.c.priority,
        first.label("first"),
        unheard.label("unheard"),
        dialect.now().label("now"),
        cast(cast(number, Text), BigInteger).label("number"),
        cast(cast(oldest, Text), BigInteger).label("oldest"),
        cast(took, BigInteger).label("microseconds"),
    )
