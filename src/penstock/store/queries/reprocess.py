"""Running items of a finished job again, in a new run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Integer,
    Select,
    Text,
    Update,
    and_,
    bindparam,
    case,
    delete,
    func,
    null,
    or_,
    select,
    type_coerce,
    update,
)
from sqlalchemy.sql.dml import ReturningDelete

from penstock.lifecycle.callers import Caller, Visibility
from penstock.lifecycle.states import ENDED_STATUSES, ErrorType, ItemRole, ItemStatus, Phase
from penstock.lifecycle.transitions import REPROCESS
from penstock.store.dialects.dialect import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.queries.change_state import ChangedJob, change_state
from penstock.store.queries.settle import NO_PACE
from penstock.store.queries.visibility import by_id, key_in_use, visible_to
from penstock.store.tables import job_items, jobs
from penstock.store.transaction import Transaction
from penstock.store.types import Identifier

_OF_JOB = job_items.c.job_id == bindparam("job_id", type_=Identifier)


def open_run(transaction: Transaction, job_id: UUID, caller: Caller) -> list[ChangedJob]:
    """REPROCESS: a new run, whose finalize step is still to come; if the caller may see the job."""
    parameters = {"job_id": job_id, "caller_id": caller.id}
    return transaction.fetch(ChangedJob, _open_run(transaction.dialect, caller.sight), parameters)


@built_once
def _open_run(dialect: Dialect, sight: Visibility) -> Update:
    return change_state(
        dialect,
        REPROCESS,
        by_id() & visible_to(sight) & jobs.c.leader_id.is_(None) & ~key_in_use(),
        {
            "message": null(),
            "retries": 0,
            "deaths": 0,
            **NO_PACE,
            "has_followers": False,
            "phase": case((jobs.c.planned, Phase.PROCESSING.value), else_=Phase.BATCHING.value),
            "last_claimable": case((jobs.c.planned, jobs.c.total_items), else_=jobs.c.last_claimable),
            "last_claimed": case(
                (jobs.c.last_claimed > jobs.c.total_items, jobs.c.total_items), else_=jobs.c.last_claimed
            ),
        },
    )


def lock_held_items(transaction: Transaction, job_id: UUID) -> None:
    """The items of a job that workers hold, locked before the job is, as by those who record them."""
    transaction.values(int, _lock_held_items(transaction.dialect), {"job_id": job_id})


@built_once
def _lock_held_items(_: Dialect) -> Select[Any]:
    return (
        select(job_items.c.id)
        .where(_OF_JOB, job_items.c.status == ItemStatus.PROCESSING.value)
        .order_by(job_items.c.id)
        .with_for_update()
    )


class DroppedItem(NamedTuple):
    """The finalize item of the run before; it counts as returned if it was ready to be tried again."""

    ready_at: datetime | None


def drop_finalize(transaction: Transaction, job_id: UUID) -> DroppedItem | None:
    """The finalize item of the run before, even one that a worker holds: this run adds it again after its last item."""
    return transaction.fetch_one(DroppedItem, _drop_finalize(transaction.dialect), {"job_id": job_id})


@built_once
def _drop_finalize(_: Dialect) -> ReturningDelete[Any]:
    finalizes = job_items.c.role == ItemRole.FINALIZE.value
    return delete(job_items).where(_OF_JOB, finalizes).returning(job_items.c.ready_at)


@dataclass(frozen=True, slots=True)
class Choice:
    """Which items of a job run again: by status, and where that is said by id or error code."""

    job_id: UUID
    statuses: Sequence[ItemStatus]
    max_failed_attempts: int
    max_not_found_attempts: int
    reset_attempts: bool
    """Those that have used up their tries too, with new ones."""
    permanent: bool
    """Those too that failed for good."""
    item_ids: Sequence[int] | None = None
    error_codes: Sequence[str | None] | None = None
    """None among them stands for items without a code."""

    @property
    def parameters(self) -> dict[str, Any]:
        """Those of the statements about the chosen items."""
        codes = self.error_codes or ()
        return {
            "job_id": self.job_id,
            "statuses": [status.value for status in self.statuses],
            "max_failed_attempts": self.max_failed_attempts,
            "max_not_found_attempts": self.max_not_found_attempts,
            "reset_attempts": self.reset_attempts,
            "permanent": self.permanent,
            "item_ids": list(self.item_ids or ()),
            "codes": [code for code in codes if code is not None],
            "uncoded": None in codes,
        }


def _is_chosen(dialect: Dialect, *, by_item: bool, by_code: bool) -> ColumnElement[bool]:
    """Items in the wanted statuses, of the named ones or codes; permanent failures and used-up ones only when asked."""
    item = job_items.c
    has_failed_all = item.attempts - item.not_found_attempts >= bindparam("max_failed_attempts", type_=Integer)
    has_missed_all = item.not_found_attempts >= bindparam("max_not_found_attempts", type_=Integer)
    is_used_up = case((item.status == ItemStatus.NOT_FOUND.value, has_missed_all), else_=has_failed_all)
    is_wanted_item = and_(
        item.role == ItemRole.ITEM.value,
        dialect.among(item.status, "statuses"),
        or_(bindparam("reset_attempts", type_=Boolean), ~is_used_up),
        or_(
            bindparam("permanent", type_=Boolean),
            # What failed with tries to spare failed for good; what had used them up may do better with new ones.
            has_failed_all,
            item.error_type.is_distinct_from(ErrorType.TERMINAL.value),
            item.status != ItemStatus.ERROR.value,
        ),
    )
    if by_item:
        is_wanted_item = and_(is_wanted_item, dialect.among(item.id, "item_ids"))
    if by_code:
        has_no_code = and_(bindparam("uncoded", type_=Boolean), item.error_code.is_(None))
        is_wanted_item = and_(
            is_wanted_item, or_(dialect.among(type_coerce(item.error_code, Text), "codes"), has_no_code)
        )
    is_unfinished_plan = and_(
        item.role == ItemRole.PLAN.value,
        item.status.in_([status.value for status in ItemStatus if status in ENDED_STATUSES - {ItemStatus.DONE}]),
    )
    return and_(_OF_JOB, or_(is_wanted_item, is_unfinished_plan))


class ChosenCount(NamedTuple):
    """How many items of a role and a status are chosen."""

    role: str
    status: str
    items: int


def count_chosen(transaction: Transaction, choice: Choice) -> list[ChosenCount]:
    """How many items will run again, by the status they have."""
    by_item, by_code = choice.item_ids is not None, choice.error_codes is not None
    statement = _count_chosen(transaction.dialect, by_item=by_item, by_code=by_code)
    return transaction.fetch(ChosenCount, statement, choice.parameters)


@built_once
def _count_chosen(dialect: Dialect, *, by_item: bool, by_code: bool) -> Select[Any]:
    return (
        select(job_items.c.role, job_items.c.status, func.count().label("items"))
        .where(_is_chosen(dialect, by_item=by_item, by_code=by_code))
        .group_by(job_items.c.role, job_items.c.status)
    )


def return_chosen(transaction: Transaction, choice: Choice) -> None:
    """Let them be claimed again."""
    by_item, by_code = choice.item_ids is not None, choice.error_codes is not None
    transaction.execute(_return_chosen(transaction.dialect, by_item=by_item, by_code=by_code), choice.parameters)


@built_once
def _return_chosen(dialect: Dialect, *, by_item: bool, by_code: bool) -> Update:
    item = job_items.c
    begins_anew = or_(bindparam("reset_attempts", type_=Boolean), item.role == ItemRole.PLAN.value)
    return (
        update(job_items)
        .where(_is_chosen(dialect, by_item=by_item, by_code=by_code))
        .values(
            status=ItemStatus.PENDING.value,
            ready_at=dialect.now(),
            attempts=case((begins_anew, 0), else_=item.attempts),
            not_found_attempts=case((begins_anew, 0), else_=item.not_found_attempts),
            # Who looks another way each time goes on where the tries before have ended.
            earlier_not_found=item.earlier_not_found + case((begins_anew, item.not_found_attempts), else_=0),
            deaths=0,
            result_json=null(),
            updated_at=dialect.now(),
        )
    )


class CountCorrection(NamedTuple):
    """What a job has counted of the items that run again."""

    processed: int
    failed: int
    not_found: int
    skipped: int
    returned: int
    """How many more wait to be claimed again."""


def uncount(transaction: Transaction, job_id: UUID, correction: CountCorrection) -> None:
    """What runs again has not been processed yet."""
    transaction.execute(_uncount(transaction.dialect), {"job_id": job_id, **correction._asdict()})


@built_once
def _uncount(dialect: Dialect) -> Update:
    less = {name: bindparam(name, type_=Integer) for name in CountCorrection._fields}
    return (
        update(jobs)
        .where(by_id())
        .values(
            processed_items=jobs.c.processed_items - less["processed"],
            failed_items=jobs.c.failed_items - less["failed"],
            not_found_items=jobs.c.not_found_items - less["not_found"],
            skipped_items=jobs.c.skipped_items - less["skipped"],
            returned_items=jobs.c.returned_items + less["returned"],
            next_claim_at=dialect.now(),
        )
    )
