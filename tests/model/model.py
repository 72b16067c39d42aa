"""What Penstock does, in plain Python: the reference model.

Each public operation is a method that says what it does to jobs, items, followers, keys, cached results, holds, pauses,
limits, messages and time. There is no database, no lock and no thread here: one operation after the other, each whole.
The words (states, roles, callers) are those of :mod:`penstock.lifecycle`; none of the engine's decisions is used, and
what the engine counts and remembers for speed is looked up here by going through everything.

Two kinds of answers leave this module. :class:`Refused` is what a caller is told, with its code. :class:`Wrong` is for
whoever compares the engine with the model: where the engine has a choice (which of the due jobs a worker is given,
which of two equally young results is copied), it says what it chose, and the model says whether it may.

The sections, in order: words; submitting; people; claiming; working; outcomes; dead workers; limits and the sweep;
running again; messages; what a job becomes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from penstock.lifecycle.callers import SYSTEM, Caller, Visibility
from penstock.lifecycle.job import SubmitOutcome
from penstock.lifecycle.payloads import JSON
from penstock.lifecycle.states import Actor, ErrorType, ItemRole, ItemStatus, JobState, KilledBy, Phase

S = JobState
ACTIVE = {S.CREATED, S.QUEUED, S.RUNNING, S.RETRYING, S.PAUSED}
FLOWING = {S.QUEUED, S.RUNNING, S.RETRYING}
GOOD_ENDS = {S.SUCCEEDED, S.COMMITTED, S.ABANDONED}
ENDED = {ItemStatus.DONE, ItemStatus.ERROR, ItemStatus.NOT_FOUND, ItemStatus.SKIPPED}

SUSPECT_DEATHS = 5
"""An item that was in hand in so many deaths of workers is a suspect."""
BLAMED_ALONE = 2
"""A suspect is blamed when so many further workers died with nothing else in hand."""
CLOCKS_DIFFER = timedelta(seconds=1)
"""A place in line that lies no further ahead is somebody else's now."""
RELAYED_AT_ONCE = 100
TAKEN_FOR = timedelta(seconds=60)
"""Messages that a relay has taken are due again after this, if it says nothing."""

STAMPS = {
    S.QUEUED: "queued_at", S.RUNNING: "started_at", S.SUCCEEDED: "completed_at", S.FAILED: "completed_at",
    S.CANCELED: "canceled_at", S.COMMITTED: "committed_at", S.ABANDONED: "abandoned_at",
}  # fmt: skip
"""Which moment each state keeps."""
TIMES = {
    S.CREATED: "waiting_seconds", S.QUEUED: "waiting_seconds", S.RETRYING: "waiting_seconds",
    S.RUNNING: "active_seconds", S.PAUSED: "paused_seconds",
}  # fmt: skip
"""Which time passes in each state; none in a job that is over."""
RECENT_SECONDS, RECENT_ITEMS = 30.0, 10.0
"""How far back the recent past goes: by time or by items, whichever is further."""


# Words ----------------------------------------------------------------------------------------------------------------


class Refused(Exception):
    """The caller is told why not, by a code."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Wrong(AssertionError):
    """The engine did what it may not do."""


class _SomeText:
    """Equal to every text: what people read is theirs to word, that there is something to read is not."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and bool(other)

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "some text"


SOME_TEXT: Any = _SomeText()


@dataclass(frozen=True, slots=True)
class Rules:
    """A kind: which steps it has, and how its jobs are treated. Times are in seconds; backoffs do not grow."""

    name: str
    plans: bool = False
    has_finalizer: bool = False
    retries: int = 0
    backoff: float = 5.0
    not_found_retries: int = 0
    reprocess: bool = False
    priority: int = 0
    queue_limit: int | None = None
    hold_limit: float | None = None
    wait_limit: float | None = None
    run_limit: float | None = None
    abandon_after: float | None = None
    prune_result: bool = False
    keep_for: float | None = None
    keep_failed_for: float | None = None


class Failure(NamedTuple):
    """Why an item or a job failed."""

    last_error: str | None = None
    error_code: str | None = None
    error_type: ErrorType | None = None
    killed_by: KilledBy | None = None
    error_class: str | None = None


NO_FAILURE = Failure()


@dataclass(slots=True)
class Item:
    """One unit of work. The plan is at position 0, items are at 1 to n, the step that finalizes is at n + 1."""

    role: ItemRole
    position: int
    input: JSON = None
    normalized: JSON = None
    status: ItemStatus = ItemStatus.PENDING
    attempts: int = 0
    not_found_attempts: int = 0
    """How many of these tries found nothing."""
    earlier_not_found: int = 0
    """How many found nothing of those it had before it was given new ones."""
    deaths: int = 0
    ready_at: datetime | None = None
    """Of one that came back: when it may be tried again. One that nobody has had is fresh, and has none."""
    lease: UUID | None = None
    locked_by: str | None = None
    locked_at: datetime | None = None
    lock_expires_at: datetime | None = None
    alone: bool = False
    """Has its worker said that it has nothing else in hand?"""
    result: JSON = None
    failure: Failure = NO_FAILURE

    @property
    def fresh(self) -> bool:
        """Has nobody had it?"""
        return self.status is ItemStatus.PENDING and self.ready_at is None

    def free(self) -> None:
        """Nobody has it in hand."""
        self.lease = self.locked_by = self.locked_at = self.lock_expires_at = None
        self.alone = False


class Line(NamedTuple):
    """One line of a job's history."""

    run: int
    from_state: JobState | None
    to_state: JobState
    actor: Actor
    actor_id: str | None
    reason: str | None
    data: JSON
    at: datetime


class Counts(NamedTuple):
    """How far a job is. Plans and finalize steps are not counted."""

    total: int = 0
    processed: int = 0
    failed: int = 0
    not_found: int = 0
    skipped: int = 0


NOTHING = Counts()


@dataclass(slots=True)
class Job:
    """What somebody asked for."""

    id: UUID
    kind: str
    user_id: str | None
    unique_key: str | None
    params: JSON
    priority: int
    max_retries: int
    """The kind's retries when the job was recorded: a deployment does not change what was promised."""
    created_at: datetime
    state: JobState = S.CREATED
    phase: Phase = Phase.INIT
    run: int = 1
    leader_id: UUID | None = None
    """The job that does the work instead, or has done it."""
    run_at: datetime | None = None
    """When it is released by itself."""
    items: dict[int, Item] = field(default_factory=dict)
    single_step: bool = False
    planned: bool = True
    has_finalizer: bool = False
    next_claim_at: datetime | None = None
    """From when on it is in line for a worker; the longest wait comes first."""
    attempts: int = 0
    retries: int = 0
    deaths: int = 0
    result: JSON = None
    result_at: datetime | None = None
    """Of a copy: when the work was done."""
    copied: Counts = NOTHING
    """Of one that follows: its leader's counts, once they have succeeded."""
    message: str | None = None
    failure: Failure = NO_FAILURE
    failed_phase: Phase | None = None
    killed_reason: str | None = None
    queued_at: datetime | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    committed_at: datetime | None = None
    abandoned_at: datetime | None = None
    canceled_at: datetime | None = None
    state_since: datetime | None = None
    waiting_seconds: float = 0.0
    active_seconds: float = 0.0
    paused_seconds: float = 0.0
    recent_items: float = 0.0
    """Items that ended lately; those of longer ago count less."""
    recent_seconds: float = 0.0
    recent_at: datetime | None = None
    """Up to when that is known."""
    history: list[Line] = field(default_factory=list)

    @property
    def works(self) -> bool:
        """Does it do its work itself?"""
        return self.leader_id is None

    @property
    def made_at(self) -> datetime | None:
        """How old its result is."""
        return self.result_at or self.completed_at

    def of(self, role: ItemRole) -> Item | None:
        """Its plan, or its finalize step."""
        return next((item for item in self.items.values() if item.role is role), None)

    @property
    def counts(self) -> Counts:
        """A COUNT of its items, always."""
        if not self.works:
            return self.copied
        statuses = Counter(item.status for item in self.items.values() if item.role is ItemRole.ITEM)
        return Counts(
            total=statuses.total(),
            processed=sum(statuses[status] for status in ENDED),
            failed=statuses[ItemStatus.ERROR],
            not_found=statuses[ItemStatus.NOT_FOUND],
            skipped=statuses[ItemStatus.SKIPPED],
        )

    @property
    def fresh(self) -> list[Item]:
        """What it can hand out for the first time; the items of a plan that is not done, too."""
        return sorted((item for item in self.items.values() if item.fresh), key=lambda item: item.position)

    @property
    def returned(self) -> list[Item]:
        """What came back and waits for its next try."""
        return [item for item in self.items.values() if item.status is ItemStatus.PENDING and item.ready_at]


class Handle(NamedTuple):
    """An item in a worker's hands: the lease is what counts."""

    job_id: UUID
    position: int
    lease: UUID


class Ending(NamedTuple):
    """How a try of an item ended. PENDING: it goes back, and may be tried again after ``delay`` seconds."""

    status: ItemStatus
    result: JSON = None
    failure: Failure = NO_FAILURE
    delay: float = 0.0
    counts: bool = True
    """Was it a try?"""
    not_found: bool = False
    """Did it find nothing?"""
    died: bool = False
    """Did its worker die?"""


@dataclass(slots=True)
class Message:
    """A message that somebody wants to be sent."""

    topic: str
    key: str | None
    payload: JSON
    due: datetime
    """A relay sends it from then on; it may do so before, because waits are spread."""
    earliest: datetime | None = None
    """Not sent again before, after a relay took it or failed."""
    tries: int = 0
    sent: bool = False


@dataclass(slots=True)
class Model:
    """All jobs, keys and messages, and the time."""

    now: datetime
    rules: dict[str, Rules]
    jobs: dict[UUID, Job] = field(default_factory=dict)
    """In the order in which they were recorded."""
    pruned: dict[UUID, Job] = field(default_factory=dict)
    """Those that were kept for long enough."""
    keys: dict[tuple[str | None, str | None, str], tuple[Any, UUID]] = field(default_factory=dict)
    """Idempotency keys: whose, and what; for which request, and to which job they led."""
    messages: list[Message] = field(default_factory=list)
    dead_workers: set[str] = field(default_factory=set)

    # Submitting -------------------------------------------------------------------------------------------------------

    def submit(
        self,
        job_id: UUID,
        kind: str,
        params: JSON = None,
        *,
        by: Caller = SYSTEM,
        owner: str | None = None,
        items: Sequence[tuple[JSON, JSON]] | None = None,
        unique_key: str | None = None,
        fresh_for: float | None = None,
        idempotency_key: str | None = None,
        ip_address: str | None = None,
        priority: int | None = None,
        hold: bool = False,
        delay: float | None = None,
        chosen: UUID | None = None,
    ) -> tuple[SubmitOutcome, Job]:
        """Record a job under ``job_id`` and let it flow, or answer with another job.

        One with a ``delay`` is held until then. ``items`` are inputs with their normalized fields; ``chosen`` is the
        young result that the engine took.
        """
        request = (kind, params, items, unique_key)
        name = (owner, ip_address if owner is None else None, idempotency_key or "")
        if idempotency_key is not None and name in self.keys:
            # The same request again is answered with what it led to, whatever became of that.
            first, led_to = self.keys[name]
            if first != request:
                raise Refused("IDEMPOTENCY_KEY_REUSED")
            return SubmitOutcome.EXISTING, self.jobs[led_to]
        if job_id in self.jobs:
            raise Refused("JOB_ID_TAKEN")
        rules = self.rules[kind]
        job = Job(
            job_id, kind, owner, unique_key, params, rules.priority if priority is None else priority, rules.retries,
            self.now,
        )  # fmt: skip
        is_held = hold or delay is not None
        answer, job = self._answer(job, by, items, fresh_for=fresh_for, hold=is_held, chosen=chosen)
        if delay is not None and answer is SubmitOutcome.NEW:
            job.run_at = self.now + timedelta(seconds=delay)
        if idempotency_key is not None:
            self.keys[name] = (request, job.id)
        return answer, job

    def _answer(
        self,
        job: Job,
        by: Caller,
        items: Sequence[tuple[JSON, JSON]] | None,
        *,
        fresh_for: float | None,
        hold: bool,
        chosen: UUID | None,
    ) -> tuple[SubmitOutcome, Job]:
        """A young result before all else; then the owner's own job of the key; then whoever leads it; then new work."""
        young = None if fresh_for is None else self._young(job, timedelta(seconds=fresh_for), chosen)
        if young is not None and self._waits_for(young, job.user_id):
            return SubmitOutcome.CACHED, young
        if young is not None:
            self._record(job, S.QUEUED, by, leader=young)
            self._change(job, S.RUNNING, SYSTEM)
            self._succeed_as(job, young, SYSTEM, reason=SOME_TEXT)
            job.result_at = young.made_at
            return SubmitOutcome.CACHED, job
        leader = self.leader(job.kind, job.unique_key)
        mine = [one for one in self.of_key(job) if one.state in ACTIVE and one.user_id == job.user_id]
        if mine:
            return SubmitOutcome.EXISTING, mine[0]
        if leader is not None and not hold:
            self._record(job, S.QUEUED, by, leader=leader)
            self._join(job, leader)
            return SubmitOutcome.FOLLOWING, job
        self._record(job, S.CREATED if hold else S.QUEUED, by, items=items)
        if not hold:
            self._go_on(job)
            self._bound(job)
        return SubmitOutcome.NEW, job

    def _young(self, job: Job, most: timedelta, chosen: UUID | None) -> Job | None:
        """The asker's own result that waits for them, otherwise the newest; a copy is nobody else's source."""
        found = [
            one for one in self.of_key(job)
            if one.state in GOOD_ENDS and one.result is not None and one.made_at and one.made_at >= self.now - most
            and (one.works or self._waits_for(one, job.user_id))
        ]  # fmt: skip
        found = [one for one in found if self._waits_for(one, job.user_id)] or found
        newest = [one for one in found if one.made_at == max(other.made_at for other in found if other.made_at)]
        return next((one for one in newest if one.id == chosen), newest[0] if newest else None)

    def _waits_for(self, job: Job, owner: str | None) -> bool:
        return job.user_id == owner and job.state is S.SUCCEEDED

    def _record(
        self,
        job: Job,
        state: JobState,
        by: Caller,
        *,
        leader: Job | None = None,
        items: Sequence[tuple[JSON, JSON]] | None = None,
    ) -> None:
        """A new record: with a leader it has no items, else those it was given, its plan, or its only one."""
        rules = self.rules[job.kind]
        job.history.append(Line(1, None, state, by.actor, by.id, None, None, self.now))
        job.state = state
        job.queued_at = self.now if state is S.QUEUED else None
        self.jobs[job.id] = job
        if leader is not None:
            job.leader_id = leader.id
            return
        job.has_finalizer = rules.has_finalizer
        if items is not None:
            job.items = {n: Item(ItemRole.ITEM, n, *one) for n, one in enumerate(items, 1)}
        elif rules.plans:
            job.planned = False
            job.items = {0: Item(ItemRole.PLAN, 0)}
        else:
            # A single step reads the job's params; an item beside a finalize step has them as its input.
            job.single_step = not rules.has_finalizer
            job.items = {1: Item(ItemRole.ITEM, 1, None if job.single_step else job.params)}

    def release(self, job_id: UUID, by: Caller) -> Job:
        """A held job flows. While somebody else leads its key, it follows that one."""
        job = self.seen(job_id, by)
        if job.state is not S.CREATED:
            raise Refused("TRANSITION_REFUSED")
        if self._flow(job, by, None):
            self._bound(job)
        return job

    def release_due(self) -> int:
        """What was to run later flows when its time has come, whoever waits longest first."""
        due = [job for job in self.jobs.values() if job.state is S.CREATED and job.run_at and job.run_at <= self.now]
        for job in sorted(due, key=lambda one: (one.run_at, one.id)):
            if self._flow(job, SYSTEM, SOME_TEXT):
                self._bound(job)
        return len(due)

    def _bound(self, job: Job) -> None:
        """More wait than the kind allows: the new one fails at once. What waits already is not touched."""
        limit = self.rules[job.kind].queue_limit
        waiting = sum(one.kind == job.kind and one.state is S.QUEUED for one in self.jobs.values())
        if limit is not None and job.state is S.QUEUED and waiting > limit:
            self._fail(job, Failure(SOME_TEXT, "QUEUE_OVERLOAD", ErrorType.RETRYABLE), job.phase, SYSTEM)

    # Who leads, and who follows ---------------------------------------------------------------------------------------

    def of_key(self, job: Job) -> Iterator[Job]:
        """All jobs that ask for the same work."""
        if job.unique_key is not None:
            yield from (o for o in self.jobs.values() if (o.kind, o.unique_key) == (job.kind, job.unique_key))

    def leader(self, kind: str, key: str | None) -> Job | None:
        """The one job of a key that flows and does the work; a held or paused one leads nobody."""
        for job in self.jobs.values():
            if key is not None and (job.kind, job.unique_key) == (kind, key) and job.works and job.state in FLOWING:
                return job
        return None

    def followers(self, job: Job) -> list[Job]:
        """Who waits for the job's work, whoever asked first first."""
        return [one for one in self.jobs.values() if one.leader_id == job.id and one.state in ACTIVE]

    def _join(self, job: Job, leader: Job) -> None:
        """It follows; if the work has begun, it has begun for this one too."""
        job.leader_id, job.items, job.next_claim_at = leader.id, {}, None
        if leader.state in (S.RUNNING, S.RETRYING):
            self._change(job, S.RUNNING, SYSTEM)

    def _flow(self, job: Job, by: Caller, reason: str | None) -> bool:
        """Let a held or paused job go on; the answer is whether it does its work itself."""
        leader = self.leader(job.kind, job.unique_key)
        if leader is not None and job.started_at is not None:
            raise Refused("UNIQUE_KEY_IN_USE")  # what it has done so far would be lost
        self._change(job, S.QUEUED, by, reason)
        if leader is not None:
            self._join(job, leader)
            return False
        self._go_on(job)
        return True

    def _hand_over(self, leader: Job) -> None:
        """Whoever has waited longest inherits the work whole and does it from the beginning; the others follow."""
        waiting = self.followers(leader)
        if not waiting:
            return
        successor, *others = waiting
        plan = leader.of(ItemRole.PLAN)
        given = [plan] if plan else [item for item in leader.items.values() if item.role is ItemRole.ITEM]
        successor.leader_id = None
        successor.recent_at = self.now
        successor.items = {item.position: Item(item.role, item.position, item.input, item.normalized) for item in given}
        successor.planned, successor.single_step, successor.has_finalizer = (
            plan is None,
            leader.single_step,
            leader.has_finalizer,
        )
        successor.priority = max(successor.priority, leader.priority)
        for one in others:
            one.leader_id = successor.id
        if successor.state is S.RUNNING:
            successor.started_at = self.now  # its run_limit counts from here
            successor.phase = Phase.PROCESSING if successor.planned else Phase.BATCHING
            for one in others:
                if one.state is S.QUEUED:
                    self._change(one, S.RUNNING, SYSTEM)
        self._go_on(successor)

    # People -----------------------------------------------------------------------------------------------------------

    def visible(self, by: Caller) -> list[Job]:
        """An owner sees their own jobs, a guest those of guests, the system and admins all."""
        return [job for job in self.jobs.values() if self._may_see(job, by)]

    def _may_see(self, job: Job, by: Caller) -> bool:
        mine = {Visibility.OWN: by.id, Visibility.GUESTS: None}
        return by.sight is Visibility.EVERYTHING or job.user_id == mine[by.sight]

    def seen(self, job_id: UUID, by: Caller) -> Job:
        """A job, if the caller may know of it; another's is as if it were not there."""
        job = self.jobs.get(job_id)
        if job is None or not self._may_see(job, by):
            was_there = job_id in self.pruned and self._may_see(self.pruned[job_id], by)
            raise Refused("JOB_PRUNED" if was_there else "JOB_NOT_FOUND")
        return job

    def _allowed(self, job_id: UUID, by: Caller, sources: set[JobState]) -> Job:
        job = self.seen(job_id, by)
        if job.state not in sources:
            raise Refused("TRANSITION_REFUSED")
        return job

    def pause(self, job_id: UUID, by: Caller, reason: str | None = None) -> Job:
        """No item starts; what is in hand goes on. Work that others wait for is not paused."""
        job = self._allowed(job_id, by, FLOWING)
        if not job.works or self.followers(job):
            raise Refused("JOB_SHARED")
        job.next_claim_at = None
        self._change(job, S.PAUSED, by, reason)
        return job

    def resume(self, job_id: UUID, by: Caller, reason: str | None = None) -> Job:
        """The flow goes on. What ended meanwhile is settled now."""
        job = self._allowed(job_id, by, {S.PAUSED})
        self._flow(job, by, reason)
        job.recent_items = job.recent_seconds = 0.0  # a pause is no measure of anything
        return job

    def cancel(self, job_id: UUID, by: Caller, reason: str | None = None) -> Job:
        """Stopped for good, in any state before the end; who waits for the same work is served all the same."""
        job = self._allowed(job_id, by, ACTIVE)
        killer = KilledBy.USER if by.actor in (Actor.OWNER, Actor.ADMIN) else KilledBy.SYSTEM
        job.failure = job.failure._replace(killed_by=killer)
        job.killed_reason, job.next_claim_at = reason, None
        self._change(job, S.CANCELED, by, reason, progress=True)
        self._hand_over(job)
        return job

    def commit(self, job_id: UUID, by: Caller, reason: str | None = None) -> Job:
        """The owner used the result."""
        job = self._allowed(job_id, by, {S.SUCCEEDED})
        self._change(job, S.COMMITTED, by, reason)
        return job

    def abandon(self, job_id: UUID, by: Caller, reason: str | None = None) -> Job:
        """The owner does not want the result."""
        job = self._allowed(job_id, by, {S.SUCCEEDED})
        self._change(job, S.ABANDONED, by, reason)
        return job

    # Claiming ---------------------------------------------------------------------------------------------------------

    def due(self, kind: str) -> list[Job]:
        """Whose turn it is: the highest priority first, then whoever has been in line for longest."""
        waiting = [
            job
            for job in self.jobs.values()
            if job.kind == kind and job.next_claim_at and job.next_claim_at <= self.now
        ]
        return sorted(waiting, key=_place)

    def claim(
        self, kind: str, worker: Caller, size: int, taken: Sequence[Handle], lease_seconds: float, *, in_order: bool
    ) -> list[Item]:
        """A worker takes these items; are they such as it may be given?

        A few jobs share the claim, so that a large one starves nobody. What came back goes before what is fresh. What
        a dead worker held is taken with nothing fresh beside it, and a suspect with nothing at all.
        """
        due = self.due(kind)
        _demand(bool(taken) or not due, "work was due, and the claim brought nothing")
        items: dict[UUID, list[Item]] = {}
        for handle in taken:
            job = self.jobs[handle.job_id]
            _demand(job in due, f"job {job.id} has no turn")
            item = job.items.get(handle.position)
            _demand(item is not None and item in (*job.fresh, *job.returned), f"{handle} is not there to be taken")
            if item is not None:
                _demand(item.ready_at is None or item.ready_at <= self.now, f"{handle} is in its backoff")
                items.setdefault(job.id, []).append(item)
        self._judge_claim(due, items, size, in_order=in_order)
        until = self.now + timedelta(seconds=lease_seconds)
        lease = {(handle.job_id, handle.position): handle.lease for handle in taken}
        for job_id, its in items.items():
            job = self.jobs[job_id]
            finalizing = job.of(ItemRole.FINALIZE) is not None
            for item in its:
                item.status, item.attempts, item.ready_at = ItemStatus.PROCESSING, item.attempts + 1, None
                item.lease, item.locked_by = lease[job_id, item.position], worker.id
                item.locked_at, item.lock_expires_at = self.now, until
            if job.state is S.RETRYING:
                self._change(job, S.QUEUED, worker)
            if job.state is S.QUEUED:
                job.attempts += 1
                job.phase = Phase.FINALIZING if finalizing else Phase.PROCESSING if job.planned else Phase.BATCHING
                self._start(job, worker)
            self._line_up(job)
        return [self.jobs[handle.job_id].items[handle.position] for handle in taken]

    def _judge_claim(self, due: Sequence[Job], items: dict[UUID, list[Item]], size: int, *, in_order: bool) -> None:
        taken = [item for its in items.values() for item in its]
        again = [item for item in taken if not item.fresh]
        held_at_death = [item for item in again if item.deaths]
        _demand(len({(j, item.position) for j, its in items.items() for item in its}) == len(taken), "an item twice")
        _demand(len(again) <= size, "more came back than was asked for")
        _demand(not held_at_death or len(again) == len(taken), "fresh items beside one that a dead worker held")
        suspects = [item for item in again if item.deaths >= SUSPECT_DEATHS]
        _demand(not suspects or len(taken) == 1, "a suspect is taken alone")
        most = min(size, len(due))
        _demand(len(items) <= most, "more jobs than were asked for")
        share = max(1, (size - len(again)) // most) if most else 0
        careful = any(item.deaths and self._ready(item) for job in due for item in job.returned)
        for job_id, its in items.items():
            job, fresh = self.jobs[job_id], [item for item in its if item.fresh]
            _demand(fresh == job.fresh[: len(fresh)], f"the fresh items of job {job_id} are not the next ones")
            _demand(len(fresh) <= share, f"job {job_id} handed out more than its share")
            left = [item for item in job.returned if self._ready(item) and item not in its]
            _demand(not left or not fresh or len(again) == size, "fresh items before those that came back")
        if in_order and not careful and len(again) < size:
            # Nothing hinders: those who are first in line are served, each with its share.
            _demand(len(items) == most, f"{most} jobs were due, {len(items)} were served")
            last = max((_place(self.jobs[job_id]) for job_id in items), default=None)
            for job in due:
                _demand(job.id in items or last is None or _place(job) >= last, f"job {job.id} was passed over")
                if job.id in items:
                    fresh = [item for item in items[job.id] if item.fresh]
                    _demand(len(fresh) == min(share, len(job.fresh)), f"job {job.id} did not hand out its share")

    def _ready(self, item: Item) -> bool:
        return item.ready_at is not None and item.ready_at <= self.now

    # Working ----------------------------------------------------------------------------------------------------------

    def held(self, handle: Handle) -> Item | None:
        """The item, if this lease still counts: nobody else has it since, and no new run took it back."""
        job = self.jobs.get(handle.job_id)
        item = None if job is None else job.items.get(handle.position)
        return item if item is not None and item.lease == handle.lease else None

    def heartbeat(self, handles: Iterable[Handle], lease_seconds: float) -> set[Handle]:
        """A sign of life renews what is still held, even after its time; the answer is what is ours no more."""
        gone = set()
        for handle in handles:
            item = self.held(handle)
            if item is None:
                gone.add(handle)
            else:
                item.lock_expires_at = self.now + timedelta(seconds=lease_seconds)
        return gone

    def stopped(self, job_ids: Iterable[UUID]) -> set[UUID]:
        """Whose handlers need not go on: their jobs are over. What is paused finishes what is in hand."""
        return {
            job_id
            for job_id in job_ids
            if job_id in self.jobs and self.jobs[job_id].state not in (S.QUEUED, S.RUNNING, S.PAUSED)
        }

    def alone(self, handle: Handle) -> None:
        """A worker has nothing else in hand."""
        item = self.held(handle)
        if item is not None:
            item.alone = True

    def plan(self, handle: Handle, inputs: Sequence[tuple[JSON, JSON]]) -> int:
        """A plan adds items behind those that are there; they may be claimed while it goes on."""
        plan = self.held(handle)
        if plan is None:
            raise Refused("WORKER_CRASH")
        job = self.jobs[handle.job_id]
        last = job.counts.total
        for n, one in enumerate(inputs, last + 1):
            job.items[n] = Item(ItemRole.ITEM, n, *one)
        if inputs:
            plan.deaths = 0  # it gets on: whoever died before did not die of it
            if job.state in (S.QUEUED, S.RUNNING):
                job.next_claim_at = self.now if job.next_claim_at is None else min(job.next_claim_at, self.now)
        return last + len(inputs)

    def say(self, job_id: UUID, message: str) -> None:
        """A running job tells its people what it does."""
        if job_id in self.jobs and self.jobs[job_id].state is S.RUNNING:
            self.jobs[job_id].message = message

    # Outcomes ---------------------------------------------------------------------------------------------------------

    def ending(self, what: str, handle: Handle, attempt: int, not_found: int, result: JSON = None) -> Ending:
        """What an answer of a handler means; ``attempt`` is which try it was, ``not_found`` how many found nothing."""
        job = self.jobs.get(handle.job_id) or self.pruned[handle.job_id]
        rules = self.rules[job.kind]
        failure = Failure(SOME_TEXT, _CODES.get(what), ErrorType.TERMINAL, _KILLERS.get(what), _CLASSES.get(what))
        back = Ending(ItemStatus.PENDING, failure=failure._replace(error_type=ErrorType.RETRYABLE), delay=rules.backoff)
        match what:
            case "done":
                return Ending(ItemStatus.DONE, result)
            case "skip":
                return Ending(ItemStatus.SKIPPED, failure=failure._replace(error_type=None))
            case "permanent" | "step gone":
                return Ending(ItemStatus.ERROR, failure=failure)
            case "not found":
                again = not_found < rules.not_found_retries
                return (back if again else Ending(ItemStatus.NOT_FOUND, failure=failure))._replace(not_found=True)
            case "postponed":
                return Ending(ItemStatus.PENDING, delay=ASKED_FOR, counts=False)
            case "released":
                return Ending(ItemStatus.PENDING, counts=False)
            case _:
                # Whatever else goes wrong is tried again, as often as the job was promised.
                if what == "asks for time":
                    back = back._replace(delay=max(rules.backoff, ASKED_FOR))
                return back if attempt - not_found <= job.max_retries else Ending(ItemStatus.ERROR, failure=failure)

    def record(self, endings: Sequence[tuple[Handle, Ending]], by: Caller) -> set[Handle]:
        """Write outcomes back; the answer is those that landed. One whose lease is gone changes nothing."""
        landed = set()
        touched: dict[UUID, list[tuple[Item, Ending]]] = {}
        for handle, ending in endings:
            item = self.held(handle)
            if item is not None:
                self._end(item, ending)
                landed.add(handle)
                touched.setdefault(handle.job_id, []).append((item, ending))
        for job_id, ended in touched.items():
            self._count(self.jobs[job_id], ended, by)
        return landed

    def _end(self, item: Item, ending: Ending) -> None:
        item.free()
        item.status = ending.status
        item.deaths += ending.died
        item.not_found_attempts += ending.not_found
        item.ready_at = self.now + timedelta(seconds=ending.delay) if ending.status is ItemStatus.PENDING else None
        if ending.counts:
            item.failure = ending.failure
        else:
            item.attempts -= 1
        if ending.status is ItemStatus.DONE:
            item.result = ending.result

    def _count(self, job: Job, ended: Sequence[tuple[Item, Ending]], by: Caller) -> None:
        """What is true is counted whatever state the job is in; only a running job becomes something by it."""
        for item, _ in ended:
            if item.role is ItemRole.PLAN and item.status is ItemStatus.DONE:
                job.planned, job.phase, job.recent_at = True, Phase.PROCESSING, self.now
                if job.state is S.RUNNING and job.fresh:
                    job.next_claim_at = self.now
        back = [item.ready_at for item, _ in ended if item.ready_at is not None]
        if back and job.state in (S.QUEUED, S.RUNNING):
            job.next_claim_at = min(back) if job.next_claim_at is None else min(job.next_claim_at, *back)
        ran = job.state is S.RUNNING
        self._become(job, ended, by)
        if job.state is S.RUNNING or not ran:  # of one that has ended nobody asks how fast it goes
            self._pace(job, sum(item.role is ItemRole.ITEM and item.status in ENDED for item, _ in ended))

    def _pace(self, job: Job, ended: int) -> None:
        """Items have ended: what ended before counts less now. A gap in which nobody worked is not counted whole."""
        if not ended:
            return
        seconds = max(0.0, (self.now - (job.recent_at or self.now)).total_seconds())
        if job.recent_seconds:
            seconds = min(seconds, job.recent_seconds + RECENT_SECONDS)
        kept = max(RECENT_SECONDS / (RECENT_SECONDS + seconds), RECENT_ITEMS / (RECENT_ITEMS + ended))
        job.recent_items = job.recent_items * kept + ended
        job.recent_seconds = job.recent_seconds * kept + seconds
        job.recent_at = self.now

    def _become(self, job: Job, ended: Sequence[tuple[Item, Ending]], by: Caller) -> None:
        if job.state is not S.RUNNING:
            return
        retried = [ending for item, ending in ended if item.ready_at is not None and ending.counts]
        if job.single_step and retried:
            job.retries += 1
            job.failure = retried[-1].failure._replace(killed_by=None)
            self._change(job, S.RETRYING, by, retried[-1].failure.last_error)
        else:
            self._settle(job, by)

    # Dead workers -----------------------------------------------------------------------------------------------------

    def die(self, worker: str) -> int:
        """A worker is known to be dead: all it held goes back."""
        return self._take_back([one for one in self._in_hand() if one[1].locked_by == worker])

    def _in_hand(self) -> list[tuple[Job, Item]]:
        held = ((job, item) for job in self.jobs.values() for item in job.items.values())
        return [(job, item) for job, item in held if item.status is ItemStatus.PROCESSING]

    def _take_back(self, lost: Sequence[tuple[Job, Item]]) -> int:
        """A death is not a try. The first costs no time, later ones a backoff; only a suspect alone is blamed."""
        by_worker: dict[str | None, list[Job]] = {}
        endings = []
        for job, item in lost:
            jobs = by_worker.setdefault(item.locked_by, [])
            if job not in jobs:
                jobs.append(job)
            deaths = item.deaths + 1
            ending = Ending(
                ItemStatus.PENDING, delay=0.0 if deaths == 1 else self.rules[job.kind].backoff, counts=False, died=True
            )
            if item.alone and deaths >= SUSPECT_DEATHS + BLAMED_ALONE:
                failure = Failure(SOME_TEXT, "WORKER_CRASH", ErrorType.TERMINAL, KilledBy.WORKER_CRASH, "WorkerCrashed")
                ending = Ending(ItemStatus.ERROR, failure=failure, died=True)
            if item.lease is not None:
                endings.append((Handle(job.id, item.position, item.lease), ending))
        self.record(endings, SYSTEM)
        for worker, jobs in by_worker.items():
            self.dead_workers.add(worker or "")
            for job in jobs:
                if job.state is S.RUNNING:
                    job.deaths += 1
                    self._let_pass(job)
                    job.recent_at = self.now  # nobody knows how long it was held in vain
                    job.history.append(
                        Line(job.run, S.RUNNING, S.RUNNING, Actor.SYSTEM, None, SOME_TEXT, None, self.now)
                    )
        return len(lost)

    # Limits and the sweep ---------------------------------------------------------------------------------------------

    def sweep(self) -> dict[str, int]:
        """One maintenance pass: what nobody else would notice."""
        return {
            "leases_expired": self._take_back(
                [one for one in self._in_hand() if one[1].lock_expires_at and one[1].lock_expires_at < self.now]
            ),
            "retries_due": self._requeue(),
            "never_submitted": sum(self._cancel_held(job) for job in list(self.jobs.values())),
            "waited_too_long": sum(self._fail_waiting(job) for job in list(self.jobs.values())),
            "ran_too_long": sum(self._fail_running(job) for job in list(self.jobs.values())),
            "abandoned": sum(self._expire(job) for job in self.jobs.values()),
            "left_behind": 0,
            "stale": 0,
            "postponed": sum(self._call_forward(job) for job in self.jobs.values()),
        }

    def _requeue(self) -> int:
        """A backoff has passed: the job waits for a worker again."""
        due = [
            job
            for job in self.jobs.values()
            if job.state is S.RETRYING and job.next_claim_at and job.next_claim_at <= self.now
        ]
        for job in due:
            self._change(job, S.QUEUED, SYSTEM)
            job.next_claim_at = self.now
        return len(due)

    def _past(self, moment: datetime | None, limit: float | None) -> bool:
        return limit is not None and moment is not None and moment < self.now - timedelta(seconds=limit)

    def _cancel_held(self, job: Job) -> bool:
        """``hold_limit``: it was created, and nobody submitted it in time."""
        if job.state is not S.CREATED or job.run_at or not self._past(job.created_at, self.rules[job.kind].hold_limit):
            return False
        self.cancel(job.id, SYSTEM, SOME_TEXT)
        return True

    def _fail_waiting(self, job: Job) -> bool:
        """``wait_limit``: no worker took it in time after its turn. Who follows is not judged by itself."""
        limit = self.rules[job.kind].wait_limit
        late = self._past(job.queued_at, limit) and self._past(job.next_claim_at or job.queued_at, limit)
        if job.state is not S.QUEUED or not job.works or not late:
            return False
        self._fail(job, Failure(SOME_TEXT, "QUEUE_WAIT_EXCEEDED", ErrorType.RETRYABLE), job.phase, SYSTEM)
        return True

    def _fail_running(self, job: Job) -> bool:
        """``run_limit``: it runs for too long since it was started last."""
        if (
            job.state is not S.RUNNING
            or not job.works
            or not self._past(job.started_at, self.rules[job.kind].run_limit)
        ):
            return False
        failure = Failure(SOME_TEXT, "JOB_TIMEOUT", ErrorType.TERMINAL, KilledBy.TIMEOUT, "TimeLimitExceeded")
        self._fail(job, failure, job.phase, SYSTEM)
        return True

    def _expire(self, job: Job) -> bool:
        """``abandon_after``: nobody used the result in time."""
        rules = self.rules[job.kind]
        if job.state is not S.SUCCEEDED or not self._past(job.completed_at, rules.abandon_after):
            return False
        self._change(job, S.ABANDONED, SYSTEM, SOME_TEXT)
        if rules.prune_result:
            job.result = None
        return True

    def _call_forward(self, job: Job) -> bool:
        """The clock was set back: who has something fresh to hand out does not wait until it is there again."""
        late = job.next_claim_at is not None and job.next_claim_at > self.now + CLOCKS_DIFFER
        if not late or job.state not in (S.QUEUED, S.RUNNING) or not job.fresh:
            return False
        self._go_on(job)
        return True

    # Keeping ----------------------------------------------------------------------------------------------------------

    def prune(self) -> None:
        """Jobs that have been kept for as long as their kind says are gone, until there is none.

        Not one that others got their result of, nor one of which a worker holds an item, nor a result that still waits
        to be used. The keys of requests go with the job that they led to.
        """
        while overdue := [job for job in self.jobs.values() if self._kept_long_enough(job)]:
            for job in overdue:
                self.pruned[job.id] = self.jobs.pop(job.id)
        self.keys = {key: led for key, led in self.keys.items() if led[1] in self.jobs}

    def _kept_long_enough(self, job: Job) -> bool:
        rules = self.rules[job.kind]
        waits = job.state is S.SUCCEEDED and rules.abandon_after is not None
        limit = rules.keep_failed_for if job.state is S.FAILED else rules.keep_for
        over = job.canceled_at if job.state is S.CANCELED else job.completed_at
        if job.state in ACTIVE or waits or not self._past(over, limit):
            return False
        held = any(item.status is ItemStatus.PROCESSING for item in job.items.values())
        return not held and not any(other.leader_id == job.id for other in self.jobs.values())

    # Running again ----------------------------------------------------------------------------------------------------

    def reprocess(
        self,
        job_id: UUID,
        by: Caller,
        *,
        statuses: Iterable[ItemStatus],
        positions: set[int] | None = None,
        codes: set[str | None] | None = None,
        reset_attempts: bool = True,
        permanent: bool = True,
        reason: str | None = None,
    ) -> Job:
        """A new run of a job that has succeeded or failed: the chosen items, and the finalize step after the last one.

        A plan that did not end well is always made again. Who has no tries left stays, unless everybody gets new ones;
        who failed for good stays, unless those are wanted too.
        """
        job = self.seen(job_id, by)
        if not self.rules[job.kind].reprocess:
            raise Refused("REPROCESS_NOT_ALLOWED")
        self._allowed(job_id, by, {S.SUCCEEDED, S.FAILED})
        if not job.works:
            raise Refused("JOB_SHARED")
        if any(one.works and (one.state in FLOWING or (one.state in ACTIVE and one.user_id == job.user_id))
               for one in self.of_key(job)):  # fmt: skip
            raise Refused("UNIQUE_KEY_IN_USE")

        def chosen(item: Item) -> bool:
            if item.role is not ItemRole.ITEM:
                return item.role is ItemRole.PLAN and item.status in ENDED - {ItemStatus.DONE}
            failed_all = item.attempts - item.not_found_attempts > job.max_retries
            missed_all = item.not_found_attempts > self.rules[job.kind].not_found_retries
            used_up = missed_all if item.status is ItemStatus.NOT_FOUND else failed_all
            final = item.status is ItemStatus.ERROR and item.failure.error_type is ErrorType.TERMINAL and not failed_all
            return (
                item.status in statuses
                and (reset_attempts or not used_up)
                and (permanent or not final)
                and (positions is None or item.position in positions)
                and (codes is None or item.failure.error_code in codes)
            )

        again = [item for item in job.items.values() if chosen(item)]
        finalize = job.of(ItemRole.FINALIZE)
        all_over = finalize is None and job.planned and job.counts.processed == job.counts.total
        if not again and (codes is not None or all_over):
            raise Refused("NOTHING_TO_REPROCESS")
        job.run += 1
        job.completed_at = job.result = job.message = job.failed_phase = job.killed_reason = None
        job.failure, job.retries, job.deaths = NO_FAILURE, 0, 0
        job.recent_items = job.recent_seconds = 0.0
        job.phase = Phase.PROCESSING if job.planned else Phase.BATCHING
        self._change(job, S.QUEUED, by, reason)
        if finalize is not None:
            del job.items[finalize.position]  # even out of a worker's hands: this run has its own
        for item in again:
            item.status, item.ready_at, item.result, item.deaths = ItemStatus.PENDING, self.now, None, 0
            if reset_attempts or item.role is ItemRole.PLAN:
                item.earlier_not_found += item.not_found_attempts
                item.attempts = item.not_found_attempts = 0
        self._go_on(job)
        return job

    # Messages ---------------------------------------------------------------------------------------------------------

    def publish(self, topic: str, payload: JSON, key: str | None) -> None:
        """A message that goes out once what it tells of is committed."""
        self.messages.append(Message(topic, key, payload, due=self.now))

    def relay(self, sends: Sequence[tuple[JSON, bool]], *, died: bool = False) -> None:
        """A relay made these sends, each of which succeeded or not; one that dies says nothing of them afterwards.

        Messages of one key go out in their order, and one that fails holds up those behind it.
        """
        by_payload = {message.payload: message for message in self.messages}
        must = self._surely_due()[:RELAYED_AT_ONCE]
        tried: list[Message] = []
        failed: list[Message] = []
        for payload, succeeded in sends:
            message = by_payload[payload]
            before = self.messages[: self.messages.index(message)]
            _demand(not message.sent, f"{payload} is sent a second time")
            _demand(message.earliest is None or message.earliest <= self.now, f"{payload} is sent too early")
            held_up = [one for one in before if one.key == message.key and not one.sent and message.key is not None]
            _demand(all(one in tried and one not in failed for one in held_up), f"{payload} is sent out of its order")
            _demand(all(self.messages.index(one) < len(before) for one in tried), f"{payload} is sent out of order")
            tried.append(message)
            if not succeeded:
                failed.append(message)
        if died:
            for message in (one for one in self.messages if not one.sent):
                message.due = max(self.now + TAKEN_FOR, message.due)
            for message in tried:
                message.earliest = self.now + TAKEN_FOR
            return
        for message in tried:
            message.sent = message not in failed
        for message in self.messages:
            behind = message.key is not None and message.key in {one.key for one in failed}
            if not message.sent and (message in failed or behind):
                self._put_off(message, certain=message in failed)
        _demand(all(one in tried or not self._in_order(one) for one in must), "a message that was due was not sent")

    def _put_off(self, message: Message, *, certain: bool) -> None:
        """Tried again later and later; the wait is spread over the upper half of its bound."""
        message.tries += 1
        longest = min(2.0 ** (message.tries - 1), 300.0)
        message.due = max(self.now + timedelta(seconds=longest), message.due)
        if certain:
            message.earliest = self.now + timedelta(seconds=0.5)

    def _surely_due(self) -> list[Message]:
        return [one for one in self.messages if not one.sent and one.due <= self.now]

    def _in_order(self, message: Message) -> bool:
        """Is nothing of its key before it still to be sent?"""
        before = self.messages[: self.messages.index(message)]
        return message.key is None or not any(one.key == message.key and not one.sent for one in before)

    # What a job becomes -----------------------------------------------------------------------------------------------

    def deploy(self, rules: Rules) -> None:
        """A new version of a kind. Recorded jobs keep their shape and their retries; limits are the new ones."""
        self.rules[rules.name] = rules

    def _change(self, job: Job, to: JobState, by: Caller, reason: str | None = None, *, progress: bool = False) -> None:
        data: JSON = {"processed": job.counts.processed, "total": job.counts.total} if progress else None
        job.history.append(Line(job.run, job.state, to, by.actor, by.id, reason, data, self.now))
        self._let_pass(job)
        job.state = to
        if to in STAMPS:
            setattr(job, STAMPS[to], self.now)
        if to is S.RUNNING:
            job.recent_at = self.now

    def _let_pass(self, job: Job) -> None:
        """The time since the last change is counted as what the job did in it."""
        name, since = TIMES.get(job.state), job.state_since or job.created_at
        if name is not None:
            setattr(job, name, getattr(job, name) + max(0.0, (self.now - since).total_seconds()))
        job.state_since = self.now

    def _line_up(self, job: Job) -> None:
        """In line from now on if it has something fresh, otherwise from when the first that came back is ready."""
        ready = [item.ready_at for item in job.returned if item.ready_at is not None]
        job.next_claim_at = self.now if job.fresh else max(self.now, min(ready)) if ready else None

    def _go_on(self, job: Job) -> None:
        """Let a job flow as its items say: hand out, wait for what is in hand, finalize or end."""
        self._line_up(job)
        if job.next_claim_at is None:
            if job.state is S.QUEUED:
                self._start(job, SYSTEM)
            self._settle(job, SYSTEM)

    def _start(self, job: Job, by: Caller) -> None:
        """It runs, and so do those that follow it."""
        self._change(job, S.RUNNING, by)
        for one in self.followers(job):
            if one.state is S.QUEUED:
                self._change(one, S.RUNNING, by)

    def _settle(self, job: Job, by: Caller) -> None:
        """A running job becomes what its items say: its plan, its only step or its finalize step, else their count."""
        plan, finalize = job.of(ItemRole.PLAN), job.of(ItemRole.FINALIZE)
        if plan is not None and plan.status in ENDED - {ItemStatus.DONE}:
            self._fail(job, plan.failure, Phase.BATCHING if job.counts.total else Phase.INIT, by)
        elif finalize is not None:
            self._end_by(job, finalize, Phase.FINALIZING, by)
        elif job.single_step:
            self._end_by(job, job.items[1], Phase.PROCESSING, by)
        elif job.planned and job.counts.processed == job.counts.total:
            if job.has_finalizer:
                last = job.counts.total + 1
                job.items[last] = Item(ItemRole.FINALIZE, last)
                job.phase, job.next_claim_at = Phase.FINALIZING, self.now
            else:
                self._succeed(job, None, by)

    def _end_by(self, job: Job, item: Item, phase: Phase, by: Caller) -> None:
        """The one step that decides has ended, or not yet."""
        if item.status in (ItemStatus.DONE, ItemStatus.SKIPPED):
            self._succeed(job, item.result, by)
        elif item.status in ENDED:
            self._fail(job, item.failure, phase, by)

    def _succeed(self, job: Job, result: JSON, by: Caller) -> None:
        job.result, job.next_claim_at, job.failure = result, None, NO_FAILURE
        self._change(job, S.SUCCEEDED, by)
        for one in self.followers(job):
            if one.state is S.QUEUED:
                self._change(one, S.RUNNING, by)
            self._succeed_as(one, job, by)

    def _succeed_as(self, job: Job, leader: Job, by: Caller, reason: str | None = None) -> None:
        """A follower, or a copy, ends with the leader's result and counts."""
        job.result, job.phase, job.copied, job.failure = leader.result, leader.phase, leader.counts, NO_FAILURE
        self._change(job, S.SUCCEEDED, by, reason)

    def _fail(self, job: Job, failure: Failure, phase: Phase, by: Caller) -> None:
        """It could not finish, and neither could those that follow it, for the same reason."""
        job.next_claim_at = None
        for one in (job, *self.followers(job)):
            one.failure = failure._replace(error_type=failure.error_type or ErrorType.TERMINAL)
            one.failed_phase = phase
            one.killed_reason = failure.last_error if failure.killed_by else None
            self._change(one, S.FAILED, by, failure.last_error if one is job else None, progress=True)


ASKED_FOR = 20.0
"""Seconds that a handler asks to wait, where it does."""
_CODES = {
    "retryable": "RETRYABLE", "asks for time": "RETRYABLE", "unexpected": "PROCESSING_ERROR",
    "timeout": "WORKER_TIMEOUT", "permanent": "PERMANENT", "not found": "NOT_FOUND", "skip": "SKIPPED",
    "step gone": "KIND_UNKNOWN",
}  # fmt: skip
_KILLERS = {"timeout": KilledBy.TIMEOUT}
_CLASSES = {
    "retryable": "Retryable", "asks for time": "Retryable", "unexpected": "ValueError",
    "timeout": "TimeLimitExceeded", "permanent": "Permanent", "not found": "NotFound", "skip": "Skip",
    "step gone": "KindUnknown",
}  # fmt: skip


def _place(job: Job) -> tuple[int, datetime | None]:
    return -job.priority, job.next_claim_at


def _demand(right: bool, otherwise: str) -> None:
    if not right:
        raise Wrong(otherwise)
