"""What a submission asks for, apart from its payloads."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import TypedDict
from uuid import UUID

from penstock.errors import ConfigurationError, InvalidInput
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
    run_at: datetime | None
    """Only record it until then; it is released by itself, or before by ``jobs.release``."""
    delay: Duration | None
    """The same, so long from now."""
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
    run_at: datetime | None = None
    """Hold it until then."""
    delay: float | None = None
    """Hold it for so many seconds."""
    id: UUID | None = None
    """What it is called, where somebody knows it by that name already."""
    title: str | None = None
    """What people know it by: the name of a file, an address."""

    @classmethod
    def of(cls, caller: Caller, options: SubmitOptions) -> Request:
        """What a caller says of a job."""
        file, fresh_for, job_id = options.get("file"), options.get("fresh_for"), options.get("job_id")
        delay = options.get("delay")
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
            run_at=options.get("run_at"),
            delay=None if delay is None else _seconds_of(delay),
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
        self._require_one_time()
        if self.fresh_for is not None and self.unique_key is None:
            raise InvalidInput("fresh_for needs a unique_key: it says which results are the same", field="fresh_for")

    def _require_one_time(self) -> None:
        if self.run_at is not None and self.run_at.tzinfo is None:
            raise InvalidInput(
                f"run_at is {self.run_at.isoformat()}, which has no time zone; give one, like datetime.now(UTC)",
                field="run_at",
                code="TIME_ZONE_MISSING",
            )
        times = [name for name in ("hold", "run_at", "delay") if getattr(self, name) not in (None, False)]
        if len(times) > 1:
            raise InvalidInput(f"{times[0]} and {times[1]} contradict each other: give one of them", field=times[1])

    @property
    def is_held(self) -> bool:
        """Is it recorded without being let flow?"""
        return self.hold or self.is_delayed

    @property
    def is_delayed(self) -> bool:
        """Is it released by itself, at a later time?"""
        return self.run_at is not None or self.delay is not None

    @property
    def kept_title(self) -> str | None:
        """The title as it is kept: one line, and not a long one; a name is no reason to refuse a job."""
        if self.title is None:
            return None
        line = storable_text(_NOT_SHOWN.sub(" ", self.title)).strip()
        return (line if len(line) <= bounds.LONGEST_TITLE else f"{line[: bounds.LONGEST_TITLE - 1]}…") or None


def _seconds_of(delay: Duration) -> float:
    """It may come from a request: what is wrong with it is the asker's to mend."""
    try:
        return seconds(delay)
    except ConfigurationError as error:
        raise InvalidInput(error.message, field="delay") from None
