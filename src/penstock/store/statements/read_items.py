"""Pages of items, each found by key: what stands at the end of a million costs what stands at its beginning.

A page asks for the keys first and for the rows' contents afterwards. Items of several statuses (or kinds) are a page of
each, merged: so every part is one stretch of one index, which no OFFSET and no sort of the whole could be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Integer,
    Select,
    String,
    Subquery,
    Text,
    and_,
    bindparam,
    case,
    func,
    literal,
    literal_column,
    null,
    select,
    tuple_,
    union_all,
)

from penstock.lifecycle.states import ACTIVE, ItemRole, ItemStatus, JobState
from penstock.store.dialects.contract import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.tables import ITEM_IS_OPEN, job_items, jobs
from penstock.store.types import Identifier, Moment, RowNumber

_LONGEST_SUMMARY = 200
_OPEN = frozenset({ItemStatus.PENDING, ItemStatus.PROCESSING})
_ACTIVE: list[ColumnElement[Any]] = [literal_column(f"'{state}'") for state in JobState if state in ACTIVE]


def _limit() -> Any:
    return bindparam("the_limit", type_=Integer)


def _of_job() -> ColumnElement[bool]:
    return job_items.c.job_id == bindparam("the_job_id", type_=Identifier)


def _job_goes_on() -> ColumnElement[bool]:
    its = jobs.alias("its_job")
    return select(literal(1)).where(its.c.id == job_items.c.job_id, its.c.state.in_(_ACTIVE)).exists()


def _text_of(column: ColumnElement[Any], *names: str) -> ColumnElement[Any]:
    """The first of these members that a JSON object has, as a short text."""
    found = func.coalesce(
        *(column.op("->>", return_type=Text())(literal_column(f"'{name}'")) for name in names), null()
    )
    return func.substr(found, 1, _LONGEST_SUMMARY)


def _summary() -> list[ColumnElement[Any]]:
    """What tells people which item it is: never the whole input, which may be large."""
    given = case((jobs.c.single_step, jobs.c.params), else_=job_items.c.input_json)
    canonical = job_items.c.normalized_json

    def member(*names: str) -> ColumnElement[Any]:
        return func.coalesce(_text_of(canonical, *names), _text_of(given, *names))

    return [
        member("title", "name", "url", "path").label("input_title"),
        member("brand").label("input_brand"),
        member("sku", "gtin").label("input_sku"),
    ]


_LISTED = (
    job_items.c.id,
    job_items.c.job_id,
    job_items.c.user_id,
    job_items.c.kind,
    job_items.c.position,
    job_items.c.status,
    job_items.c.attempts,
    job_items.c.deaths,
    job_items.c.locked_by,
    job_items.c.locked_at,
    job_items.c.ready_at,
    job_items.c.updated_at,
    job_items.c.last_error,
    job_items.c.error_code,
)


def _contents(keys: Subquery, *, results: bool) -> Select[Any]:
    """The rows of a page whose keys are known."""
    shown = (job_items.c.normalized_json, job_items.c.result_json) if results else ()
    return (
        select(*_LISTED, *_summary(), *shown)
        .select_from(keys)
        .join(job_items, job_items.c.id == keys.c.id)
        .join(jobs, jobs.c.id == job_items.c.job_id)
    )


@built_once
def page_by_position(dialect: Dialect, *, descending: bool) -> Select[Any]:
    """A job's items in their own order, which never changes, behind a position (or before it)."""
    place = bindparam("the_position", type_=Integer)
    position = job_items.c.position
    keys = (
        select(job_items.c.id)
        .where(
            _of_job(),
            job_items.c.role == literal_column(f"'{ItemRole.ITEM}'"),
            position < place if descending else position > place,
        )
        .order_by(position.desc() if descending else position)
        .limit(_limit())
        .subquery("keys")
    )
    page = _contents(keys, results=True)
    return page.order_by(position.desc() if descending else position)


def _part(where: Sequence[ColumnElement[bool]], *, after: bool, bounds: bool, descending: bool) -> Select[Any]:
    """One stretch of an index: the items of one status, in the order in which they last changed."""
    moment, number = job_items.c.updated_at, job_items.c.id
    conditions = list(where)
    if after:
        place = tuple_(bindparam("the_moment", type_=Moment), bindparam("the_item_id", type_=RowNumber))
        conditions.append(tuple_(moment, number) < place if descending else tuple_(moment, number) > place)
    if bounds:
        conditions.append(moment >= bindparam("the_earliest", type_=Moment))
        conditions.append(moment < bindparam("the_latest", type_=Moment))
    order = (moment.desc(), number.desc()) if descending else (moment, number)
    return select(number, moment).where(*conditions).order_by(*order).limit(_limit())


def _merged(parts: Sequence[Select[Any]], *, descending: bool) -> Subquery:
    """The first of all parts together."""
    one = union_all(*(select(part.subquery()) for part in parts)).subquery("parts")
    order = (one.c.updated_at.desc(), one.c.id.desc()) if descending else (one.c.updated_at, one.c.id)
    return select(one.c.id).order_by(*order).limit(_limit()).subquery("keys")


def _by_change(page: Select[Any], *, descending: bool) -> Select[Any]:
    moment, number = job_items.c.updated_at, job_items.c.id
    return page.order_by(moment.desc(), number.desc()) if descending else page.order_by(moment, number)


@built_once
def page_by_change(
    dialect: Dialect, statuses: tuple[ItemStatus, ...], *, after: bool, bounds: bool, descending: bool, results: bool
) -> Select[Any]:
    """A job's items of some statuses, those that changed longest ago first; backwards, with the time of the look."""
    parts = [
        _part(
            [
                _of_job(),
                job_items.c.status == literal_column(f"'{status}'"),
                job_items.c.role == literal_column(f"'{ItemRole.ITEM}'"),
            ],
            after=after,
            bounds=bounds,
            descending=descending,
        )
        for status in statuses
    ]
    page = _contents(_merged(parts, descending=descending), results=results)
    if descending and not after:
        page = page.add_columns(dialect.now().label("read_at"))
    return _by_change(page, descending=descending)


@built_once
def pending_page(
    dialect: Dialect, statuses: tuple[ItemStatus, ...], *, kinds: int, own: bool, after: bool, bounds: bool
) -> Select[Any]:
    """Open items of jobs that go on, everybody's or one user's: the kinds are in ``the_kind_0``, ``the_kind_1`` …

    A job that was stopped leaves items behind that nobody will do: they are passed over.
    """
    assert _OPEN.issuperset(statuses), "the indexes know open items alone"
    parts = []
    for status in statuses:
        is_it = job_items.c.status == literal_column(f"'{status}'")
        items = and_(job_items.c.role == literal_column(f"'{ItemRole.ITEM}'"), _job_goes_on())
        if own:
            whose = job_items.c.user_id == bindparam("the_user_id", type_=String)
            # Checked, not searched by: a user has fewer items than a kind.
            of_kind = [dialect.check(job_items.c.kind == bindparam("the_kind_0", type_=String))] if kinds else []
            parts.append(
                _part([is_it, ITEM_IS_OPEN, whose, items, *of_kind], after=after, bounds=bounds, descending=False)
            )
            continue
        for number in range(kinds):
            kind = job_items.c.kind == bindparam(f"the_kind_{number}", type_=String)
            parts.append(_part([is_it, ITEM_IS_OPEN, kind, items], after=after, bounds=bounds, descending=False))
    return _by_change(_contents(_merged(parts, descending=False), results=False), descending=False)


@built_once
def open_counts(dialect: Dialect, *, own: bool) -> Select[Any]:
    """By kind: how many items are not over, by the counters of the jobs that are not, which cost nothing to add up."""
    conditions: list[ColumnElement[bool]] = [jobs.c.state.in_(_ACTIVE), jobs.c.leader_id.is_(None)]
    if own:
        conditions.append(jobs.c.user_id == bindparam("the_user_id", type_=String))
    left = func.sum(jobs.c.total_items - jobs.c.processed_items)
    return select(jobs.c.kind, func.coalesce(left, literal(0))).where(*conditions).group_by(jobs.c.kind)


@built_once
def rows_to_export(dialect: Dialect, *, statuses: bool) -> Select[Any]:
    """A stretch of a job's items for an export: what a grid shows, and nothing else."""
    stretch = (
        select(
            job_items.c.position,
            job_items.c.status,
            job_items.c.attempts,
            job_items.c.error_code,
            job_items.c.last_error,
            job_items.c.result_json,
            # Shown until there is a result, so it need not travel once there is one.
            case((job_items.c.result_json.is_(None), job_items.c.normalized_json)),
        )
        .where(
            _of_job(),
            job_items.c.position > bindparam("the_position", type_=Integer),
            job_items.c.role == literal_column(f"'{ItemRole.ITEM}'"),
        )
        .order_by(job_items.c.position)
        .limit(_limit())
    )
    if statuses:
        stretch = stretch.where(dialect.among(job_items.c.status, "the_statuses"))
    return dialect.bundled(stretch)


@built_once
def errors_by_code(dialect: Dialect) -> Select[Any]:
    """How many of a job's items failed, by status and error code, those that failed most first."""
    failed: list[ColumnElement[Any]] = [literal_column(f"'{one}'") for one in (ItemStatus.ERROR, ItemStatus.NOT_FOUND)]
    return (
        select(
            job_items.c.status, job_items.c.error_code, func.count().label("count"), func.max(job_items.c.last_error)
        )
        .where(_of_job(), job_items.c.status.in_(failed), job_items.c.role == literal_column(f"'{ItemRole.ITEM}'"))
        .group_by(job_items.c.status, job_items.c.error_code)
        .order_by(func.count().desc(), job_items.c.error_code)
        .limit(_limit())
    )
