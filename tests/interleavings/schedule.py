"""A schedule: which operations run in which scene, in which order, and what is done to them. As text it can be kept."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Harm(StrEnum):
    """What is done to an operation."""

    DIES = "dies"
    """Its process stops: nothing more is sent, and its connection is torn down."""
    IS_CUT = "is cut"
    """The server ends its session; the operation goes on and finds out."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Harm that comes to one of the operations at one of its points, counted from 1."""

    slot: int
    point: int
    harm: Harm

    def __str__(self) -> str:
        return f"{self.slot} {self.harm} at {self.point}"


@dataclass(frozen=True, slots=True)
class Schedule:
    """What to run, and who goes next at each step; when the choices are used up, whoever runs goes on.

    >>> text = "lead_running / cancel L + done h1 / 0110 / 1 is cut at 3"
    >>> str(Schedule.parse(text)) == text
    True
    """

    scene: str
    operations: tuple[str, ...]
    choices: tuple[int, ...] = ()
    fault: Fault | None = None

    def __str__(self) -> str:
        parts = [self.scene, " + ".join(self.operations), "".join(map(str, self.choices))]
        if self.fault is not None:
            parts.append(str(self.fault))
        return " / ".join(parts)

    @classmethod
    def parse(cls, text: str) -> Schedule:
        """The schedule that is written like this."""
        scene, operations, choices, *fault = (part.strip() for part in text.split("/"))
        named = tuple(name.strip() for name in operations.split("+"))
        return cls(scene, named, tuple(map(int, choices)), _fault(fault[0]) if fault else None)


def _fault(text: str) -> Fault:
    slot, _, rest = text.partition(" ")
    harm, _, point = rest.partition(" at ")
    return Fault(int(slot), int(point), Harm(harm))
