"""What must be true of every database at every moment, read from the rows alone.

``violations(store)`` reads everything, so it is for the small databases of tests. Each line it answers names the job
and says what is wrong with it; an empty list means that nothing is lost, nothing counted wrongly and nothing happened
that the lifecycle does not allow.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from uuid import UUID

from sqlalchemy import select

from penstock.lifecycle.states import ACTIVE, ENDED_STATUSES, FLOWING, Actor, ItemRole, ItemStatus, JobState
from penstock.lifecycle.tracked_tasks import BAD_ENDS, FIRST_END, TaskStatus
from penstock.lifecycle.transitions import ENTRY, REPROCESS, is_legal, transitions_from
from penstock.store.engine import Store
from penstock.store.tables import idempotency_keys, job_events, job_items, job_tasks, jobs, pruned_jobs
from penstock.store.transaction import Transaction

S = JobState
GOOD_ENDS = frozenset({S.SUCCEEDED, S.COMMITTED, S.ABANDONED})
_ENDED_STATUSES = frozenset(status.value for status in ENDED_STATUSES)
_FAILURE = ("last_error", "error_code", "error_type", "failed_phase", "killed_by", "killed_reason")

# The timestamps a job must have in a state, and those it may have only in the states named.
_TIMESTAMPS: dict[JobState, tuple[str, ...]] = {
    S.QUEUED: ("queued_at",),
    S.RUNNING: ("queued_at", "started_at"),
    S.RETRYING: ("queued_at", "started_at"),
    S.PAUSED: ("queued_at",),
    S.SUCCEEDED: ("started_at", "completed_at"),
    S.FAILED: ("completed_at",),
    S.CANCELED: ("canceled_at", "killed_by"),
    S.COMMITTED: ("completed_at", "committed_at"),
    S.ABANDONED: ("completed_at", "abandoned_at"),
}
_ONLY_IN: dict[str, frozenset[JobState]] = {
    "completed_at": GOOD_ENDS | {S.FAILED},
    "committed_at": frozenset({S.COMMITTED}),
    "abandoned_at": frozenset({S.ABANDONED}),
    "canceled_at": frozenset({S.CANCELED}),
    "failed_phase": frozenset({S.FAILED}),
    "killed_by": frozenset({S.FAILED, S.CANCELED}),
    "killed_reason": frozenset({S.FAILED, S.CANCELED}),
}


@dataclass(frozen=True, slots=True)
class Picture:
    """One job with all that belongs to it."""

    job: Any
    items: Sequence[Any]
    events: Sequence[Any]
    leader: Any | None
    leaders_events: Sequence[Any]
    tasks: Sequence[Any] = ()

    @property
    def is_tracked(self) -> bool:
        """Does another engine move it?"""
        return self.job.engine is not None

    @property
    def state(self) -> JobState:
        """Where the job stands."""
        return JobState(self.job.state)

    @property
    def follows(self) -> bool:
        """Does another job do the work?"""
        return self.job.leader_id is not None

    def of(self, role: ItemRole) -> list[Any]:
        """Its items of one role."""
        return [item for item in self.items if item.role == role.value]

    @property
    def returned(self) -> list[Any]:
        """Its items that came back and wait to be claimed again."""
        return [item for item in self.items if item.status == ItemStatus.PENDING and item.ready_at is not None]

    @property
    def in_hands(self) -> list[Any]:
        """Its items that a worker holds."""
        return [item for item in self.items if item.status == ItemStatus.PROCESSING]


_JOBS = select(*jobs.c).order_by(jobs.c.id)
_ITEMS = select(*job_items.c).order_by(job_items.c.position)
_EVENTS = select(*job_events.c).order_by(job_events.c.sequence)
_TASKS = select(*job_tasks.c).order_by(job_tasks.c.task_id)
_LEFTOVERS = select(pruned_jobs.c.id).where(pruned_jobs.c.has_leftovers)


def violations(store: Store, *, clock_set_back: bool = False) -> list[str]:
    """Everything that is wrong with a database; nothing when all is well.

    Where the clock was set back meanwhile, moments need not be in their order.
    """
    return violations_in(store.read(pictures), clock_set_back=clock_set_back) + store.read(_lost_keys)


def violations_in(pictures: Sequence[Picture], *, clock_set_back: bool = False) -> list[str]:
    """Everything that is wrong with the jobs of a database, for who has read them already."""
    checks = [check for check in _CHECKS if not clock_set_back or check not in _IN_TIME]
    wrongs = [
        f"job {picture.job.id} ({picture.job.kind}, {picture.job.state}): {wrong}"
        for picture in pictures
        for check in checks
        for wrong in check(picture)
    ]
    return wrongs + list(_shared_keys(pictures))


def pictures(transaction: Transaction) -> list[Picture]:
    """Every job with all that belongs to it."""
    items: defaultdict[UUID, list[Any]] = defaultdict(list)
    events: defaultdict[UUID, list[Any]] = defaultdict(list)
    tasks: defaultdict[UUID, list[Any]] = defaultdict(list)
    for task in transaction.connection.execute(_TASKS):
        tasks[task.job_id].append(task)
    for item in transaction.connection.execute(_ITEMS):
        items[item.job_id].append(item)
    for event in transaction.connection.execute(_EVENTS):
        events[event.job_id].append(event)
    rows = {row.id: row for row in transaction.connection.execute(_JOBS)}
    # What belonged to a job that was pruned goes after it.
    orphans = (set(items) | set(events)) - set(rows) - set(transaction.connection.execute(_LEFTOVERS).scalars())
    if orphans:
        raise AssertionError(f"items or history of jobs that do not exist: {sorted(map(str, orphans))}")
    return [
        Picture(
            row, items[row.id], events[row.id], rows.get(row.leader_id), events.get(row.leader_id, ()), tasks[row.id]
        )
        for row in rows.values()
    ]


def _history(picture: Picture) -> Iterator[str]:
    """Only legal transitions, densely numbered, and the last one is where the job is."""
    job, events = picture.job, picture.events
    numbers = [event.sequence for event in events]
    if numbers != list(range(1, job.event_sequence + 1)):
        yield f"its history is numbered {numbers}, its event_sequence is {job.event_sequence}"
    if not events:
        return
    first, last = events[0], events[-1]
    if first.from_state is not None or S(first.to_state) not in ENTRY or first.run != 1:
        yield f"its history begins with {first.from_state} → {first.to_state} in run {first.run}"
    for before, event in pairwise(events):
        step = f"line {event.sequence} of its history, {event.from_state} → {event.to_state},"
        if event.from_state != before.to_state:
            yield f"{step} does not begin where line {before.sequence} ended ({before.to_state})"
        elif not is_legal(S(event.from_state), S(event.to_state)):
            yield f"{step} is not legal"
        is_reprocess = event.from_state in REPROCESS.sources and event.to_state == REPROCESS.target
        if event.run != before.run + is_reprocess:
            yield f"{step} is in run {event.run}, after run {before.run}"
    death_count = sum(event.run == job.run and event.from_state == event.to_state for event in events)
    if death_count != job.deaths:
        yield f"its history tells of {death_count} deaths in this run, it counts {job.deaths}"
    if (last.to_state, last.from_state, last.run) != (job.state, job.previous_state, job.run):
        yield (
            f"its history ends with {last.from_state} → {last.to_state} in run {last.run}, "
            f"the job came from {job.previous_state} and is in run {job.run}"
        )


def _counters(picture: Picture) -> Iterator[str]:
    """Each counter is what a COUNT would say; one who follows has no items, and its leader's counts in the end."""
    job = picture.job
    if picture.follows:
        if picture.items:
            yield f"it follows another job, but has {len(picture.items)} items of its own"
        return
    if picture.is_tracked:
        return
    items = picture.of(ItemRole.ITEM)
    statuses = Counter(item.status for item in items)
    expected = {
        "total_items": len(items),
        "processed_items": sum(statuses[status] for status in _ENDED_STATUSES),
        "failed_items": statuses[ItemStatus.ERROR],
        "not_found_items": statuses[ItemStatus.NOT_FOUND],
        "skipped_items": statuses[ItemStatus.SKIPPED],
        "returned_items": len(picture.returned),
    }
    for name, count in expected.items():
        if getattr(job, name) != count:
            yield f"{name} is {getattr(job, name)}, a count says {count}"


def _positions(picture: Picture) -> Iterator[str]:
    """The plan is at 0, items at 1..total, at most one finalize behind them, and what is open is what is there."""
    job = picture.job
    if picture.follows or picture.is_tracked:
        return
    plan, finalize = picture.of(ItemRole.PLAN), picture.of(ItemRole.FINALIZE)
    numbers = [item.position for item in picture.of(ItemRole.ITEM)]
    if numbers != list(range(1, job.total_items + 1)):
        yield f"its {job.total_items} items are at the positions {numbers}"
    if [item.position for item in plan] not in ([], [0]):
        yield f"its plan is at {[item.position for item in plan]}"
    if not job.planned and not plan:
        yield "it is not planned and has no plan"
    if [item.position for item in finalize] not in ([], [job.total_items + 1]):
        yield f"its finalize is at {[item.position for item in finalize]}, it has {job.total_items} items"
    if finalize and not job.has_finalizer:
        yield "it has a finalize item, but does not finalize"
    last_claimable = job.total_items + len(finalize)
    if job.last_claimable != last_claimable:
        yield f"last_claimable is {job.last_claimable}, it should be {last_claimable}"
    least = -1 if plan else 0
    if not least <= job.last_claimed <= job.last_claimable:
        yield f"last_claimed is {job.last_claimed}, it should be from {least} to {job.last_claimable}"
    if job.single_step and job.total_items != 1:
        yield f"it is single-step and has {job.total_items} items"


def _items(picture: Picture) -> Iterator[str]:
    """What is fresh lies behind last_claimed; only an item in a worker's hands has a lease; tries are bounded."""
    job = picture.job
    for item in picture.items:
        name = f"{item.role} {item.position} ({item.status})"
        fresh = item.status == ItemStatus.PENDING and item.ready_at is None
        if fresh != (item.position > job.last_claimed):
            yield f"{name} is {'fresh' if fresh else 'not fresh'}, and last_claimed is {job.last_claimed}"
        if fresh and (item.attempts or item.deaths):
            yield f"{name} is fresh and has {item.attempts} attempts and {item.deaths} deaths"
        if item.ready_at is not None and item.status != ItemStatus.PENDING:
            yield f"{name} has a ready_at"
        lease_fields = {
            name for name in ("lease", "locked_by", "locked_at", "lock_expires_at") if getattr(item, name) is not None
        }
        if len(lease_fields) not in (0, 4) or bool(lease_fields) != (item.status == ItemStatus.PROCESSING):
            yield f"{name} has {sorted(lease_fields) or 'no lease'}"
        failed_attempts = item.attempts - item.not_found_attempts
        if not 0 <= failed_attempts <= job.max_retries + 1:
            yield f"{name} has {failed_attempts} attempts, its job allows {job.max_retries + 1}"
        if item.attempts == 0 and item.status in _ENDED_STATUSES | {ItemStatus.PROCESSING}:
            yield f"{name} was never tried"
        if (item.user_id, item.kind) != (job.user_id, job.kind):
            yield f"{name} belongs to {item.user_id} and {item.kind}, its job to {job.user_id}"
        if item.status == ItemStatus.ERROR and item.error_code is None:
            yield f"{name} has no error_code"


def _turn(picture: Picture) -> Iterator[str]:
    """Who has something to claim is in line and in time, and nobody else is. Nothing is lost."""
    job = picture.job
    if picture.is_tracked:
        return
    claimable = job.last_claimed < job.last_claimable or bool(picture.returned)
    if picture.state not in FLOWING or picture.follows:
        if job.next_claim_at is not None:
            yield f"it has a turn at {job.next_claim_at}, though it {'follows' if picture.follows else 'does not flow'}"
        return
    if job.next_claim_at is not None and not claimable:
        yield "it has a turn and nothing to claim"
    if job.next_claim_at is None and claimable:
        yield "LOST: it has something to claim and no turn"
    elif job.next_claim_at is None and not picture.in_hands:
        yield "LOST: it has no turn and nothing in a worker's hands"


def _turn_in_time(picture: Picture) -> Iterator[str]:
    """A job whose items are all in their backoff is in line when the first of them is ready."""
    job = picture.job
    if job.next_claim_at is not None and job.last_claimed >= job.last_claimable and picture.returned:
        soonest = min(item.ready_at for item in picture.returned)
        if job.next_claim_at > max(soonest, job.updated_at):
            yield f"its turn is at {job.next_claim_at}, its first item is ready at {soonest}"


def _of_another_engine(picture: Picture) -> Iterator[str]:
    """What another engine moves has tasks and nothing to claim; its counters are theirs, and it ends with the last."""
    job = picture.job
    if not picture.is_tracked:
        if picture.tasks:
            yield f"our workers move it, but it has {len(picture.tasks)} tasks"
        return
    if picture.items or job.next_claim_at is not None or picture.follows:
        yield "another engine moves it, but it has something to claim"
    statuses = Counter(task.status for task in picture.tasks if task.is_counted)
    expected = {
        "total_items": statuses.total(),
        "processed_items": sum(count for status, count in statuses.items() if status >= FIRST_END),
        "failed_items": sum(statuses[status] for status in BAD_ENDS),
        "skipped_items": statuses[TaskStatus.IGNORED],
    }
    for name, count in expected.items():
        # Its first tasks are recorded with it, and counted when something is heard of them.
        if getattr(job, name) != count and picture.state is not S.QUEUED:
            yield f"{name} is {getattr(job, name)}, a count says {count}"
    open_tasks = [task.task_id for task in picture.tasks if task.status < FIRST_END]
    if picture.state in GOOD_ENDS and open_tasks:
        yield f"it ended well, but these have not ended: {open_tasks}"
    if picture.state is S.RUNNING and not open_tasks:
        yield "LOST: it runs, and none of its tasks is open"


def _timestamps(picture: Picture) -> Iterator[str]:
    """Each state has its milestones, and none of another's."""
    job, state = picture.job, picture.state
    for name in _TIMESTAMPS.get(state, ()):
        if getattr(job, name) is None:
            yield f"it has no {name}"
    for name, states in _ONLY_IN.items():
        if state not in states and getattr(job, name) is not None:
            yield f"it has a {name} ({getattr(job, name)})"
    if state is S.CREATED and job.queued_at is not None:
        yield "it has a queued_at"
    if state is S.FAILED and (job.last_error is None or job.error_code is None or job.error_type is None):
        yield "it does not say why it failed"
    if state in GOOD_ENDS and any(getattr(job, name) is not None for name in _FAILURE):
        yield f"it ended well, with error {job.error_code}: {job.last_error}"


def _order_of_time(picture: Picture) -> Iterator[str]:
    """What comes later is not older."""
    if picture.job.updated_at < picture.job.created_at:
        yield "it was updated before it was created"
    for before, event in pairwise(picture.events):
        if event.at < before.at:
            yield f"line {event.sequence} of its history is older than the line before it"


def _ends(picture: Picture) -> Iterator[str]:
    """A job that ended well has no work left and was finalized; one that waits out a backoff has one item back."""
    job = picture.job
    if picture.follows:
        return
    if picture.state in GOOD_ENDS:
        open_items = [f"{item.role} {item.position}" for item in picture.items if item.status not in _ENDED_STATUSES]
        if open_items:
            yield f"it ended well, but these have not ended: {open_items}"
        finalize_statuses = [item.status for item in picture.of(ItemRole.FINALIZE)]
        if job.has_finalizer and finalize_statuses not in ([ItemStatus.DONE], [ItemStatus.SKIPPED]):
            yield f"it ended well, its finalize is {finalize_statuses}"
    if picture.state is S.RETRYING and not (job.single_step and picture.returned):
        yield "it is retrying, but is no single step waiting for its next try"


def _following(picture: Picture) -> Iterator[str]:
    """Who follows has a leader that does the work and knows of it, or has ended as it did."""
    if not picture.follows:
        return
    leader = picture.leader
    if leader is None:
        yield f"it follows {picture.job.leader_id}, which does not exist"
    elif picture.state in ACTIVE:
        if S(leader.state) not in FLOWING:
            yield f"LOST: it follows {leader.id}, which is {leader.state}"
        if leader.state in (S.RUNNING, S.RETRYING) and picture.state is not S.RUNNING:
            yield f"it follows {leader.id}, which is {leader.state}"
        if leader.leader_id is not None:
            yield f"it follows {leader.id}, which follows {leader.leader_id}"
        if not leader.has_followers:
            yield f"it follows {leader.id}, which does not know of it"
        if (leader.kind, leader.unique_key) != (picture.job.kind, picture.job.unique_key):
            yield f"it follows {leader.id}, which does other work"


def _ended_with_leader(picture: Picture) -> Iterator[str]:
    """Who followed to its end ended as its leader had: it never fails while that goes on."""
    if picture.leader is None or picture.state in ACTIVE or picture.state is S.CANCELED:
        return
    end_state = S.FAILED if picture.state is S.FAILED else S.SUCCEEDED
    moments = [line.at for line in picture.events if line.to_state == end_state]
    if moments and not any(line.to_state == end_state and line.at <= moments[-1] for line in picture.leaders_events):
        yield f"it {end_state.value}, but {picture.leader.id}, which it followed, had not"


def _actors(picture: Picture) -> Iterator[str]:
    """Whoever made a change was allowed to: what an owner holds or pauses is let go by a person or a program of theirs,
    never by a worker.
    """
    for line in picture.events:
        if line.from_state is None:
            continue
        may = {
            who
            for transition in transitions_from(S(line.from_state))
            if transition.target == line.to_state
            for who in transition.who
        }
        if may and Actor(line.actor) not in may:
            yield f"line {line.sequence} of its history, {line.from_state} → {line.to_state}, was made by {line.actor}"


def _shared_keys(pictures: Sequence[Picture]) -> Iterator[str]:
    """At most one job leads a key, and an owner has at most one active job of it that does work."""
    working = [
        picture
        for picture in pictures
        if picture.job.unique_key is not None and not picture.follows and picture.state in ACTIVE
    ]
    leaders = Counter(_key(picture) for picture in working if picture.state in FLOWING)
    for (kind, key), count in leaders.items():
        if count > 1:
            yield f"{count} flowing {kind} jobs do the work of key {key!r}"
    for (kind, key, owner), count in Counter((*_key(picture), picture.job.user_id) for picture in working).items():
        if count > 1:
            yield f"{count} active {kind} jobs of {owner} do the work of key {key!r}"


def _key(picture: Picture) -> tuple[str, str]:
    return picture.job.kind, picture.job.unique_key


_HAS_JOB = select(jobs.c.id).where(jobs.c.id == idempotency_keys.c.job_id).exists()
_LOST_KEYS = select(idempotency_keys.c.key).where(idempotency_keys.c.job_id.is_not(None), ~_HAS_JOB)


def _lost_keys(transaction: Transaction) -> list[str]:
    """An idempotency key leads to a job that is there."""
    return [f"idempotency key {key} leads to a job that does not exist" for key in transaction.values(str, _LOST_KEYS)]


_CHECKS: tuple[Callable[[Picture], Iterator[str]], ...] = (
    _history, _counters, _positions, _items, _turn, _turn_in_time, _timestamps, _order_of_time, _ends, _following,
    _ended_with_leader, _actors, _of_another_engine,
)  # fmt: skip
_IN_TIME = (_turn_in_time, _order_of_time, _ended_with_leader)
