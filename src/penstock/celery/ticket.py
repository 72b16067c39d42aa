"""A ticket: a message that says that there is work, and holds none of it.

It names a kind and how many items may be claimed. Who gets it claims from the database, as everybody does. So one that
is lost is sent again, one that is doubled or late finds nothing, and one that waits keeps nobody from anything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from math import ceil

from penstock.errors import InvalidInput

_CODE = "TICKET_INVALID"
_MAX_SIZE = 1_000_000
_SHOWN_CHARACTERS = 80
_HOLDER_CHARACTERS = 64
"""What ``job_items.locked_by`` takes."""
_TASK_CHARACTERS = 36


@dataclass(frozen=True, slots=True)
class Ticket:
    """Up to so many items of a kind may be claimed."""

    kind: str
    size: int

    def message(self) -> dict[str, object]:
        """The task's arguments."""
        return {"kind": self.kind, "size": self.size}


def read_ticket(arguments: Sequence[object], keywords: Mapping[str, object], kinds: Collection[str]) -> Ticket:
    """The ticket of a task's arguments, whoever has sent them.

    >>> read_ticket((), {"kind": "thumbs", "size": 100}, ["thumbs"])
    Ticket(kind='thumbs', size=100)
    >>> read_ticket((), {"kind": "thumbs"}, ["thumbs"])
    Traceback (most recent call last):
    ...
    penstock.errors.InvalidInput: a ticket has a kind and a size, this one has: kind
    """
    if arguments or set(keywords) != {"kind", "size"}:
        names = ", ".join(map(_shorten, (*arguments, *sorted(keywords)))) or "nothing"
        raise InvalidInput(f"a ticket has a kind and a size, this one has: {_shorten(names)}", code=_CODE)
    kind, size = keywords["kind"], keywords["size"]
    if not isinstance(kind, str) or kind not in kinds:
        raise InvalidInput(
            f"the ticket names the kind {_shorten(kind)}, which does not run on Celery here", field="kind", code=_CODE
        )
    if not isinstance(size, int) or isinstance(size, bool) or not 0 < size <= _MAX_SIZE:
        raise InvalidInput(
            f"a ticket's size is a number from 1 to {_MAX_SIZE:,}, not {_shorten(size)}", field="size", code=_CODE
        )
    return Ticket(kind, size)


def _shorten(value: object) -> str:
    """A value of a stranger, for an error message."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"


def holder_of(task_id: str, node: str) -> str:
    """In whose name a task claims: ``locked_by`` names the task and the host.

    >>> holder_of("7b0f8a2c-2c3f-4c5e-9d6a-1f2e3d4c5b6a", "celery@images-3")
    'celery:7b0f8a2c-2c3f-4c5e-9d6a-1f2e3d4c5b6a@images-3'
    """
    host = node.rpartition("@")[2]
    return f"celery:{task_id[:_TASK_CHARACTERS]}@{host}"[:_HOLDER_CHARACTERS]


def share_out(due: Mapping[str, int], *, waiting: int, window: int, largest: int) -> list[Ticket]:
    """The tickets to send: what is due in as many parts as the window has, less those that wait already.

    Kinds take turns, in their order, so that none waits behind all tickets of another.

    >>> share_out({"thumbs": 1_000}, waiting=0, window=4, largest=500)
    [Ticket(kind='thumbs', size=250), Ticket(kind='thumbs', size=250), Ticket(kind='thumbs', size=250), \
Ticket(kind='thumbs', size=250)]
    >>> share_out({"thumbs": 1, "scan": 1}, waiting=0, window=4, largest=500)
    [Ticket(kind='thumbs', size=1), Ticket(kind='scan', size=1)]
    >>> share_out({"thumbs": 3}, waiting=3, window=4, largest=500)
    []
    """
    parts = {
        Ticket(kind, size): ceil(items / size)
        for kind, items in due.items()
        if (size := max(1, min(ceil(items / window), largest)))
    }
    count = min(window, sum(parts.values())) - waiting
    return list(islice(_in_turns(parts), max(0, count)))


def _in_turns(parts: Mapping[Ticket, int]) -> Iterator[Ticket]:
    counts = {ticket: count for ticket, count in parts.items() if count > 0}
    for ticket in cycle(tuple(counts)):
        if not any(counts.values()):
            return
        if counts[ticket]:
            counts[ticket] -= 1
            yield ticket
