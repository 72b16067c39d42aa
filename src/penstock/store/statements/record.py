"""Writing outcomes back: items behind their fence, then what the job counts and becomes."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    Boolean,
    Float,
    Insert,
    Integer,
    Select,
    String,
    Text,
    Update,
    bindparam,
    case,
    insert,
    literal,
    null,
    select,
    true,
    update,
)

from penstock.lifecycle.states import ItemRole, ItemStatus, JobState, Phase
from penstock.lifecycle.transitions import FAIL, RETRY, SUCCEED
from penstock.store.dialects.contract import Dialect, Field
from penstock.store.queries.built_once import built_once
from penstock.store.statements.change_state import change_state
from penstock.store.tables import job_items, jobs
from penstock.store.types import Identifier, Moment, RowNumber

_UNLOCKED = {"lease": null(), "locked_by": null(), "locked_at": null(), "lock_expires_at": null()}

DONE = (Field("id", RowNumber), Field("result", Text()))


@built_once
def finish_items(dialect: Dialect, *, named: bool) -> Update:
    """DONE for the items of one lease that is still ours; those that landed are counted, or named."""
    rows = dialect.rows("done", DONE)
    finished = (
        update(job_items)
        .where(
            job_items.c.id == rows.c.id, dialect.check(job_items.c.lease == bindparam("the_lease", type_=Identifier))
        )
        .values(
            status=ItemStatus.DONE.value,
            result_json=dialect.json(rows.c.result),
            last_error=null(),
            error_code=null(),
            error_type=null(),
            killed_by=null(),
            traceback=null(),
            updated_at=dialect.now(),
            **_UNLOCKED,
        )
    )
    return finished.returning(job_items.c.id) if named else finished


ENDINGS = (
    Field("id", RowNumber),
    Field("lease", Identifier()),
    Field("status", String()),
    Field("error", Text()),
    Field("code", String()),
    Field("error_type", String()),
    Field("killed_by", String()),
    Field("traceback", Text()),
    Field("delay", Float()),
    Field("counts", Boolean()),
    Field("died", Integer()),
)


@built_once
def end_items(dialect: Dialect) -> Update:
    """Any other ending, or the way back, for the items whose lease is still ours."""
    rows = dialect.rows("endings", ENDINGS)
    goes_back = rows.c.status == ItemStatus.PENDING.value
    counted = case((rows.c.counts, 0), else_=1)
    kept = {
        "last_error": rows.c.error,
        "error_code": rows.c.code,
        "error_type": rows.c.error_type,
        "killed_by": rows.c.killed_by,
        "traceback": rows.c.traceback,
    }
    return (
        update(job_items)
        .where(job_items.c.id == rows.c.id, dialect.check(job_items.c.lease == rows.c.lease))
        .values(
            status=rows.c.status,
            ready_at=case((goes_back, dialect.later(dialect.now(), rows.c.delay)), else_=null()),
            attempts=job_items.c.attempts - counted,
            deaths=job_items.c.deaths + rows.c.died,
            updated_at=dialect.now(),
            **{name: case((rows.c.counts, value), else_=job_items.c[name]) for name, value in kept.items()},
            **_UNLOCKED,
        )
        .returning(job_items.c.id, job_items.c.ready_at)
    )


@built_once
def free_jobs(dialect: Dialect) -> Select[Any]:
    """Those of the jobs that nobody else has locked, locked."""
    return (
        select(jobs.c.id)
        .where(dialect.among(jobs.c.id, "the_jobs"))
        .order_by(jobs.c.id)
        .with_for_update(skip_locked=True, key_share=True)
    )


@built_once
def known_items(dialect: Dialect, *, free: bool) -> Select[Any]:
    """Those of the items that there are; of these only the ``free`` ones, which nobody else has locked, locked."""
    known = select(job_items.c.id).where(dialect.among(job_items.c.id, "the_items"))
    return known.order_by(job_items.c.id).with_for_update(skip_locked=True, key_share=True) if free else known


@built_once
def lock_jobs(dialect: Dialect) -> Select[Any]:
    """The jobs the outcomes belong to, locked in the order of their ids: two recorders cannot wait for each other."""
    return (
        select(
            jobs.c.id,
            jobs.c.kind,
            jobs.c.state,
            jobs.c.user_id,
            jobs.c.single_step,
            jobs.c.planned,
            jobs.c.has_finalizer,
            jobs.c.total_items,
            jobs.c.processed_items,
            jobs.c.last_claimed,
            jobs.c.last_claimable,
            jobs.c.returned_items,
            jobs.c.next_claim_at,
        )
        .where(dialect.among(jobs.c.id, "the_jobs"))
        .order_by(jobs.c.id)
        .with_for_update(key_share=True)
    )


COUNTS = (
    Field("id", Identifier()),
    Field("processed", Integer()),
    Field("failed", Integer()),
    Field("not_found", Integer()),
    Field("skipped", Integer()),
    Field("returned", Integer()),
)


def _counted(dialect: Dialect, rows: Any) -> dict[str, Any]:
    return {
        "processed_items": jobs.c.processed_items + rows.c.processed,
        "failed_items": jobs.c.failed_items + rows.c.failed,
        "not_found_items": jobs.c.not_found_items + rows.c.not_found,
        "skipped_items": jobs.c.skipped_items + rows.c.skipped,
        "returned_items": jobs.c.returned_items + rows.c.returned,
        "last_heartbeat": dialect.now(),
    }


TURNS = (*COUNTS, Field("next_claim_at", Moment()))


@built_once
def count_outcomes(dialect: Dialect) -> Update:
    """Add up what ended and what came back; a job with something to hand out gets its turn, if it is one that runs."""
    rows = dialect.rows("counts", TURNS)
    flows = jobs.c.state.in_([JobState.QUEUED.value, JobState.RUNNING.value])
    sooner = case((jobs.c.next_claim_at < rows.c.next_claim_at, jobs.c.next_claim_at), else_=rows.c.next_claim_at)
    return (
        update(jobs)
        .where(jobs.c.id == rows.c.id)
        .values(
            next_claim_at=case((flows & rows.c.next_claim_at.is_not(None), sooner), else_=jobs.c.next_claim_at),
            updated_at=dialect.now(),
            **_counted(dialect, rows),
        )
    )


RESULTS = (*COUNTS, Field("result", Text()))


@built_once
def succeed_jobs(dialect: Dialect) -> Update:
    """SUCCEED, with the result and the last counts."""
    rows = dialect.rows("results", RESULTS)
    return change_state(
        dialect, SUCCEED, jobs.c.id == rows.c.id, {"result": dialect.json(rows.c.result), **_counted(dialect, rows)}
    )


FAILURES = (
    *COUNTS,
    Field("error", Text()),
    Field("code", String()),
    Field("error_type", String()),
    Field("phase", String()),
    Field("killed_by", String()),
)


def _failure(rows: Any) -> dict[str, Any]:
    return {"last_error": rows.c.error, "error_code": rows.c.code, "error_type": rows.c.error_type}


@built_once
def fail_jobs(dialect: Dialect) -> Update:
    """FAIL, with what went wrong, where, and who killed it if somebody did."""
    rows = dialect.rows("failures", FAILURES)
    return change_state(
        dialect,
        FAIL,
        jobs.c.id == rows.c.id,
        {
            "failed_phase": rows.c.phase,
            "killed_by": rows.c.killed_by,
            "killed_reason": case((rows.c.killed_by.is_not(None), rows.c.error), else_=null()),
            **_failure(rows),
            **_counted(dialect, rows),
        },
    )


RETRIES = (
    *COUNTS,
    Field("error", Text()),
    Field("code", String()),
    Field("error_type", String()),
    Field("next_claim_at", Moment()),
)


@built_once
def retry_jobs(dialect: Dialect) -> Update:
    """RETRY: the next turn is when the backoff has passed."""
    rows = dialect.rows("retried", RETRIES)
    return change_state(
        dialect,
        RETRY,
        jobs.c.id == rows.c.id,
        {
            "next_claim_at": rows.c.next_claim_at,
            "retries": jobs.c.retries + 1,
            **_failure(rows),
            **_counted(dialect, rows),
        },
    )


@built_once
def open_planned(dialect: Dialect) -> Update:
    """The plan is complete: every planned item may be handed out."""
    return (
        update(jobs)
        .where(dialect.among(jobs.c.id, "the_jobs"))
        .values(
            planned=true(),
            last_claimable=jobs.c.total_items,
            phase=Phase.PROCESSING.value,
            next_claim_at=case(
                ((jobs.c.state == JobState.RUNNING.value) & (jobs.c.total_items > 0), dialect.now()),
                else_=jobs.c.next_claim_at,
            ),
            updated_at=dialect.now(),
        )
    )


@built_once
def add_finalize_items(dialect: Dialect) -> Insert:
    """The one item that finalizes, behind the last of the others; a second one cannot be: the position is taken."""
    source = select(
        jobs.c.id,
        jobs.c.user_id,
        jobs.c.kind,
        literal(ItemRole.FINALIZE.value),
        jobs.c.total_items + 1,
        literal(ItemStatus.PENDING.value),
        dialect.now(),
    ).where(dialect.among(jobs.c.id, "the_jobs"))
    columns = ["job_id", "user_id", "kind", "role", "position", "status", "updated_at"]
    return insert(job_items).from_select(columns, source)


@built_once
def open_finalize(dialect: Dialect) -> Update:
    """The finalize item may be handed out."""
    return (
        update(jobs)
        .where(dialect.among(jobs.c.id, "the_jobs"))
        .values(
            last_claimable=jobs.c.total_items + 1,
            phase=Phase.FINALIZING.value,
            next_claim_at=dialect.now(),
            updated_at=dialect.now(),
        )
    )


@built_once
def deciding_item(dialect: Dialect) -> Select[Any]:
    """The plan, the only, or the finalize item of one job: what it ended as decides what the job becomes."""
    item = job_items.c
    return select(
        item.role,
        item.status,
        item.result_json,
        item.last_error,
        item.error_code,
        item.error_type,
        item.killed_by,
    ).where(
        item.job_id == bindparam("the_job_id", type_=Identifier),
        item.position == bindparam("the_position", type_=Integer),
    )
