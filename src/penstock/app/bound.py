"""An application bound to a caller: jobs are submitted, read and changed in the caller's name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TypedDict, Unpack
from uuid import UUID

from penstock.app.files import Files
from penstock.app.items import Items
from penstock.app.jobs import Jobs, WorksOnJob
from penstock.app.runtime import Runtime
from penstock.errors import ConfigurationError, InvalidInput
from penstock.lifecycle.callers import Caller
from penstock.lifecycle.generic import Input, Params, Result
from penstock.lifecycle.identifiers import Identifier, read_new_id
from penstock.lifecycle.job import Submission
from penstock.lifecycle.kind import Kind
from penstock.lifecycle.payloads import JSON
from penstock.lifecycle.policy import Duration
from penstock.lifecycle.quantities import seconds
from penstock.operations.files import StoredFile
from penstock.operations.idempotency import Key, take_key
from penstock.operations.request import Request
from penstock.operations.submit import is_one_statement, submit
from penstock.operations.submit_many import submit_many
from penstock.store.callers_connection import CallersConnection
from penstock.store.transaction import Transaction


class SubmitOptions(TypedDict, total=False):
    """What may be said of a job when it is submitted, apart from its kind, its params and its items."""

    owner: str | None
    """Whose job it is. An owner submits their own; the system and admins may name anybody, or nobody."""
    title: str | None
    """What people know it by, like the name of a file."""
    priority: int | None
    """The higher comes first; its kind's unless it is said."""
    unique_key: str | None
    """One job does the work for all jobs of the same key at the same time."""
    fresh_for: Duration | None
    """With a ``unique_key``: a result that is not older than this answers the submission."""
    idempotency_key: str | None
    """The same request again, with the same key and owner (of guests, the same ``ip_address``), gives the same job,
    and another request with that key is refused.
    """
    fingerprint: JSON
    """What the client asked for under the ``idempotency_key``, where the params hold more than that."""
    ip_address: str | None
    """Where the request came from."""
    file: StoredFile | None
    """The kept file it works on."""
    hold: bool
    """Only record the job, until ``jobs.release``."""
    run_at: datetime | None
    """Only record it until then; it is released by itself, or before by ``jobs.release``."""
    delay: Duration | None
    """The same, so long from now."""
    job_id: Identifier | None
    """The job's id, if it has one already; an id that is in use is refused."""


class BoundApp:
    """The jobs, items and files of one caller: what :meth:`penstock.Penstock.acting_as` gives.

    A :class:`penstock.Penstock` is one itself: the system's.
    """

    caller: Caller
    """The caller."""
    jobs: Jobs
    """The jobs they see."""
    items: Items
    """The items of these jobs."""
    files: Files
    """The kept files they see."""

    def __init__(self, runtime: Runtime, caller: Caller, work_on: WorksOnJob) -> None:
        self._runtime = runtime
        self.caller = caller
        self.jobs = Jobs(runtime, caller, work_on)
        self.items = Items(runtime, caller)
        self.files = Files(runtime, caller)

    def submit(
        self,
        kind: str | Kind[Params, Input, Result],
        params: Params | None = None,
        *,
        items: Iterable[Input] | None = None,
        connection: CallersConnection | None = None,
        **options: Unpack[SubmitOptions],
    ) -> Submission:
        """Record a job for the workers; the answer has the job, and says whether it is new.

        ``items`` gives the job its items right away. With ``connection`` all happens inside the caller's own
        transaction.
        """
        registered_kind, max_bytes = self._kind(kind), self._runtime.settings.max_payload_bytes
        request = _request(self.caller, options)
        inputs = None if items is None else list(items)

        def operation(transaction: Transaction) -> Submission:
            return submit(transaction, registered_kind, params, request, items=inputs, max_bytes=max_bytes)

        if connection is None and inputs is None and is_one_statement(registered_kind, request):
            return self._runtime.store.write(operation, single_statement=True)
        return self._runtime.write(connection, operation)

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
        registered_kind, max_bytes = self._kind(kind), self._runtime.settings.max_payload_bytes
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

    def _kind(self, kind: str | Kind[Params, Input, Result]) -> Kind:
        return self._runtime.kinds.get(kind if isinstance(kind, str) else kind.name)


def _request(caller: Caller, options: SubmitOptions) -> Request:
    """What is asked for, apart from the payloads."""
    file, fresh_for, job_id = options.get("file"), options.get("fresh_for"), options.get("job_id")
    delay = options.get("delay")
    return Request(
        owner=caller.acts_for(options.get("owner")),
        caller=caller,
        unique_key=options.get("unique_key"),
        fresh_for=None if fresh_for is None else seconds(fresh_for),
        idempotency_key=options.get("idempotency_key"),
        fingerprint=options.get("fingerprint"),
        priority=options.get("priority"),
        file_id=None if file is None else file.id,
        file_sha256=None if file is None else file.sha256,
        ip_address=options.get("ip_address"),
        hold=options.get("hold", False),
        run_at=options.get("run_at"),
        delay=None if delay is None else _seconds_of_delay(delay),
        id=None if job_id is None else read_new_id(job_id, "job_id"),
        title=options.get("title"),
    )


def _seconds_of_delay(delay: Duration) -> float:
    """It may come from a request: what is wrong with it is the asker's to mend."""
    try:
        return seconds(delay)
    except ConfigurationError as error:
        raise InvalidInput(error.message, field="delay") from None
