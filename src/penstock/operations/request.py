"""What a submission asks for, apart from its payloads."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from penstock.errors import InvalidInput
from penstock.lifecycle import bounds
from penstock.lifecycle.callers import SYSTEM, Caller
from penstock.lifecycle.payloads import JSON, storable_text

_NOT_SHOWN = re.compile("[\x00-\x1f\x7f-\x9f]+")


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
