"""Who is compared: what each one stands on, how it is set, what of a job is durable and whether its result is kept."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Peer:
    """One way of running jobs."""

    name: str
    adapter: str
    """The module in ``adapters`` that speaks for it."""
    environment: str | None
    """The lock in ``locks`` it is installed from; None runs in our own environment."""
    server: str
    settings: str
    durable: str
    result_kept: bool
    packages: tuple[str, ...]
    """Whose versions are named."""


PEERS = (
    Peer(
        "Penstock on PostgreSQL", "penstock_jobs", None, "postgresql",
        settings="defaults",
        durable="the job, its history and its result, before submit returns",
        result_kept=True,
        packages=("penstock",),
    ),
    Peer(
        "Penstock on SQLite", "penstock_jobs", None, "sqlite",
        settings="defaults (WAL, synchronous=NORMAL)",
        durable="against a killed process; the last commits may be lost with the power",
        result_kept=True,
        packages=("penstock",),
    ),
    Peer(
        "PgQueuer", "pgqueuer_jobs", "pgqueuer", "postgresql",
        settings="asyncpg pool, uvloop, batch_size=500",
        durable="the job, before enqueue returns; its log entries; ends are written in batches, up to 0.1 s late",
        result_kept=False,
        packages=("pgqueuer", "asyncpg"),
    ),
    Peer(
        "Huey on Redis", "huey_jobs", "huey", "redis",
        settings="2 worker processes",
        durable="in Valkey's memory and its snapshots; no append-only file",
        result_kept=True,
        packages=("huey", "redis"),
    ),
    Peer(
        "Huey on SQLite", "huey_jobs", "huey", "sqlite",
        settings="1 worker thread; polls as by default, after 0.1 s when idle, then ever slower",
        durable="before the call returns (WAL, synchronous=FULL); a job that was taken is not kept",
        result_kept=True,
        packages=("huey",),
    ),
    Peer(
        "Celery on Redis", "celery_jobs", "celery", "redis",
        settings="prefork pool of 2, task_acks_late, no gossip, no mingle",
        durable="in Valkey's memory and its snapshots; no append-only file",
        result_kept=True,
        packages=("celery", "kombu", "redis"),
    ),
    Peer(
        "Procrastinate", "procrastinate_jobs", "procrastinate", "postgresql",
        settings="psycopg binary, concurrency=20, 10 connections, stalled jobs retried each minute",
        durable="the job and its events, before defer returns",
        result_kept=False,
        packages=("procrastinate", "psycopg"),
    ),
    Peer(
        "RQ on Redis", "rq_jobs", "rq", "redis",
        settings="WorkerPool of 2 SimpleWorkers (no fork for each job)",
        durable="in Valkey's memory and its snapshots; no append-only file",
        result_kept=True,
        packages=("rq", "redis"),
    ),
    Peer(
        "Dramatiq on Redis", "dramatiq_jobs", "dramatiq", "redis",
        settings="2 processes of 8 threads",
        durable="in Valkey's memory and its snapshots; no append-only file",
        result_kept=True,
        packages=("dramatiq", "redis"),
    ),
    Peer(
        "arq", "arq_jobs", "arq", "redis",
        settings="max_jobs=100; polls as by default, every 0.5 s",
        durable="in Valkey's memory and its snapshots, no append-only file; a job stays queued until it has ended",
        result_kept=True,
        packages=("arq", "redis"),
    ),
    Peer(
        "DBOS", "dbos_jobs", "dbos", "postgresql",
        settings="a workflow without steps, polling_interval_sec=0.01, worker_concurrency=500, 8 threads",
        durable="the workflow, before enqueue returns; its result, when it ends",
        result_kept=True,
        packages=("dbos", "psycopg"),
    ),
    Peer(
        "TaskIQ", "taskiq_jobs", "taskiq", "redis",
        settings="RedisStreamBroker, 2 worker processes as by default, hardkill_count=-1 (ends when told to)",
        durable="in Valkey's memory and its snapshots, no append-only file; a job is acknowledged after its result",
        result_kept=True,
        packages=("taskiq", "taskiq-redis", "redis"),
    ),
)  # fmt: skip
