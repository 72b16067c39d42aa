"""Kinds of jobs that a test holds in its hand: one waits, one fails in two ways, one has many items."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any
from uuid import UUID

from penstock import Permanent, Planned

if TYPE_CHECKING:
    from penstock import ItemContext, JobContext, Penstock

HOLD = "hold"
FAIL_SOME = "fail-some"
MANY = "many"
CLOSED = "SHOP_CLOSED"
TORN = "LABEL_TORN"
CLOSED_EVERY = 3
TORN_EVERY = 5

_COLUMNS = ("title", "brand", "sku", "price")
_numbers = count(1)


@dataclass(frozen=True, slots=True)
class Gate:
    """Where items wait until the test lets them through. Handlers know it by its number, which is in their input."""

    number: int = field(default_factory=lambda: next(_numbers))
    places: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    is_open: threading.Event = field(default_factory=threading.Event)
    mended: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        _gates[self.number] = self


_gates: dict[int, Gate] = {}


def let_everything_go() -> None:
    """No item waits any longer, whatever its test did."""
    for gate in list(_gates.values()):
        gate.is_open.set()
    _gates.clear()


@dataclass(frozen=True, slots=True)
class Held:
    """A job whose items wait."""

    id: UUID
    gate: Gate

    def let(self, items: int) -> None:
        """So many of its items may end."""
        self.gate.places.release(items)

    def let_go(self) -> None:
        """All of them may."""
        self.gate.is_open.set()


@dataclass(frozen=True, slots=True)
class Failing:
    """A job some of whose items fail: each third because the shop is closed, of the others each fifth by its label."""

    id: UUID
    gate: Gate

    def mend(self) -> None:
        """From now on they succeed, if they are run again."""
        self.gate.mended.set()


def goods(number: int) -> dict[str, Any]:
    """One of the things that the items are about."""
    title = ("Kettle", "Garden hose", "Lamp", "Ladder")[number % 4]
    return {"title": f"{title} {number}", "brand": ("Weir", "Sluice")[number % 2], "sku": f"S-{number:05}"}


class _OfGoods:
    columns = _COLUMNS

    def plan(self, job: JobContext) -> Iterator[Planned]:
        """As many as were asked for."""
        for number in range(1, job.params["items"] + 1):
            yield Planned({"number": number, "gate": job.params["gate"]}, goods(number))


class Hold(_OfGoods):
    """Each item waits at the gate, and stops when it is told to."""

    def process(self, item: ItemContext) -> dict[str, Any]:
        """Wait for a place."""
        gate = _gates.get(item.input["gate"])
        while gate is not None and not gate.is_open.is_set() and not gate.places.acquire(timeout=0.02):
            item.check()
        return _found(item)


class FailSome(_OfGoods):
    """Some fail for good, in two ways, until they are mended."""

    def process(self, item: ItemContext) -> dict[str, Any]:
        """Fail, or not."""
        gate = _gates.get(item.input["gate"])
        number = item.input["number"]
        if gate is not None and not gate.mended.is_set():
            if number % CLOSED_EVERY == 0:
                raise Permanent("the shop is closed on Mondays", code=CLOSED)
            if number % TORN_EVERY == 0:
                raise Permanent(f"the label of {number} is torn", code=TORN)
        return _found(item)


class Many(_OfGoods):
    """All succeed, as fast as they can."""

    async def process(self, item: ItemContext) -> dict[str, Any]:
        """Nothing to wait for."""
        return _found(item)

    def finalize(self, job: JobContext) -> dict[str, int]:
        """How many there were."""
        return {"found": job.progress.done}


def _found(item: ItemContext) -> dict[str, Any]:
    number = item.input["number"]
    return {**goods(number), "price": f"{number % 90 + 9}.50"}


def register(app: Penstock) -> None:
    """Make the kinds known."""
    app.kind(HOLD, retries=0, concurrency=4, reprocess=True)(Hold)
    app.kind(FAIL_SOME, retries=0, reprocess=True)(FailSome)
    app.kind(MANY, retries=0, reprocess=True)(Many)
