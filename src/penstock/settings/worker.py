"""How workers claim, hold, record and plan, and when they give up."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from pydantic_settings import BaseSettings


class WorkerSettings(BaseSettings):
    """How workers claim, hold, record and plan, and when they give up."""

    target_slice_ms: Annotated[
        int,
        Field(
            validation_alias="WORKER_TARGET_SLICE_MS",
            ge=10,
            le=600_000,
            description="How much work a worker claims at once, in milliseconds of it.",
        ),
    ] = 5000
    claim_min: Annotated[
        int, Field(validation_alias="CLAIM_MIN", ge=1, description="The fewest items a worker asks for at once.")
    ] = 1
    claim_max: Annotated[
        int,
        Field(validation_alias="CLAIM_MAX", ge=1, le=10_000, description="The most items a worker asks for at once."),
    ] = 500
    safety_factor: Annotated[
        float,
        Field(
            validation_alias="SAFETY_FACTOR",
            gt=0,
            le=1,
            description="The share of a slice that claimed work is meant to fill.",
        ),
    ] = 0.7
    lock_floor_ms: Annotated[
        int, Field(validation_alias="LOCK_FLOOR_MS", ge=100, description="The shortest lease on a claimed item.")
    ] = 30_000
    lock_cap_ms: Annotated[
        int, Field(validation_alias="LOCK_CAP_MS", ge=100, description="The longest lease on a claimed item.")
    ] = 600_000
    ingest_min_rows: Annotated[
        int, Field(validation_alias="INGEST_MIN_ROWS", ge=1, description="The fewest planned items written at once.")
    ] = 64
    ingest_max_rows: Annotated[
        int,
        Field(
            validation_alias="INGEST_MAX_ROWS", ge=1, le=100_000, description="The most planned items written at once."
        ),
    ] = 5000
    ingest_max_batch_bytes: Annotated[
        int,
        Field(
            validation_alias="INGEST_MAX_BATCH_BYTES",
            ge=1024,
            description="The most bytes of planned items written at once.",
        ),
    ] = 8 * 1024 * 1024
    db_p50_ms: Annotated[
        float,
        Field(
            validation_alias="DB_P50_MS",
            gt=0,
            description="Batches of planned items grow while the database takes less than this for one.",
        ),
    ] = 250.0
    db_p95_ms: Annotated[
        float,
        Field(
            validation_alias="DB_P95_MS",
            gt=0,
            description="They are halved when it takes more than this for one.",
        ),
    ] = 1000.0
    heartbeat_seconds: Annotated[
        float,
        Field(
            validation_alias="PENSTOCK_HEARTBEAT_SECONDS",
            gt=0,
            description="How often a worker extends its leases and learns of stopped jobs.",
        ),
    ] = 1.0
    flush_ms: Annotated[
        int,
        Field(
            validation_alias="PENSTOCK_FLUSH_MS",
            ge=1,
            description="The longest a finished item waits in a worker before its outcome is written.",
        ),
    ] = 500
    poll_seconds: Annotated[
        float,
        Field(
            validation_alias="PENSTOCK_POLL_SECONDS",
            gt=0,
            description="How often an idle worker looks for work nobody told it of.",
        ),
    ] = 5.0
    sweep_seconds: Annotated[
        float,
        Field(
            validation_alias="PENSTOCK_SWEEP_SECONDS",
            gt=0,
            description="How often a worker makes a maintenance pass.",
        ),
    ] = 5.0
    stop_grace_seconds: Annotated[
        float,
        Field(
            validation_alias="PENSTOCK_STOP_GRACE_SECONDS",
            ge=0,
            description="How long running handlers may go on after SIGTERM before they are stopped and handed back.",
        ),
    ] = 25.0
    timeout_grace_seconds: Annotated[
        float,
        Field(
            validation_alias="PENSTOCK_TIMEOUT_GRACE_SECONDS",
            gt=0,
            description=(
                "How long after its kind's timeout an item that did not end is waited for before the watchdog ends it; "
                "also how long a kind's classify may take."
            ),
        ),
    ] = 10.0
    most_abandoned_threads: Annotated[
        int,
        Field(
            validation_alias="PENSTOCK_MOST_ABANDONED_THREADS",
            ge=0,
            description="How many threads of a kind that were given up may still run before none is replaced any more.",
        ),
    ] = 64
    suspect_deaths: Annotated[
        int,
        Field(
            validation_alias="PENSTOCK_SUSPECT_DEATHS",
            ge=1,
            description="An item held in so many deaths of workers is a suspect: it is run alone before it is blamed.",
        ),
    ] = 5
    stale_minutes: Annotated[
        float,
        Field(
            validation_alias="PENSTOCK_STALE_MINUTES",
            gt=0,
            description="A running job without a sign of life for this long is looked into and put right.",
        ),
    ] = 15.0
