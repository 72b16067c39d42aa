"""All tables, in one place. ``tests/migrations`` proves that the migrations make exactly these.

Two ideas carry the claim:

- ``jobs.next_claim_at`` is when a job may next be served, and null when it has nothing to claim. It is both the queue's
  order (a job served now goes behind those that have waited) and its filter, so the claim is one index range.
- Items 1..n of a job are handed out by position: ``last_claimed`` is the last position handed out, ``last_claimable``
  the last one that may be. Only items that came back (retry, lost lease, reprocess) carry ``ready_at`` and are looked
  for.
  So a claim costs the same with ten items in the table and with ten million.

``job_items`` and ``job_events`` carry no foreign key: each row is written in the transaction that writes its job, and
the check would lock the job's row once for every item inserted.

``jobs.run_at`` is when a job that was only recorded is released by itself; of a schedule's job, the tick it is for.

``jobs.engine`` names who moves the job, where that is not us: it has no items that a worker of ours could claim, and
the tasks that it is made of are in ``job_tasks``.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ColumnElement,
    Double,
    Index,
    Integer,
    PrimaryKeyConstraint,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    and_,
    literal_column,
    text,
)

from penstock.lifecycle import bounds
from penstock.lifecycle.states import (
    ACTIVE,
    FINISHED,
    FLOWING,
    ErrorType,
    ItemRole,
    ItemStatus,
    JobState,
    KilledBy,
    Phase,
)
from penstock.lifecycle.tracked_tasks import FIRST_END
from penstock.store.dialects.partial_index import only_where
from penstock.store.placement import own_metadata
from penstock.store.types import Identifier, Moment, Payload, RowNumber

metadata = own_metadata()


def _one_of(column: str, values: list[str], name: str) -> CheckConstraint:
    value_list = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({value_list})", name=name)


def _counter(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False, server_default=text("0"))


def _sum(name: str) -> Column[float]:
    return Column(name, Double, nullable=False, server_default=text("0"))


jobs = Table(
    "jobs",
    metadata,
    Column("id", Identifier, primary_key=True),
    Column("kind", String(bounds.KIND.longest), nullable=False),
    Column("user_id", String(bounds.OWNER.longest)),
    Column("state", String(16), nullable=False),
    Column("previous_state", String(16)),
    Column("phase", String(16), nullable=False, server_default=text(f"'{Phase.INIT}'")),
    Column("run", Integer, nullable=False, server_default=text("1")),
    Column("priority", SmallInteger, nullable=False, server_default=text("0")),
    Column("params", Payload),
    Column("result", Payload),
    Column("unique_key", String(bounds.UNIQUE_KEY.longest)),
    Column("idempotency_key", String(64)),
    Column("leader_id", Identifier),
    Column("has_followers", Boolean, nullable=False, server_default=text("false")),
    Column("single_step", Boolean, nullable=False, server_default=text("true")),
    Column("planned", Boolean, nullable=False, server_default=text("true")),
    Column("has_finalizer", Boolean, nullable=False, server_default=text("false")),
    _counter("total_items"),
    _counter("processed_items"),
    _counter("failed_items"),
    _counter("not_found_items"),
    _counter("skipped_items"),
    _counter("returned_items"),
    _counter("last_claimed"),
    _counter("last_claimable"),
    Column("next_claim_at", Moment),
    _counter("attempts"),
    _counter("retries"),
    _counter("deaths"),
    Column("max_retries", Integer, nullable=False, server_default=text("3")),
    Column("last_error", Text),
    Column("error_code", String(bounds.LONGEST_CODE)),
    Column("error_type", String(16)),
    Column("failed_phase", String(16)),
    Column("killed_by", String(16)),
    Column("killed_reason", Text),
    Column("message", Text),
    Column("last_heartbeat", Moment),
    Column("file_id", Identifier),
    Column("ip_address", String(bounds.IP_ADDRESS.longest)),
    Column("event_sequence", Integer, nullable=False, server_default=text("1")),
    Column("created_at", Moment, nullable=False),
    Column("queued_at", Moment),
    Column("started_at", Moment),
    Column("completed_at", Moment),
    Column("committed_at", Moment),
    Column("abandoned_at", Moment),
    Column("canceled_at", Moment),
    Column("updated_at", Moment, nullable=False),
    Column("title", String(bounds.LONGEST_TITLE)),
    Column("result_at", Moment),
    Column("error_class", String(bounds.LONGEST_CLASS)),
    Column("state_since", Moment),
    _sum("waiting_seconds"),
    _sum("active_seconds"),
    _sum("paused_seconds"),
    _sum("recent_items"),
    _sum("recent_seconds"),
    Column("recent_at", Moment),
    Column("engine", String(16)),
    Column("run_at", Moment),
    _one_of("state", list(JobState), "state"),
    _one_of("phase", list(Phase), "phase"),
    _one_of("error_type", list(ErrorType), "error_type"),
    _one_of("killed_by", list(KilledBy), "killed_by"),
    CheckConstraint("processed_items <= total_items", name="processed_within_total"),
)

_has_next_claim = jobs.c.next_claim_at.is_not(None)
Index(
    "ix_jobs_next_claim",
    jobs.c.kind,
    jobs.c.priority.desc(),
    jobs.c.next_claim_at,
    **only_where(_has_next_claim),
)
Index("ix_jobs_user_id_created_at_id", jobs.c.user_id, jobs.c.created_at, jobs.c.id)
Index("ix_jobs_created_at_id", jobs.c.created_at, jobs.c.id)
Index("ix_jobs_user_id_state_created_at_id", jobs.c.user_id, jobs.c.state, jobs.c.created_at, jobs.c.id)
Index("ix_jobs_state_created_at_id", jobs.c.state, jobs.c.created_at, jobs.c.id)
Index("ix_jobs_state_kind", jobs.c.state, jobs.c.kind)


def _in_state(states: frozenset[JobState]) -> ColumnElement[bool]:
    return jobs.c.state.in_([literal_column(f"'{state}'") for state in JobState if state in states])


# What the partial indexes cover. A statement that says it in the same words, constants and all, can use them.
_WORKS = and_(jobs.c.unique_key.is_not(None), jobs.c.leader_id.is_(None))
JOB_LEADS = and_(_WORKS, _in_state(FLOWING))
JOB_IS_OWNED = and_(_WORKS, jobs.c.user_id.is_not(None), _in_state(ACTIVE))
JOB_IS_A_GUESTS = and_(_WORKS, jobs.c.user_id.is_(None), _in_state(ACTIVE))
JOB_FOLLOWS = and_(jobs.c.leader_id.is_not(None), _in_state(ACTIVE))

# What is over, by when it was: for results that nobody used, and for what has been kept long enough.
JOB_IS_DONE = _in_state(FINISHED - {JobState.CANCELED})
JOB_IS_CANCELED = _in_state(frozenset({JobState.CANCELED}))
Index("ix_jobs_done", jobs.c.kind, jobs.c.state, jobs.c.completed_at, **only_where(JOB_IS_DONE))
Index("ix_jobs_canceled", jobs.c.kind, jobs.c.canceled_at, **only_where(JOB_IS_CANCELED))

# One job leads a key; and an owner, or all guests together, have one active job of a key that does work.
Index("uq_jobs_leads", jobs.c.kind, jobs.c.unique_key, unique=True, **only_where(JOB_LEADS))
Index(
    "uq_jobs_owned",
    jobs.c.kind, jobs.c.unique_key, jobs.c.user_id,
    unique=True, **only_where(JOB_IS_OWNED),
)  # fmt: skip
Index(
    "uq_jobs_guests",
    jobs.c.kind, jobs.c.unique_key,
    unique=True, **only_where(JOB_IS_A_GUESTS),
)  # fmt: skip
Index("ix_jobs_following", jobs.c.leader_id, **only_where(JOB_FOLLOWS))

JOB_IS_DELAYED = and_(jobs.c.run_at.is_not(None), jobs.c.state == literal_column(f"'{JobState.CREATED}'"))
Index("ix_jobs_run_at", jobs.c.run_at, **only_where(JOB_IS_DELAYED))

_is_tracked = jobs.c.engine.is_not(None)
Index("ix_jobs_tracked", jobs.c.state, jobs.c.state_since, **only_where(_is_tracked))

_has_unique_key = jobs.c.unique_key.is_not(None)
Index("ix_jobs_unique_key", jobs.c.kind, jobs.c.unique_key, **only_where(_has_unique_key))

_follows = jobs.c.leader_id.is_not(None)
Index("ix_jobs_leader_id", jobs.c.leader_id, **only_where(_follows))

_has_file = jobs.c.file_id.is_not(None)
Index("ix_jobs_file_id", jobs.c.file_id, **only_where(_has_file))

_has_idempotency_key = jobs.c.idempotency_key.is_not(None)
Index("uq_jobs_idempotency_key", jobs.c.idempotency_key, unique=True, **only_where(_has_idempotency_key))

job_items = Table(
    "job_items",
    metadata,
    Column("id", RowNumber, primary_key=True, autoincrement=True),
    Column("job_id", Identifier, nullable=False),
    Column("user_id", String(bounds.OWNER.longest)),
    Column("kind", String(bounds.KIND.longest), nullable=False),
    Column("role", String(8), nullable=False, server_default=text(f"'{ItemRole.ITEM}'")),
    Column("position", Integer, nullable=False),
    Column("status", String(10), nullable=False, server_default=text(f"'{ItemStatus.PENDING}'")),
    _counter("attempts"),
    _counter("not_found_attempts"),
    _counter("earlier_not_found"),
    _counter("deaths"),
    Column("ready_at", Moment),
    Column("lease", Identifier),
    Column("alone", Identifier),
    Column("locked_by", String(64)),
    Column("locked_at", Moment),
    Column("lock_expires_at", Moment),
    Column("input_json", Payload),
    Column("normalized_json", Payload),
    Column("result_json", Payload),
    Column("last_error", Text),
    Column("error_code", String(bounds.LONGEST_CODE)),
    Column("error_type", String(16)),
    Column("killed_by", String(16)),
    Column("traceback", Text),
    Column("updated_at", Moment, nullable=False),
    Column("error_class", String(bounds.LONGEST_CLASS)),
    UniqueConstraint("job_id", "position"),
    _one_of("status", list(ItemStatus), "status"),
    _one_of("role", list(ItemRole), "role"),
    CheckConstraint("(status = 'PROCESSING') = (lease IS NOT NULL)", name="lease_while_processing"),
)

Index(
    "ix_job_items_job_id_status_updated_at_id",
    job_items.c.job_id, job_items.c.status, job_items.c.updated_at, job_items.c.id,
)  # fmt: skip

ITEM_IS_OPEN = job_items.c.status.in_([literal_column("'PENDING'"), literal_column("'PROCESSING'")])
"""What the two indexes below cover; SQLite uses it only for a question that says so in the same words."""
Index(
    "ix_job_items_status_user_id_updated_at_id",
    job_items.c.status, job_items.c.user_id, job_items.c.updated_at, job_items.c.id,
    **only_where(ITEM_IS_OPEN),
)  # fmt: skip

Index(
    "ix_job_items_status_kind_updated_at_id",
    job_items.c.status, job_items.c.kind, job_items.c.updated_at, job_items.c.id,
    **only_where(ITEM_IS_OPEN),
)  # fmt: skip

_is_returned = and_(job_items.c.status == literal_column("'PENDING'"), job_items.c.ready_at.is_not(None))
Index(
    "ix_job_items_returned",
    job_items.c.job_id,
    job_items.c.ready_at,
    **only_where(_is_returned),
)

job_tasks = Table(
    "job_tasks",
    metadata,
    Column("job_id", Identifier, nullable=False),
    Column("task_id", String(bounds.TASK_ID.longest), nullable=False),
    Column("name", String(bounds.LONGEST_TASK_NAME)),
    _counter("version"),
    Column("status", SmallInteger, nullable=False),
    Column("leads_to", String(bounds.TASK_ID.longest)),
    Column("is_root", Boolean, nullable=False, server_default=text("false")),
    Column("is_awaited", Boolean, nullable=False, server_default=text("false")),
    Column("is_counted", Boolean, nullable=False, server_default=text("true")),
    Column("acks_late", Boolean, nullable=False, server_default=text("false")),
    Column("worker", String(bounds.LONGEST_WORKER)),
    Column("error", Text),
    Column("error_code", String(bounds.LONGEST_CODE)),
    Column("error_class", String(bounds.LONGEST_CLASS)),
    Column("killed_by", String(16)),
    Column("result", Payload),
    Column("checked_at", Moment, nullable=False),
    Column("updated_at", Moment, nullable=False),
    PrimaryKeyConstraint("job_id", "task_id"),
    _one_of("killed_by", list(KilledBy), "killed_by"),
)
"""The tasks of jobs that another engine moves, each as far as anybody has heard of it."""

TASK_IS_OPEN = job_tasks.c.status < literal_column(str(int(FIRST_END)))
Index("ix_job_tasks_checked_at", job_tasks.c.checked_at, **only_where(TASK_IS_OPEN))

job_events = Table(
    "job_events",
    metadata,
    Column("job_id", Identifier, nullable=False),
    Column("sequence", Integer, nullable=False),
    Column("run", Integer, nullable=False, server_default=text("1")),
    Column("from_state", String(16)),
    Column("to_state", String(16), nullable=False),
    Column("actor", String(8), nullable=False),
    Column("actor_id", String(bounds.CALLER.longest)),
    Column("reason", Text),
    Column("data", Payload),
    Column("at", Moment, nullable=False),
    PrimaryKeyConstraint("job_id", "sequence"),
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("key", String(64), primary_key=True),
    Column("request", String(64)),
    Column("job_id", Identifier),
    Column("resource_id", Identifier),
    Column("created_at", Moment, nullable=False),
)

Index("ix_idempotency_keys_job_id", idempotency_keys.c.job_id)
Index("ix_idempotency_keys_created_at", idempotency_keys.c.created_at)

pruned_jobs = Table(
    "pruned_jobs",
    metadata,
    Column("id", Identifier, primary_key=True),
    Column("user_id", String(bounds.OWNER.longest)),
    Column("file_id", Identifier),
    Column("has_leftovers", Boolean, nullable=False),
    Column("pruned_at", Moment, nullable=False),
)
"""Jobs whose time was over: for whoever asks for one of them, and until all that belonged to it has gone as well."""
_has_leftovers = pruned_jobs.c.has_leftovers
Index("ix_pruned_jobs_leftovers", pruned_jobs.c.pruned_at, **only_where(_has_leftovers))
Index("ix_pruned_jobs_pruned_at", pruned_jobs.c.pruned_at)

pruned_counts = Table(
    "pruned_counts",
    metadata,
    Column("kind", String(bounds.KIND.longest), nullable=False),
    Column("state", String(16), nullable=False),
    Column("jobs", BigInteger, nullable=False, server_default=text("0")),
    Column("items", BigInteger, nullable=False, server_default=text("0")),
    PrimaryKeyConstraint("kind", "state"),
    _one_of("state", list(JobState), "state"),
)
"""How many jobs and items there were that have been pruned."""

lane_samples = Table(
    "lane_samples",
    metadata,
    Column("kind", String(bounds.KIND.longest), nullable=False),
    Column("at", Moment, nullable=False),
    Column("worker", String(64), nullable=False),
    Column("data", Payload, nullable=False),
    PrimaryKeyConstraint("kind", "at", "worker"),
)
Index("ix_lane_samples_at", lane_samples.c.at)

workers = Table(
    "workers",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("started_at", Moment, nullable=False),
    Column("seen_at", Moment, nullable=False),
    Column("data", Payload, nullable=False),
)

worker_deaths = Table(
    "worker_deaths",
    metadata,
    Column("worker", String(64), primary_key=True),
    Column("at", Moment, nullable=False),
    _counter("items"),
)

files = Table(
    "files",
    metadata,
    Column("id", Identifier, primary_key=True),
    Column("user_id", String(bounds.OWNER.longest)),
    Column("name", String(bounds.FILE_NAME.longest), nullable=False),
    Column("media_type", String(bounds.MEDIA_TYPE.longest)),
    Column("size_bytes", BigInteger, nullable=False),
    Column("sha256", String(64), nullable=False),
    Column("created_at", Moment, nullable=False),
)
Index("ix_files_sha256", files.c.sha256)
Index("ix_files_user_id_created_at", files.c.user_id, files.c.created_at)

outbox = Table(
    "outbox",
    metadata,
    Column("id", RowNumber, primary_key=True, autoincrement=True),
    Column("topic", String(bounds.TOPIC.longest), nullable=False),
    Column("key", String(bounds.MESSAGE_KEY.longest)),
    Column("payload", Payload, nullable=False),
    _counter("attempts"),
    Column("last_error", Text),
    Column("ready_at", Moment, nullable=False),
    Column("created_at", Moment, nullable=False),
    Column("sent_at", Moment),
    Column("lease", Identifier),
    # Otherwise SQLite gives the number of a deleted message to another one: consumers know messages by it.
    sqlite_autoincrement=True,
)
_unsent = outbox.c.sent_at.is_(None)
Index("ix_outbox_unsent", outbox.c.id, **only_where(_unsent))
Index("ix_outbox_unsent_topic", outbox.c.topic, outbox.c.id, **only_where(_unsent))
Index(
    "ix_outbox_unsent_topic_key",
    outbox.c.topic, outbox.c.key, outbox.c.id,
    **only_where(_unsent),
)  # fmt: skip

inbox = Table(
    "inbox",
    metadata,
    Column("subscriber", String(bounds.SUBSCRIBER.longest), nullable=False),
    Column("topic", String(bounds.TOPIC.longest), nullable=False),
    Column("message_id", String(bounds.MESSAGE_ID.longest), nullable=False),
    Column("accepted_at", Moment, nullable=False),
    PrimaryKeyConstraint("subscriber", "topic", "message_id"),
)
"""Which messages had their effect: each is written in the transaction of the effect."""
Index("ix_inbox_accepted_at", inbox.c.accepted_at)

ended_sessions = Table(
    "ended_sessions",
    metadata,
    Column("subject", String(bounds.CALLER.longest + 9), primary_key=True),
    Column("issued_before", Moment, nullable=False),
    Column("ended_at", Moment, nullable=False),
    Column("forget_at", Moment),
)
"""Whose tokens are void although they have not run out: everybody's, a user's, or one session's."""
Index("ix_ended_sessions_ended_at", ended_sessions.c.ended_at)

schedules = Table(
    "schedules",
    metadata,
    Column("name", String(bounds.SCHEDULE.longest), primary_key=True),
    Column("kind", String(bounds.KIND.longest), nullable=False),
    Column("definition", Payload, nullable=False),
    Column("is_paused", Boolean, nullable=False, server_default=text("false")),
    Column("next_at", Moment),
    Column("last_at", Moment),
    Column("last_job_id", Identifier),
    Column("last_error", Text),
    Column("updated_at", Moment, nullable=False),
)
"""What is submitted again and again: each tick is one job, whoever comes first."""


def _unique_names() -> frozenset[str]:
    """Found by name, as a database names what a row violates."""
    indexes = [index for table in metadata.tables.values() for index in table.indexes if index.unique]
    constraints = [
        constraint
        for table in metadata.tables.values()
        for constraint in table.constraints
        if isinstance(constraint, PrimaryKeyConstraint | UniqueConstraint)
    ]
    return frozenset(str(entry.name) for entry in [*indexes, *constraints])


UNIQUE_NAMES = _unique_names()
"""The primary keys, unique constraints and unique indexes of our tables."""
