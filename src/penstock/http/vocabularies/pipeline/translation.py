"""Items and jobs in the words of the pipeline. Pure: no database, no request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.lifecycle import grid
from penstock.lifecycle.job import Job
from penstock.lifecycle.states import JobState
from penstock.lifecycle.vocabularies import VOCABULARIES
from penstock.operations.read_items import ErrorGroup, ItemRow
from penstock.operations.samples import LaneSample

_WORDS = VOCABULARIES["queue_state"]
_SETTINGS = ("claim_size", "concurrency", "ingest_rows", "lease_seconds")


def job_fields(job: Job) -> dict[str, Any]:
    """What the pipeline's clients read of a job, beside what those of the tasks do."""
    params = job.params if isinstance(job.params, dict) else {}
    return {
        "jobId": str(job.id),
        "jobType": job.kind,
        "queueState": _WORDS.word(job.state, job.killed_by),
        "userId": job.user_id,
        "fileId": None if job.file_id is None else str(job.file_id),
        "totalItems": job.progress.total,
        "processedItems": job.progress.processed,
        "failedItems": job.progress.failed,
        "notFoundItems": job.progress.not_found,
        "skippedItems": job.progress.skipped,
        "lastHeartbeat": job.last_heartbeat,
        "attempts": job.attempts,
        "deaths": job.deaths,
        "lastError": job.last_error,
        "mapping": params.get("mapping"),
    }


def controllers(job: Job, latest: Sequence[LaneSample]) -> list[dict[str, Any]]:
    """What the workers that do this kind of job have chosen, beside the signals they followed."""
    if job.state is not JobState.RUNNING:
        return []
    return [controller(one) for one in latest if one.kind == job.kind]


def controller(one: LaneSample) -> dict[str, Any]:
    """How a worker's lane was set at some moment, and what it followed."""
    return {
        "worker": one.worker,
        "at": one.at,
        **{name: one.data.get(name) for name in _SETTINGS},
        "signals": {name: value for name, value in one.data.items() if name not in (*_SETTINGS, "gauges")},
        "gauges": one.data.get("gauges"),
    }


def item_fields(item: ItemRow) -> dict[str, Any]:
    """An item of any list."""
    return {
        "id": str(item.id),
        "jobId": str(item.job_id),
        "jobType": item.kind,
        "position": item.position,
        "status": item.status.value,
        "attempts": item.attempts,
        "deaths": item.deaths,
        "lockedBy": item.locked_by,
        "lockedAt": item.locked_at,
        "readyAt": item.ready_at,
        "updatedAt": item.updated_at,
        "lastError": item.last_error,
        "errorCode": item.error_code,
        "inputSummary": {"title": item.summary.title, **item.summary.more},
    }


def grid_item(item: ItemRow, columns: Sequence[str]) -> dict[str, Any]:
    """An item with its cells."""
    values = grid.cells(columns, item.result, item.normalized)
    return {**item_fields(item), "cells": dict(zip(columns or grid.WHOLE, values, strict=True))}


def error_group(group: ErrorGroup) -> dict[str, Any]:
    """Items that ended alike."""
    return {
        "status": group.status.value,
        "errorCode": group.error_code,
        "count": group.count,
        "example": group.example,
    }
