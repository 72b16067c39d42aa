"""``app.system``: the database, the workers and the whole of the jobs, for whoever operates them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from uuid import UUID

from penstock.app.runtime import Runtime
from penstock.lifecycle.policy import Duration
from penstock.lifecycle.quantities import seconds
from penstock.lifecycle.states import JobState
from penstock.operations import ended_sessions, outbox, read_items, read_jobs
from penstock.operations.ages import Ages, ages
from penstock.operations.backfill import backfill
from penstock.operations.forgotten_kinds import forgotten_kinds
from penstock.operations.import_jobs import PastJob, import_job
from penstock.operations.maintenance import MaintenanceReport, sweep
from penstock.operations.prune import FileUsers, count_overdue, count_pruned, prune_some
from penstock.operations.samples import LaneSample, samples
from penstock.operations.unsubscribed import UnsubscribedMessages
from penstock.operations.workers import WorkerSeen, count_deaths, workers
from penstock.store.database_url import check_database, describe_connection, file_of, remarks
from penstock.store.lock_waiting import say_in_the_log
from penstock.store.queries.ended_sessions import EndedSession
from penstock.store.queries.prune import PrunedCount
from penstock.store.schema import Patience, migrate
from penstock.store.transaction import Transaction

_IMPORTED_AT_ONCE = 500


def _differences(before: Mapping[tuple[str, str], PrunedCount], after: Sequence[PrunedCount]) -> list[PrunedCount]:
    """What was counted in between."""
    new_counts = []
    for count in after:
        old = before.get((count.kind, count.state), PrunedCount(count.kind, count.state, 0, 0))
        if count.jobs > old.jobs:
            new_counts.append(count._replace(jobs=count.jobs - old.jobs, items=count.items - old.items))
    return new_counts


class System:
    """What concerns all jobs: it acts as the system, whatever caller is bound."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._unsubscribed = UnsubscribedMessages()

    # The database -------------------------------------------------------------------------------------------------

    @property
    def database_file(self) -> Path | None:
        """The file of an embedded database; None for a server's, and for one in memory."""
        return file_of(self._runtime.settings.database_url)

    def migrate(
        self, *, lock_timeout: Duration = 1.0, wait: Duration = 60.0, say: Callable[[str], None] = say_in_the_log
    ) -> None:
        """Bring the database's schema up to date; safe while old code runs, and when called twice.

        On a server in service it waits for others ``lock_timeout`` at a time, for ``wait`` at most, and ``say`` is told
        how it goes on. A database in the layout of an earlier version needs stopped workers, once.
        """
        patience = Patience(lock_timeout=seconds(lock_timeout), wait=seconds(wait))
        with self._runtime.open_apart(migrating=True) as store:
            migrate(store, self._runtime.schemas, patience=patience, say=say)

    def check_database(self) -> list[str]:
        """Reach the database and look at its schema, changing nothing; what is wrong is raised.

        The answer is what its operator should know about it nonetheless.
        """
        with self._runtime.open_apart() as store:
            check_database(store, self._runtime.schemas)
            return remarks(store)

    def describe_connection(self) -> list[str]:
        """How a database server is reached, in words, and whether its notices arrive."""
        with self._runtime.open_apart() as store:
            return describe_connection(store)

    # Looking ------------------------------------------------------------------------------------------------------

    def count_jobs(self) -> dict[tuple[str, JobState], int]:
        """How many jobs there are of each kind in each state."""
        return self._runtime.store.read(read_jobs.count_by_state, single_statement=True)

    def change_marks(self, job_ids: Iterable[UUID]) -> dict[UUID, tuple[datetime, int]]:
        """For each of these jobs something that changes whenever the job does: one look for many who watch."""
        return self._runtime.store.read(
            lambda transaction: read_jobs.marks(transaction, job_ids), single_statement=True
        )

    def samples(
        self, *, since: datetime, until: datetime | None = None, kind: str | None = None
    ) -> Sequence[LaneSample]:
        """What the workers' controllers chose since then, and what they saw, the oldest first."""
        return self._runtime.store.read(
            lambda transaction: samples(transaction, since=since, until=until, kind=kind), single_statement=True
        )

    def workers(self) -> list[WorkerSeen]:
        """The workers that are there, and those that died within the last hour, by name."""
        return self._runtime.store.read(workers, single_statement=True)

    def forgotten_kinds(self) -> list[str]:
        """Kinds that jobs wait for, and that neither this app nor any worker that is alive knows."""
        own_kinds = [kind.name for kind in self._runtime.kinds]
        return self._runtime.store.read(lambda transaction: forgotten_kinds(transaction, own_kinds))

    def count_worker_deaths(self) -> int:
        """How many workers died or stopped responding while they held items, since the database was made."""
        return self._runtime.store.read(count_deaths, single_statement=True)

    def ages(self) -> Ages:
        """How long the oldest item of each kind has waited or run, and which leases ran out."""
        return self._runtime.store.read(
            lambda transaction: ages(transaction, read_items.open_counts(transaction, user=None))
        )

    # Sessions -----------------------------------------------------------------------------------------------------

    def end_sessions(self, user: str | None) -> datetime:
        """Void the tokens that were issued for a user until now, or for everybody with ``None``; the answer is when.

        Servers notice within PENSTOCK_SESSION_CHECK_SECONDS. It goes by this machine's clock, as tokens do.
        """
        now = datetime.now(UTC)

        def operation(transaction: Transaction) -> None:
            if user is None:
                ended_sessions.end_everybodys(transaction, now)
            else:
                ended_sessions.end_users(transaction, user, now)

        self._runtime.store.write(operation)
        return now

    def end_session(self, session: str, *, expires_at: datetime) -> None:
        """Void the token of one session, which would be good until it expires."""
        now = datetime.now(UTC)
        self._runtime.store.write(
            lambda transaction: ended_sessions.end_one(transaction, session, now, expires_at=expires_at)
        )

    def ended_sessions(self, since: datetime) -> list[EndedSession]:
        """Which sessions were ended since a moment of the database's clock."""
        return self._runtime.store.read(
            lambda transaction: ended_sessions.read_ended(transaction, since), single_statement=True
        )

    # Maintenance --------------------------------------------------------------------------------------------------

    def sweep(self) -> MaintenanceReport:
        """One maintenance pass: expired leases, due retries, limits, unused results, stale jobs, the outbox."""
        settings, store, transport = self._runtime.settings, self._runtime.store, self._runtime.transport
        report = sweep(
            store,
            self._runtime.kinds,
            stale_seconds=settings.stale_minutes * 60,
            suspect_deaths=settings.suspect_deaths,
        )
        outbox.relay_through(store, transport)
        self._unsubscribed.look_after(store, transport.topics(), days=settings.unsubscribed_message_days)
        for hook in self._runtime.sweep_hooks:
            hook()
        return report

    def prune(self, *, dry_run: bool = False) -> list[PrunedCount]:
        """Delete all jobs that have been kept for as long as their kinds say; the answer is how many, by kind and end.

        A ``dry_run`` only counts them. Workers do the same, a little at a time; while this goes on it rests as long as
        it works, so that it takes no more than half of one connection's time.
        """
        store, rules = self._runtime.store, self._runtime.prune_rules
        overdue = count_overdue(store, rules)
        if dry_run:
            return overdue
        before = {(count.kind, count.state): count for count in count_pruned(store)}
        files = self._runtime.settings.files_directory
        more = True
        while more:
            began_at = time.monotonic()
            more = prune_some(store, rules, files)
            time.sleep(time.monotonic() - began_at if more else 0)
        return _differences(before, count_pruned(store))

    def count_pruned(self) -> list[PrunedCount]:
        """How many jobs, and items of theirs, were pruned since the database was made, by kind and last state."""
        return count_pruned(self._runtime.store)

    def keep_files(self, users: FileUsers) -> None:
        """Have an application say which of some files it still has: those are not deleted with their last job.

        ``users`` is given ids of files, and answers with those among them that its own tables refer to.
        """
        self._runtime.file_users.append(users)

    def in_each_sweep(self, hook: Callable[[], None]) -> None:
        """Call ``hook`` in each maintenance pass, of workers too: for what an application has to look after.

        Passes are made by many processes at once, so it must be safe to be called by all of them.
        """
        self._runtime.sweep_hooks.append(hook)

    def backfill(self) -> int:
        """Write each job's owner and kind to its items again, where they say otherwise; the answer is how many did."""
        return backfill(self._runtime.store)

    def import_jobs(self, kind: str, past_jobs: Iterable[PastJob]) -> int:
        """Bring jobs over that are over in another system; the answer is how many were not here yet.

        They keep their ids, times and results, have no items, and their history says where they came from.
        """
        registered_kind, max_bytes = self._runtime.kinds.get(kind), self._runtime.settings.max_payload_bytes

        def operation(batch: list[PastJob], transaction: Transaction) -> int:
            return sum(import_job(transaction, registered_kind, past, max_bytes=max_bytes) for past in batch)

        waiting = iter(past_jobs)
        imported_count = 0
        while batch := list(islice(waiting, _IMPORTED_AT_ONCE)):
            imported_count += self._runtime.store.write(partial(operation, batch))
        return imported_count
