"""What a submission asks for, apart from its payloads."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypedDict
from uuid import UUID

from penstock.errors import InvalidInput
from penstock.lifecycle import bounds
from penstock.lifecycle.callers import SYSTEM, Caller
from penstock.lifecycle.files import StoredFile
from penstock.lifecycle.identifiers import Identifier, read_new_id
from penstock.lifecycle.payloads import JSON, storable_text
from penstock.lifecycle.policy import Duration
from penstock.lifecycle.quantities import seconds

_NOT_SHOWN = re.compile("[\x00-\x1f\x7f-\x9f]+")


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
    job_id: Identifier | None
    """The job's id, if it has one already; an id that is in use is refused."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for, apart from the payloads."""

    owner: str | None = None
    caller: Caller = SYSTEM
    unique_key: str | None = None
    fresh_for: float | None = None
    idempotency_key: str | None = None
    fingerprint: JSON = None
    """What the idempotency key stands for, where it is not simply the kind, the params, the items and the file."""
    priority: int | None = None
    file_id: UUID | None = None
    file_sha256: str | None = None
    ip_address: str | None = None
    hold: bool = False
    """Record it, but do not let it flow until ``submit_created``."""
    id: UUID | None = None
    """What it is called, where somebody knows it by that name already."""
    title: str | None = None
    """What people know it by: the name of a file, an address."""

    @classmethod
    def of(cls, caller: Caller, options: SubmitOptions) -> Request:
        """What a caller says of a job."""
        file, fresh_for, job_id = options.get("file"), options.get("fresh_for"), options.get("job_id")
        return cls(
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
            id=None if job_id is None else read_new_id(job_id, "job_id"),
            title=options.get("title"),
        )

    def __post_init__(self) -> None:
        for bound in (bounds.OWNER, bounds.UNIQUE_KEY, bounds.IDEMPOTENCY_KEY, bounds.IP_ADDRESS):
            value = getattr(self, bound.field)
            if value is not None:
                bound.require(value)
        if self.priority is not None:
            bounds.PRIORITY.require(self.priority)
        if self.fresh_for is not None and self.unique_key is None:
            raise InvalidInput("fresh_for needs a unique_key: it says which results are the same", field="fresh_for")

    @property
    def kept_title(self) -> str | None:
        """The title as it is kept: one line, and not a long one; a name is no reason to refuse a job."""
        if self.title is None:
            return None
        line = storable_text(_NOT_SHOWN.sub(" ", self.title)).strip()
        return (line if len(line) <= bounds.LONGEST_TITLE else f"{line[: bounds.LONGEST_TITLE - 1]}…") or None
