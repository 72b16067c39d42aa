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
    recovers: str
    """When it takes up again what a killed worker had in hand, by its documentation."""
    questions: tuple[str, ...] | None = None
    """What it can be asked, if not everything."""
    slow: bool = False
    """Would a hundred thousand units take it more than a few minutes? Then it gets fewer."""

    @property
    def in_tables(self) -> bool:
        """Can its queue be filled by a database's own means?"""
        return self.server == "postgresql" or self.environment is None


PEERS = (
    Peer(
        "Penstock on PostgreSQL", "penstock_jobs", None, "postgresql",
        settings="defaults",
        durable="the job, its history and its result, before submit returns",
        result_kept=True,
        packages=("penstock",),
        recovers="after a second when another worker runs on the machine, else when the lease runs out (30 s)",
    ),
    Peer(
        "Penstock on SQLite", "penstock_jobs", None, "sqlite",
        settings="defaults (WAL, synchronous=NORMAL)",
        durable="against a killed process; the last commits may be lost with the power",
        result_kept=True,
        packages=("penstock",),
        recovers="after a second when another worker runs on the machine, else when the lease runs out (30 s)",
    ),
    Peer(
        "(our rows on SQLite, no library)", "bare_sqlite_jobs", None, "sqlite",
        settings="the sqlite3 module, our tables and statements written by hand; one job at a time",
        durable="as Penstock on SQLite",
        result_kept=True,
        packages=("penstock",),
        recovers="not at all",
        questions=("pick-up",),
    ),
    Peer(
        "PgQueuer", "pgqueuer_jobs", "pgqueuer", "postgresql",
        settings="asyncpg pool, uvloop, batch_size=500, pgq autovac; a dead worker's jobs after 30 s, as by default",
        durable="the job, before enqueue returns; its log entries; ends are written in batches, up to 0.1 s late",
        result_kept=False,
        packages=("pgqueuer", "asyncpg"),
        recovers="when it has not beaten for 30 s",
    ),
    Peer(
        "Huey on Redis", "huey_jobs", "huey", "redis",
        settings="2 worker processes",
        durable="in Valkey's memory and its snapshots; no append-only file",
        result_kept=True,
        packages=("huey", "redis"),
        recovers="not at all: a job that was taken is not kept",
    ),
    Peer(
        "Huey on SQLite", "huey_jobs", "huey", "sqlite",
        settings="1 worker thread; polls as by default, after 0.1 s when idle, then ever slower",
        durable="before the call returns (WAL, synchronous=FULL); a job that was taken is not kept",
        result_kept=True,
        packages=("huey",),
        recovers="not at all: a job that was taken is not kept",
    ),
    Peer(
        "Celery on Redis", "celery_jobs", "celery", "redis",
        settings="prefork pool of 2, task_acks_late, no gossip, no mingle",
        durable="in Valkey's memory and its snapshots; no append-only file",
        result_kept=True,
        packages=("celery", "kombu", "redis"),
        recovers="after the visibility timeout, an hour",
        slow=True,
    ),
    Peer(
        "Procrastinate", "procrastinate_jobs", "procrastinate", "postgresql",
        settings="psycopg binary, concurrency=20, 10 connections, jobs of a worker silent for 30 s retried each minute",
        durable="the job and its events, before defer returns",
        result_kept=False,
        packages=("procrastinate", "psycopg"),
        recovers="by a periodic task one writes; here each minute, for workers silent for 30 s",
        slow=True,
    ),
    Peer(
        "RQ on Redis", "rq_jobs", "rq", "redis",
        settings="WorkerPool of 2 SimpleWorkers (no fork for each job)",
        durable="in Valkey's memory and its snapshots; no append-only file",
        result_kept=True,
        packages=("rq", "redis"),
        recovers="at the next maintenance, every 10 minutes",
        slow=True,
    ),
    Peer(
        "Dramatiq on Redis", "dramatiq_jobs", "dramatiq", "redis",
        settings="2 processes of 8 threads",
        durable="in Valkey's memory and its snapshots; no append-only file",
        result_kept=True,
        packages=("dramatiq", "redis"),
        recovers="at a maintenance by chance, once the worker has not beaten for 60 s",
    ),
    Peer(
        "arq", "arq_jobs", "arq", "redis",
        settings="max_jobs=100, allow_abort_jobs; polls as by default, every 0.5 s",
        durable="in Valkey's memory and its snapshots, no append-only file; a job stays queued until it has ended",
        result_kept=True,
        packages=("arq", "redis"),
        recovers="when the job's time is over, 310 s",
    ),
    Peer(
        "DBOS", "dbos_jobs", "dbos", "postgresql",
        settings="no steps, polling_interval_sec=0.01, worker_concurrency=500, 8 threads, one executor id",
        durable="the workflow, before enqueue returns; its result, when it ends",
        result_kept=True,
        packages=("dbos", "psycopg"),
        recovers="when a process with the same executor id starts",
        slow=True,
    ),
    Peer(
        "TaskIQ", "taskiq_jobs", "taskiq", "redis",
        settings="RedisStreamBroker, 2 worker processes as by default, hardkill_count=-1 (ends when told to)",
        durable="in Valkey's memory and its snapshots, no append-only file; a job is acknowledged after its result",
        result_kept=True,
        packages=("taskiq", "taskiq-redis", "redis"),
        recovers="after 10 minutes without an acknowledgement",
    ),
    Peer(
        "Oban", "oban_jobs", "oban", "postgresql",
        settings="psycopg pool of 10, uvloop, queue limit 500",
        durable="the job, before enqueue returns; its end and what it recorded, in batches",
        result_kept=True,
        packages=("oban", "psycopg"),
        recovers="after 5 minutes, looked for each minute",
    ),
    Peer(
        "Awa", "awa_jobs", "awa", "postgresql",
        settings="queue storage, max_workers=500",
        durable="the job, before insert returns; its end, in batches",
        result_kept=False,
        packages=("awa-pg",),
        recovers="when it has not beaten for 90 s, looked for every 30 s",
    ),
)  # fmt: skip
