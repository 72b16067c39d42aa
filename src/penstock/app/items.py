"""``app.items``: a job's items, page by page, what waits in all jobs, and lines for a file."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Sequence
from uuid import UUID

from penstock.app.runtime import Runtime
from penstock.errors import NotSignedIn
from penstock.lifecycle.callers import Caller, Visibility
from penstock.lifecycle.identifiers import Identifier, read_job_id
from penstock.lifecycle.job import Item, Job
from penstock.lifecycle.states import ItemStatus
from penstock.operations import read_items, read_jobs
from penstock.operations.export import Grid, export_grid
from penstock.operations.read_items import ErrorGroup, ItemCursor, ItemRow, TimeRange
from penstock.store.transaction import Transaction


class Items:
    """The items of the jobs that a caller sees."""

    def __init__(self, runtime: Runtime, caller: Caller) -> None:
        self._runtime = runtime
        self._caller = caller

    def list(
        self,
        job_id: Identifier,
        *,
        statuses: Iterable[ItemStatus] | None = None,
        after: int = 0,
        limit: int = 1000,
    ) -> builtins.list[Item]:
        """A page of a job's items, behind position ``after``."""
        status_list = None if statuses is None else [*statuses]

        def question(transaction: Transaction) -> builtins.list[Item]:
            job = self._visible(transaction, job_id)
            return read_jobs.items(transaction, job.id, statuses=status_list, after=after, limit=limit)

        return self._runtime.store.read(question)

    def page(
        self,
        job_id: Identifier,
        *,
        statuses: Sequence[ItemStatus] | None = None,
        after: ItemCursor | None = None,
        between: TimeRange | None = None,
        limit: int = 100,
        descending: bool = False,
    ) -> builtins.list[ItemRow]:
        """A page of a job's grid: in the items' own order, or, of some ``statuses``, in that of their last change."""

        def question(transaction: Transaction) -> builtins.list[ItemRow]:
            identifier = self._visible(transaction, job_id).id
            if statuses is None and between is None:
                behind = None if after is None else after.position
                return read_items.page_in_order(
                    transaction, identifier, behind=behind, limit=limit, descending=descending
                )
            return read_items.page_by_change(
                transaction,
                identifier,
                statuses=tuple(ItemStatus) if statuses is None else statuses,
                after=after,
                between=between,
                limit=limit,
                descending=descending,
            )

        return self._runtime.store.read(question)

    def pending(
        self,
        *,
        user: str | None = None,
        statuses: Sequence[ItemStatus] = (ItemStatus.PENDING, ItemStatus.PROCESSING),
        kind: str | None = None,
        after: ItemCursor | None = None,
        between: TimeRange | None = None,
        limit: int = 100,
    ) -> builtins.list[ItemRow]:
        """A page of what waits: in an owner's own jobs; for others in the jobs of ``user``, or of everybody."""
        whose = self._whose(user)
        return self._runtime.store.read(
            lambda transaction: read_items.pending_page(
                transaction, statuses=statuses, user=whose, kind=kind, after=after, between=between, limit=limit
            )
        )

    def count_open(self, *, user: str | None = None) -> dict[str, int]:
        """How many items wait or run, by kind: in the same jobs as those of :meth:`pending`."""
        whose = self._whose(user)
        return self._runtime.store.read(
            lambda transaction: read_items.open_counts(transaction, user=whose), single_statement=True
        )

    def error_groups(self, job_id: Identifier) -> builtins.list[ErrorGroup]:
        """A job's failed items by error code, the most frequent first."""

        def question(transaction: Transaction) -> builtins.list[ErrorGroup]:
            return read_items.error_groups(transaction, self._visible(transaction, job_id).id)

        return self._runtime.store.read(question)

    def export(self, job_id: Identifier, *, statuses: Sequence[ItemStatus] | None = None) -> Grid:
        """A job's grid, its lines read as they are asked for."""
        return export_grid(self._runtime, read_job_id(job_id), self._caller, statuses=statuses)

    def _visible(self, transaction: Transaction, job_id: Identifier) -> Job:
        """A job that the caller may see."""
        identifier: UUID = read_job_id(job_id)
        return read_jobs.get_job(transaction, identifier, self._caller)

    def _whose(self, user: str | None) -> str | None:
        """Whose jobs are meant; None is everybody's."""
        if self._caller.sight is Visibility.GUESTS:
            raise NotSignedIn("what waits is listed for users: sign in")
        return self._caller.acts_for(user)
