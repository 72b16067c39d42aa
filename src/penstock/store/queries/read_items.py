"""Pages of items, each found by key: what stands at the end of a million costs what stands at its beginning.

A page asks for the keys first and for the rows' contents afterwards. Items of several statuses (or kinds) are a page of
each, merged: so every part is one stretch of one index, which no OFFSET and no sort of the whole could be.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

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

from penstock.lifecycle.payloads import JSON
from penstock.lifecycle.states import ACTIVE, ItemRole, ItemStatus, JobState
from penstock.store.dialects.dialect import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.tables import ITEM_IS_OPEN, job_items, jobs
from penstock.store.transaction import Transaction
from penstock.store.types import Identifier, Moment, RowNumber

_LONGEST_SUMMARY = 200
_OPEN = frozenset({ItemStatus.PENDING, ItemStatus.PROCESSING})
_ACTIVE: list[ColumnElement[Any]] = [literal_column(f"'{state}'") for state in JobState if state in ACTIVE]
_IS_ITEM = job_items.c.role == literal_column(f"'{ItemRole.ITEM}'")

_SEPARATOR = "\x1f"
Members = tuple[tuple[str, ...], ...]
"""For each part of the items' summaries, the members of an input that may hold it."""
Place = tuple[datetime, int]
"""Behind the item that last changed then, and has that id."""
Stretch = tuple[datetime, datetime]
"""From the one moment on, before the other."""


class PageRow(NamedTuple):
    """An item on a page: its input only in a few words, its result where it is asked for."""

    id: int
    job_id: UUID
    user_id: str | None
    kind: str
    position: int
    status: str
    attempts: int
    deaths: int
    locked_by: str | None
    locked_at: datetime | None
    ready_at: datetime | None
    updated_at: datetime
    last_error: str | None
    error_code: str | None
    input_title: str | None
    input_summary: str | None
    """What the kinds' summaries ask for, in their order, with a separator between."""
    normalized_json: JSON
    result_json: JSON
    read_at: datetime | None
    """When the page was read, on the first one of a walk backwards."""

    def summary_parts(self) -> list[str | None]:
        """What the kinds' summaries ask for, in their order."""
        return [] if self.input_summary is None else [part or None for part in self.input_summary.split(_SEPARATOR)]


def page_by_position(
    transaction: Transaction, job_id: UUID, *, position: int, limit: int, descending: bool
) -> list[PageRow]:
    """A job's items in their own order, which never changes, behind a position (or before it)."""
    parameters = {"job_id": job_id, "position": position, "limit": limit}
    return transaction.fetch(
        PageRow, _page_by_position(transaction.dialect, _members(transaction), descending=descending), parameters
    )


@built_once
def _page_by_position(_: Dialect, members: Members, *, descending: bool) -> Select[Any]:
    place = bindparam("position", type_=Integer)
    position = job_items.c.position
    keys = (
        select(job_items.c.id)
        .where(_of_job(), _IS_ITEM, position < place if descending else position > place)
        .order_by(position.desc() if descending else position)
        .limit(_limit())
        .subquery("keys")
    )
    return _contents(keys, members, results=True).order_by(position.desc() if descending else position)


def page_by_change(
    transaction: Transaction,
    job_id: UUID,
    statuses: tuple[ItemStatus, ...],
    *,
    after: Place | None,
    between: Stretch | None,
    limit: int,
    descending: bool,
    results: bool,
) -> list[PageRow]:
    """A job's items of some statuses, those that changed longest ago first; backwards, with the time of the look."""
    statement = _page_by_change(
        transaction.dialect,
        statuses,
        _members(transaction),
        after=after is not None,
        bounds=between is not None,
        descending=descending,
        results=results,
    )
    return transaction.fetch(PageRow, statement, {"job_id": job_id, "limit": limit} | _keys(after, between))


@built_once
def _page_by_change(
    dialect: Dialect,
    statuses: tuple[ItemStatus, ...],
    members: Members,
    *,
    after: bool,
    bounds: bool,
    descending: bool,
    results: bool,
) -> Select[Any]:
    parts = [
        _part(
            [_of_job(), job_items.c.status == literal_column(f"'{status}'"), _IS_ITEM],
            after=after,
            bounds=bounds,
            descending=descending,
        )
        for status in statuses
    ]
    read_at = dialect.now() if descending and not after else None
    page = _contents(_merge(parts, descending=descending), members, results=results, read_at=read_at)
    return _by_change(page, descending=descending)


def pending_page(
    transaction: Transaction,
    statuses: tuple[ItemStatus, ...],
    *,
    user_id: str | None,
    kinds: Sequence[str],
    after: Place | None,
    between: Stretch | None,
    limit: int,
) -> list[PageRow]:
    """Open items of jobs that go on: one user's, of at most one kind where it is named, or everybody's of these kinds.

    A job that was stopped leaves items behind that nobody will do: they are passed over.
    """
    statement = _pending_page(
        transaction.dialect,
        statuses,
        _members(transaction),
        kinds=len(kinds),
        own=user_id is not None,
        after=after is not None,
        bounds=between is not None,
    )
    parameters = {"user_id": user_id, "limit": limit} | {f"kind_{number}": kind for number, kind in enumerate(kinds)}
    return transaction.fetch(PageRow, statement, parameters | _keys(after, between))


@built_once
def _pending_page(
    dialect: Dialect,
    statuses: tuple[ItemStatus, ...],
    members: Members,
    *,
    kinds: int,
    own: bool,
    after: bool,
    bounds: bool,
) -> Select[Any]:
    assert _OPEN.issuperset(statuses), "the indexes know open items alone"
    parts = []
    for status in statuses:
        is_it = job_items.c.status == literal_column(f"'{status}'")
        items = and_(_IS_ITEM, _job_goes_on())
        if own:
            whose = job_items.c.user_id == bindparam("user_id", type_=String)
            # Checked, not searched by: a user has fewer items than a kind.
            of_kind = [dialect.check(job_items.c.kind == bindparam("kind_0", type_=String))] if kinds else []
            parts.append(
                _part([is_it, ITEM_IS_OPEN, whose, items, *of_kind], after=after, bounds=bounds, descending=False)
            )
            continue
        for number in range(kinds):
            kind = job_items.c.kind == bindparam(f"kind_{number}", type_=String)
            parts.append(_part([is_it, ITEM_IS_OPEN, kind, items], after=after, bounds=bounds, descending=False))
    return _by_change(_contents(_merge(parts, descending=False), members, results=False), descending=False)


def _keys(after: Place | None, between: Stretch | None) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    if after is not None:
        keys["moment"], keys["item_id"] = after
    if between is not None:
        keys["earliest"], keys["latest"] = between
    return keys


def _part(where: Sequence[ColumnElement[bool]], *, after: bool, bounds: bool, descending: bool) -> Select[Any]:
    """One stretch of an index: the items of one status, in the order in which they last changed."""
    moment, number = job_items.c.updated_at, job_items.c.id
    conditions = list(where)
    if after:
        place = tuple_(bindparam("moment", type_=Moment), bindparam("item_id", type_=RowNumber))
        conditions.append(tuple_(moment, number) < place if descending else tuple_(moment, number) > place)
    if bounds:
        conditions.append(moment >= bindparam("earliest", type_=Moment))
        conditions.append(moment < bindparam("latest", type_=Moment))
    order = (moment.desc(), number.desc()) if descending else (moment, number)
    return select(number, moment).where(*conditions).order_by(*order).limit(_limit())


def _merge(parts: Sequence[Select[Any]], *, descending: bool) -> Subquery:
    """The first of all parts together."""
    merged_parts = union_all(*(select(part.subquery()) for part in parts)).subquery("parts").c
    order = (
        (merged_parts.updated_at.desc(), merged_parts.id.desc())
        if descending
        else (merged_parts.updated_at, merged_parts.id)
    )
    return select(merged_parts.id).order_by(*order).limit(_limit()).subquery("keys")


def _by_change(page: Select[Any], *, descending: bool) -> Select[Any]:
    moment, number = job_items.c.updated_at, job_items.c.id
    return page.order_by(moment.desc(), number.desc()) if descending else page.order_by(moment, number)


def _members(transaction: Transaction) -> Members:
    return tuple(names for _, names in transaction.store.item_summary())


def _contents(
    keys: Subquery, members: Members, *, results: bool, read_at: ColumnElement[datetime] | None = None
) -> Select[Any]:
    """The rows of a page whose keys are known."""
    computed_columns: dict[str, ColumnElement[Any]] = _summary(members) | {
        "read_at": null() if read_at is None else read_at
    }
    if not results:
        computed_columns |= {"normalized_json": null(), "result_json": null()}
    columns = (
        computed_columns[name].label(name) if name in computed_columns else job_items.c[name]
        for name in PageRow._fields
    )
    return (
        select(*columns)
        .select_from(keys)
        .join(job_items, job_items.c.id == keys.c.id)
        .join(jobs, jobs.c.id == job_items.c.job_id)
    )


def _summary(members: Members) -> dict[str, ColumnElement[Any]]:
    """What tells people which item it is: never the whole input, which may be large."""
    own_input = case((jobs.c.single_step, jobs.c.params), else_=job_items.c.input_json)
    canonical = job_items.c.normalized_json

    def member(*names: str) -> ColumnElement[Any]:
        return func.coalesce(_text_of(canonical, *names), _text_of(own_input, *names))

    return {
        "input_title": member("title", "name", "url", "path"),
        "input_summary": _join_texts([member(*names) for names in members]),
    }


def _join_texts(texts: Sequence[ColumnElement[Any]]) -> ColumnElement[Any]:
    """Texts as one, which is read apart again: how many there are depends on the kinds, and a row has its columns."""
    if not texts:
        return null()
    separator: ColumnElement[str] = literal_column(f"'{_SEPARATOR}'")
    plain = [func.replace(func.coalesce(text, ""), separator, " ") for text in texts]
    result: ColumnElement[Any] = plain[0]
    for text in plain[1:]:
        result = result.op("||", return_type=Text())(separator).op("||", return_type=Text())(text)
    return result


def _text_of(column: ColumnElement[Any], *names: str) -> ColumnElement[Any]:
    """The first of these members that a JSON object has, as a short text."""
    members = (column.op("->>", return_type=Text())(literal_column(f"'{name}'")) for name in names)
    return func.substr(func.coalesce(*members, null()), 1, _LONGEST_SUMMARY)


def _job_goes_on() -> ColumnElement[bool]:
    job = jobs.alias("its_job")
    return select(literal(1)).where(job.c.id == job_items.c.job_id, job.c.state.in_(_ACTIVE)).exists()


def _of_job() -> ColumnElement[bool]:
    return job_items.c.job_id == bindparam("job_id", type_=Identifier)


def _limit() -> ColumnElement[int]:
    return bindparam("limit", type_=Integer)
