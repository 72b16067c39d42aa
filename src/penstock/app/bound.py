"""An application bound to a caller: jobs are submitted, read and changed in the caller's name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

from penstock.app.items import Items
from penstock.app.jobs import Jobs, WorksOnJob
from penstock.app.runtime import Runtime
from penstock.lifecycle.callers import Caller, require_caller
from penstock.lifecycle.generic import Input, Params, Result
from penstock.lifecycle.identifiers import Identifier, read_new_id
from penstock.lifecycle.kind import Kind
from penstock.lifecycle.payloads import JSON
from penstock.operations.files import Files
from penstock.operations.idempotency import Key, take_key
from penstock.operations.request import Request
from penstock.operations.submit import Submitter
from penstock.operations.submit_many import submit_many
from penstock.store.callers_connection import CallersConnection


class BoundApp(Submitter):
    """The jobs, items and files of one caller: what :meth:`penstock.Penstock.acting_as` gives.

    A :class:`penstock.Penstock` is one itself: the system's.
    """

    jobs: Jobs
    """The jobs they see."""
    items: Items
    """The items of these jobs."""
    files: Files
    """The kept files they see."""

    def __init__(self, runtime: Runtime, caller: Caller, work_on: WorksOnJob) -> None:
        require_caller(caller)
        super().__init__(runtime, caller)
        self._runtime = runtime
        self.jobs = Jobs(runtime, caller, work_on)
        self.items = Items(runtime, caller)
        self.files = Files(runtime, caller)

    def submit_many(
        self,
        kind: str | Kind[Params, Input, Result],
        params: Iterable[Params],
        *,
        owner: str | None = None,
        priority: int | None = None,
        connection: CallersConnection | None = None,
    ) -> list[UUID]:
        """Record one job for each of ``params``, in one transaction; the answer is their ids, in order."""
        registered_kind, max_bytes = self._kind_of(kind), self._runtime.settings.max_payload_bytes
        request = Request(owner=self.caller.acts_for(owner), caller=self.caller, priority=priority)
        # The transaction may have to be run again, and a generator yields once.
        each = params if isinstance(params, Sequence) else list(params)
        return self._runtime.write(
            connection,
            lambda transaction: submit_many(transaction, registered_kind, each, request, max_bytes=max_bytes),
        )

    def take_key(
        self,
        idempotency_key: str,
        fingerprint: JSON,
        *,
        owner: str | None = None,
        ip_address: str | None = None,
        resource_id: Identifier | None = None,
        connection: CallersConnection | None = None,
    ) -> UUID | None:
        """Take an idempotency key for a request before it is carried out; the answer is what it has led to so far.

        That is a job, or the ``resource_id`` with which it was taken: something an application keeps itself, recorded
        in the same transaction (``connection``). A key that was used for another request is refused.
        """
        whose = self.caller.acts_for(owner)
        Request(owner=whose, idempotency_key=idempotency_key, ip_address=ip_address)  # it has bounds
        key = Key.of(idempotency_key, fingerprint, owner=whose, guest=ip_address)
        resource = None if resource_id is None else read_new_id(resource_id, "resource_id")
        key_use = self._runtime.write(connection, lambda transaction: take_key(transaction, key, resource_id=resource))
        return None if key_use is None else key_use.job_id or key_use.resource_id
