"""What a submission asks for, apart from its payloads."""

from __future__ import annotations

import re
from dataclasses import dataclass
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
        if self.fresh_for is not None and self.unique_key is None:
            raise InvalidInput("fresh_for needs a unique_key: it says which results are the same", field="fresh_for")

    @property
    def kept_title(self) -> str | None:
        """The title as it is kept: one line, and not a long one; a name is no reason to refuse a job."""
        if self.title is None:
            return None
        line = storable_text(_NOT_SHOWN.sub(" ", self.title)).strip()
        return (line if len(line) <= bounds.LONGEST_TITLE else f"{line[: bounds.LONGEST_TITLE - 1]}…") or None
