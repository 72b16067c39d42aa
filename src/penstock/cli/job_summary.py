"""How a job stands or ended, in a line."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from penstock.cli.texts import duration, on_one_line, payload

if TYPE_CHECKING:
    from penstock import Job
    from penstock.app import Jobs
    from penstock.lifecycle import HistoryEntry

EXIT_FAILED = 1
EXIT_CANCELED = 3
_SHOWN_SECONDS = 0.05


def exit_code(job: Job) -> int:
    """0 for a job that ended well, 1 for a failed one, 3 for a canceled one."""
    return {"failed": EXIT_FAILED, "canceled": EXIT_CANCELED}.get(job.state.shown_as.value, 0)


def actor(entry: HistoryEntry) -> str:
    """Who made a change: a role, and a name where there is one."""
    return f"{entry.actor.value} {on_one_line(entry.actor_id)}" if entry.actor_id else entry.actor.value


def stopped_by(jobs: Jobs, job: Job) -> str:
    """Who canceled a job; empty when nobody did."""
    if job.canceled_at is None:
        return ""
    entry = jobs.last_change_to(job.id, job.state)
    return "" if entry is None else actor(entry)


def time_taken(job: Job) -> str:
    """How long it has worked; what it waited or was paused is not counted."""
    return "" if job.started_at is None else duration(job.times_at(datetime.now(UTC)).active)


def elapsed(job: Job) -> str:
    """How long it has taken, and how much of that it worked, waited and was paused."""
    times = job.times_at(datetime.now(UTC))
    parts = [
        f"{duration(seconds)} {word}"
        for seconds, word in ((times.active, "active"), (times.waiting, "waiting"), (times.paused, "paused"))
        if seconds >= _SHOWN_SECONDS
    ]
    return f"{duration(times.total)} ({', '.join(parts)})" if parts else duration(times.total)


def time_left(job: Job) -> str:
    """What the rest will take, where that is known."""
    seconds = job.seconds_left(datetime.now(UTC))
    return "" if seconds is None else f"about {duration(seconds)}"


def progress(job: Job) -> str:
    """How far it is: a share and the counts behind it."""
    counts = job.progress
    if not counts.total:
        return ""
    share = int(job.fraction * 100)
    return f"{share} % ({counts.processed:,} of {counts.total:,})"


def forgotten_kind(kind: str) -> str:
    """What to say of a kind that jobs wait for and nobody knows any more."""
    return (
        f"no kind {on_one_line(kind)!r} is registered here, and no worker that is alive knows it: its jobs wait until "
        "one does (KIND_UNKNOWN)"
    )


def failure(job: Job) -> str:
    """Why a job failed: the code first, for that is what one looks up."""
    text = on_one_line(job.last_error or job.killed_reason or "")
    return f"{job.error_code}: {text}" if job.error_code else text


def ending(job: Job, canceled_by: str) -> str:
    """What came of a job, or what it is busy with."""
    match job.state.shown_as.value:
        case "succeeded" | "committed" | "abandoned":
            return outcome_of_items(job) or payload(job.result)
        case "failed":
            return failure(job)
        case "canceled":
            who = f"by {canceled_by}" if canceled_by else ""
            return f"{who}: {on_one_line(job.killed_reason)}".lstrip(": ") if job.killed_reason else who
        case "retrying":
            return f"waits to try again after {failure(job)}"
    return on_one_line(job.message or "")


def outcome_of_items(job: Job) -> str:
    """The counts of a job with many items that did not all end well."""
    counts = job.progress
    parts = [
        f"{count:,} {word}"
        for count, word in (
            (counts.done, "done"),
            (counts.failed, "failed"),
            (counts.not_found, "not found"),
            (counts.skipped, "skipped"),
        )
        if count
    ]
    return ", ".join(parts) if counts.total > 1 else ""
