"""Running items of a finished job again, in a new run."""

from __future__ import annotations

from typing import Any

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

from penstock.lifecycle.callers import Visibility
from penstock.lifecycle.states import ENDED, ErrorType, ItemRole, ItemStatus, Phase
from penstock.lifecycle.transitions import REPROCESS
from penstock.store.dialects.contract import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.statements.change_state import change_state
from penstock.store.statements.visibility import by_id, key_in_use, visible_to
from penstock.store.tables import job_items, jobs
from penstock.store.types import Identifier


@built_once
def open_run(dialect: Dialect, sight: Visibility) -> Update:
    """REPROCESS: a new run, whose finalize step is still to come."""
    return change_state(
        dialect,
        REPROCESS,
        by_id() & visible_to(sight) & jobs.c.leader_id.is_(None) & ~key_in_use(),
        {
            "message": null(),
            "retries": 0,
            "deaths": 0,
            "has_followers": False,
            "phase": case((jobs.c.planned, Phase.PROCESSING.value), else_=Phase.BATCHING.value),
            "last_claimable": case((jobs.c.planned, jobs.c.total_items), else_=jobs.c.last_claimable),
            "last_claimed": case(
                (jobs.c.last_claimed > jobs.c.total_items, jobs.c.total_items), else_=jobs.c.last_claimed
            ),
        },
    )


@built_once
def lock_held_items(dialect: Dialect) -> Select[Any]:
    """The items of a job that workers hold, locked before the job is, as by those who record them."""
    return (
        select(job_items.c.id)
        .where(
            job_items.c.job_id == bindparam("the_job_id", type_=Identifier),
            job_items.c.status == ItemStatus.PROCESSING.value,
        )
        .order_by(job_items.c.id)
        .with_for_update()
    )


@built_once
def drop_finalize(dialect: Dialect) -> ReturningDelete[Any]:
    """The finalize item of the run before, even one in a worker's hands: this run adds it again after its last item."""
    return delete(job_items).where(
        job_items.c.job_id == bindparam("the_job_id", type_=Identifier),
        job_items.c.role == ItemRole.FINALIZE.value,
    ).returning(job_items.c.ready_at)  # fmt: skip


def _chosen(dialect: Dialect, *, by_item: bool, by_code: bool) -> ColumnElement[bool]:
    """Items in the wanted statuses, of the named ones or codes; permanent failures and used-up ones only when asked."""
    item = job_items.c
    reset, most = bindparam("the_reset", type_=Boolean), bindparam("the_max_attempts", type_=Integer)
    # What failed with tries to spare failed for good; what had used them up may do better with new ones.
    used_up = item.attempts >= most
    wanted = and_(
        item.role == ItemRole.ITEM.value,
        dialect.among(item.status, "the_statuses"),
        or_(reset, item.attempts < most),
        or_(
            bindparam("the_permanent", type_=Boolean),
            used_up,
            item.error_type.is_distinct_from(ErrorType.TERMINAL.value),
            item.status != ItemStatus.ERROR.value,
        ),
    )
    if by_item:
        wanted = and_(wanted, dialect.among(item.id, "the_items"))
    if by_code:
        uncoded = and_(bindparam("the_uncoded", type_=Boolean), item.error_code.is_(None))
        wanted = and_(wanted, or_(dialect.among(type_coerce(item.error_code, Text), "the_codes"), uncoded))
    unplanned = and_(
        item.role == ItemRole.PLAN.value,
        item.status.in_([status.value for status in ItemStatus if status in ENDED - {ItemStatus.DONE}]),
    )
    return and_(item.job_id == bindparam("the_job_id", type_=Identifier), or_(wanted, unplanned))


@built_once
def count_chosen(dialect: Dialect, *, by_item: bool, by_code: bool) -> Select[Any]:
    """How many items will run again, by the status they have."""
    return (
        select(job_items.c.role, job_items.c.status, func.count())
        .where(_chosen(dialect, by_item=by_item, by_code=by_code))
        .group_by(job_items.c.role, job_items.c.status)
    )


@built_once
def return_chosen(dialect: Dialect, *, by_item: bool, by_code: bool) -> Update:
    """Let them be claimed again."""
    reset = bindparam("the_reset", type_=Boolean)
    return (
        update(job_items)
        .where(_chosen(dialect, by_item=by_item, by_code=by_code))
        .values(
            status=ItemStatus.PENDING.value,
            ready_at=dialect.now(),
            attempts=case((or_(reset, job_items.c.role == ItemRole.PLAN.value), 0), else_=job_items.c.attempts),
            deaths=0,
            result_json=null(),
            updated_at=dialect.now(),
        )
    )


@built_once
def uncount(dialect: Dialect) -> Update:
    """What runs again has not been processed yet."""
    return (
        update(jobs)
        .where(by_id())
        .values(
            processed_items=jobs.c.processed_items - bindparam("the_processed", type_=Integer),
            failed_items=jobs.c.failed_items - bindparam("the_failed", type_=Integer),
            not_found_items=jobs.c.not_found_items - bindparam("the_not_found", type_=Integer),
            skipped_items=jobs.c.skipped_items - bindparam("the_skipped", type_=Integer),
            returned_items=jobs.c.returned_items + bindparam("the_returned", type_=Integer),
            next_claim_at=dialect.now(),
        )
    )
