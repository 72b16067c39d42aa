"""Lists of jobs, newest first, and searches in them: always by key and never by OFFSET."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Integer,
    Select,
    String,
    Text,
    bindparam,
    cast,
    false,
    func,
    literal,
    or_,
    select,
    tuple_,
    union_all,
)
from sqlalchemy.sql.base import ReadOnlyColumnCollection

from penstock.lifecycle.callers import Caller, Visibility
from penstock.lifecycle.states import JobState
from penstock.store.dialects.dialect import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.queries.read_jobs import job_columns
from penstock.store.queries.visibility import by_id, visible_to
from penstock.store.rows import JobRow
from penstock.store.tables import jobs
from penstock.store.transaction import Transaction
from penstock.store.types import Identifier, Moment


@dataclass(frozen=True, slots=True)
class JobConditions:
    """Which jobs a list has: those the caller may see, and of them what else is asked for."""

    caller: Caller
    states: tuple[JobState, ...] | None = None
    kind: str | None = None
    created_from: datetime | None = None
    created_to: datetime | None = None
    """Before then."""
    after: tuple[datetime, UUID] | None = None
    """Behind the job that was created then, and has that id."""
    job_id: UUID | None = None

    @property
    def shape(self) -> _Shape:
        """Which conditions there are: a statement is built for each combination."""
        return _Shape(
            self.caller.sight,
            states=None if self.states is None else len(self.states),
            kind=self.kind is not None,
            created_from=self.created_from is not None,
            created_to=self.created_to is not None,
            after=self.after is not None,
            id=self.job_id is not None,
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """Their values."""
        created_at, after_id = self.after or (None, None)
        return {
            "caller_id": self.caller.id,
            "kind": self.kind,
            "created_from": self.created_from,
            "created_to": self.created_to,
            "after": created_at,
            "after_id": after_id,
            "job_id": self.job_id,
            **{f"state_{number}": state.value for number, state in enumerate(self.states or ())},
        }


@dataclass(frozen=True, slots=True)
class _Shape:
    """Which conditions a list of jobs has; their values are parameters."""

    sight: Visibility
    states: int | None
    """How many; None for all."""
    kind: bool
    created_from: bool
    created_to: bool
    after: bool
    id: bool


class SearchPatterns(NamedTuple):
    """What a search looks for; None where the text cannot be part of an id."""

    text: str
    first_digits: str | None
    last_digits: str | None


class LastSearched(NamedTuple):
    """Where the jobs that a search looks through end, and how many they are."""

    created_at: datetime
    id: UUID
    jobs: int


def list_jobs(transaction: Transaction, conditions: JobConditions, *, limit: int, payloads: bool) -> list[JobRow]:
    """A page of jobs, newest first; their payloads may be large, and come where somebody wants them."""
    statement = _list_jobs(transaction.dialect, conditions.shape, payloads=payloads)
    return transaction.fetch(JobRow, statement, conditions.parameters | {"limit": limit})


@built_once
def _list_jobs(_: Dialect, shape: _Shape, *, payloads: bool) -> Select[Any]:
    return _newest_first(shape, job_columns(payloads=payloads), "limit")


def search_jobs(
    transaction: Transaction,
    conditions: JobConditions,
    patterns: SearchPatterns | None,
    *,
    killed: bool | None,
    search_limit: int,
    limit: int,
    payloads: bool,
) -> list[JobRow]:
    """A page of those jobs that match a text, or failed in one of two ways, among the first of a list."""
    statement = _search_jobs(
        transaction.dialect, conditions.shape, has_text=patterns is not None, killed=killed, payloads=payloads
    )
    texts = {} if patterns is None else patterns._asdict()
    parameters = conditions.parameters | texts | {"search_limit": search_limit, "limit": limit}
    return transaction.fetch(JobRow, statement, parameters)


@built_once
def _search_jobs(_: Dialect, shape: _Shape, *, has_text: bool, killed: bool | None, payloads: bool) -> Select[Any]:
    some = _newest_first(shape, job_columns(payloads=payloads), "search_limit").subquery("some").c
    conditions = [_matches_text(some)] if has_text else []
    if killed is not None:
        in_that_way = some.killed_by.is_not(None) if killed else some.killed_by.is_(None)
        conditions.append(or_(some.state != literal(JobState.FAILED.value), in_that_way))
    return (
        select(*some)
        .where(*conditions)
        .order_by(some.created_at.desc(), some.id.desc())
        .limit(bindparam("limit", type_=Integer))
    )


def _matches_text(some: ReadOnlyColumnCollection[str, Any]) -> ColumnElement[bool]:
    pattern = bindparam("text", type_=Text)
    # Only the digits: some databases keep an identifier with hyphens, some without.
    digits = func.replace(cast(some.id, Text), "-", "")
    matches: list[ColumnElement[bool]] = [
        *(column.ilike(pattern, escape="\\") for column in (some.title, some.kind, some.user_id, some.error_code)),
        digits.like(bindparam("first_digits", type_=Text)),
        digits.like(bindparam("last_digits", type_=Text)),
    ]
    return or_(*matches)


def last_searched(transaction: Transaction, conditions: JobConditions, *, search_limit: int) -> LastSearched | None:
    """Where the jobs a search looks through end, and how many they are."""
    statement = _last_searched(transaction.dialect, conditions.shape)
    return transaction.fetch_one(LastSearched, statement, conditions.parameters | {"search_limit": search_limit})


@built_once
def _last_searched(_: Dialect, shape: _Shape) -> Select[Any]:
    some = _newest_first(shape, [jobs.c.created_at, jobs.c.id], "search_limit").subquery("some").c
    how_many = func.count().over().label("jobs")
    return select(some.created_at, some.id, how_many).order_by(some.created_at, some.id).limit(1)


def _newest_first(shape: _Shape, columns: Sequence[ColumnElement[Any]], limit: str) -> Select[Any]:
    """The list itself: a stretch of an index, read backwards; of several states one for each, and the newest of all."""
    if shape.states is None or shape.states == 1:
        return _stretch(shape, columns, limit, 0)
    if shape.states == 0:
        return _stretch(shape, columns, limit, 0).where(false())
    parts = [
        select(*_stretch(shape, columns, limit, number).subquery(f"state_{number}").c) for number in range(shape.states)
    ]
    merged_parts = union_all(*parts).subquery("merged")
    return (
        select(*merged_parts.c)
        .order_by(merged_parts.c.created_at.desc(), merged_parts.c.id.desc())
        .limit(bindparam(limit, type_=Integer))
    )


def _stretch(shape: _Shape, columns: Sequence[ColumnElement[Any]], limit: str, state: int) -> Select[Any]:
    conditions = [visible_to(shape.sight)]
    if shape.id:
        conditions.append(by_id())
    if shape.states:
        conditions.append(jobs.c.state == bindparam(f"state_{state}", type_=String))
    if shape.kind:
        conditions.append(jobs.c.kind == bindparam("kind", type_=String))
    if shape.created_from:
        conditions.append(jobs.c.created_at >= bindparam("created_from", type_=Moment))
    if shape.created_to:
        conditions.append(jobs.c.created_at < bindparam("created_to", type_=Moment))
    if shape.after:
        moment, last = bindparam("after", type_=Moment), bindparam("after_id", type_=Identifier)
        conditions.append(tuple_(jobs.c.created_at, jobs.c.id) < tuple_(moment, last))
    return (
        select(*columns)
        .where(*conditions)
        .order_by(jobs.c.created_at.desc(), jobs.c.id.desc())
        .limit(bindparam(limit, type_=Integer))
    )
