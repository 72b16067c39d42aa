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
from penstock.store.dialects.contract import Field, Ways
from penstock.store.statements.built_once import built_once
from penstock.store.statements.change_state import change_state
from penstock.store.tables import job_items, jobs
from penstock.store.types import Identifier, Moment, RowNumber

_UNLOCKED = {"lease": null(), "locked_by": null(), "locked_at": null(), "lock_expires_at": null()}

DONE = (Field("id", RowNumber), Field("result", Text()))


@built_once
def finish_items(ways: Ways, *, named: bool) -> Update:
    """DONE for the items of one lease that is still ours; those that landed are counted, or named."""
    rows = ways.rows("done", DONE)
    finished = (
        update(job_items)
        .where(job_items.c.id == rows.c.id, ways.check(job_items.c.lease == bindparam("the_lease", type_=Identifier)))
        .values(
            status=ItemStatus.DONE.value,
            result_json=ways.json(rows.c.result),
            last_error=null(),
            error_code=null(),
            error_type=null(),
            killed_by=null(),
            traceback=null(),
            updated_at=ways.now(),
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
def end_items(ways: Ways) -> Update:
    """Any other ending, or the way back, for the items whose lease is still ours."""
    rows = ways.rows("endings", ENDINGS)
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
        .where(job_items.c.id == rows.c.id, ways.check(job_items.c.lease == rows.c.lease))
        .values(
            status=rows.c.status,
            ready_at=case((goes_back, ways.later(ways.now(), rows.c.delay)), else_=null()),
            attempts=job_items.c.attempts - counted,
            deaths=job_items.c.deaths + rows.c.died,
            updated_at=ways.now(),
            **{name: case((rows.c.counts, value), else_=job_items.c[name]) for name, value in kept.items()},
            **_UNLOCKED,
        )
        .returning(job_items.c.id, job_items.c.ready_at)
    )


@built_once
def free_jobs(ways: Ways) -> Select[Any]:
    """Those of the jobs that nobody else has locked, locked."""
    return (
        select(jobs.c.id)
        .where(ways.among(jobs.c.id, "the_jobs"))
        .order_by(jobs.c.id)
        .with_for_update(skip_locked=True, key_share=True)
    )


@built_once
def known_items(ways: Ways, *, free: bool) -> Select[Any]:
    """Those of the items that there are; of these only the ``free`` ones, which nobody else has locked, locked."""
    known = select(job_items.c.id).where(ways.among(job_items.c.id, "the_items"))
    return known.order_by(job_items.c.id).with_for_update(skip_locked=True, key_share=True) if free else known


@built_once
def lock_jobs(ways: Ways) -> Select[Any]:
    """The jobs the outcomes belong to, locked in the order of their ids: two recorders cannot wait for each other."""
    return (
        select(
            jobs.c.id,
            jobs.c.kind,
            jobs.c.state,
            jobs.c.user_id,
            jobs.c.single_step,
            jobs.c.planned,
            jobs.c.finalizes,
            jobs.c.total_items,
            jobs.c.processed_items,
            jobs.c.claimed_to,
            jobs.c.open_to,
            jobs.c.returned_items,
            jobs.c.turn_at,
        )
        .where(ways.among(jobs.c.id, "the_jobs"))
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


def _counted(ways: Ways, rows: Any) -> dict[str, Any]:
    return {
        "processed_items": jobs.c.processed_items + rows.c.processed,
        "failed_items": jobs.c.failed_items + rows.c.failed,
        "not_found_items": jobs.c.not_found_items + rows.c.not_found,
        "skipped_items": jobs.c.skipped_items + rows.c.skipped,
        "returned_items": jobs.c.returned_items + rows.c.returned,
        "last_heartbeat": ways.now(),
    }


TURNS = (*COUNTS, Field("turn_at", Moment()))


@built_once
def count_outcomes(ways: Ways) -> Update:
    """Add up what ended and what came back; a job with something to hand out gets its turn, if it is one that runs."""
    rows = ways.rows("counts", TURNS)
    flows = jobs.c.state.in_([JobState.QUEUED.value, JobState.RUNNING.value])
    sooner = case((jobs.c.turn_at < rows.c.turn_at, jobs.c.turn_at), else_=rows.c.turn_at)
    return (
        update(jobs)
        .where(jobs.c.id == rows.c.id)
        .values(
            turn_at=case((flows & rows.c.turn_at.is_not(None), sooner), else_=jobs.c.turn_at),
            updated_at=ways.now(),
            **_counted(ways, rows),
        )
    )


RESULTS = (*COUNTS, Field("result", Text()))


@built_once
def succeed_jobs(ways: Ways) -> Update:
    """SUCCEED, with the result and the last counts."""
    rows = ways.rows("results", RESULTS)
    return change_state(
        ways, SUCCEED, jobs.c.id == rows.c.id, {"result": ways.json(rows.c.result), **_counted(ways, rows)}
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
def fail_jobs(ways: Ways) -> Update:
    """FAIL, with what went wrong, where, and who killed it if somebody did."""
    rows = ways.rows("failures", FAILURES)
    return change_state(
        ways,
        FAIL,
        jobs.c.id == rows.c.id,
        {
            "failed_phase": rows.c.phase,
            "killed_by": rows.c.killed_by,
            "killed_reason": case((rows.c.killed_by.is_not(None), rows.c.error), else_=null()),
            **_failure(rows),
            **_counted(ways, rows),
        },
    )


RETRIES = (
    *COUNTS,
    Field("error", Text()),
    Field("code", String()),
    Field("error_type", String()),
    Field("turn_at", Moment()),
)


@built_once
def retry_jobs(ways: Ways) -> Update:
    """RETRY: the next turn is when the backoff has passed."""
    rows = ways.rows("retried", RETRIES)
    return change_state(
        ways,
        RETRY,
        jobs.c.id == rows.c.id,
        {"turn_at": rows.c.turn_at, "retries": jobs.c.retries + 1, **_failure(rows), **_counted(ways, rows)},
    )


@built_once
def open_planned(ways: Ways) -> Update:
    """The plan is complete: every planned item may be handed out."""
    return (
        update(jobs)
        .where(ways.among(jobs.c.id, "the_jobs"))
        .values(
            planned=true(),
            open_to=jobs.c.total_items,
            phase=Phase.PROCESSING.value,
            turn_at=case(
                ((jobs.c.state == JobState.RUNNING.value) & (jobs.c.total_items > 0), ways.now()), else_=jobs.c.turn_at
            ),
            updated_at=ways.now(),
        )
    )


@built_once
def add_finalize_items(ways: Ways) -> Insert:
    """The one item that finalizes, behind the last of the others; a second one cannot be: the position is taken."""
    source = select(
        jobs.c.id,
        jobs.c.user_id,
        jobs.c.kind,
        literal(ItemRole.FINALIZE.value),
        jobs.c.total_items + 1,
        literal(ItemStatus.PENDING.value),
        ways.now(),
    ).where(ways.among(jobs.c.id, "the_jobs"))
    columns = ["job_id", "user_id", "kind", "role", "position", "status", "updated_at"]
    return insert(job_items).from_select(columns, source)


@built_once
def open_finalize(ways: Ways) -> Update:
    """The finalize item may be handed out."""
    return (
        update(jobs)
        .where(ways.among(jobs.c.id, "the_jobs"))
        .values(
            open_to=jobs.c.total_items + 1,
            phase=Phase.FINALIZING.value,
            turn_at=ways.now(),
            updated_at=ways.now(),
        )
    )


@built_once
def deciding_item(ways: Ways) -> Select[Any]:
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
