"""How much of everything is asked."""

from __future__ import annotations

from dataclasses import dataclass

Figures = dict[str, float | None]
"""A question's answer, by the names of the table's columns; None where the peer does not offer it."""


@dataclass(frozen=True, slots=True)
class Size:
    """The numbers of jobs and units, and how long we wait for them."""

    one_at_a_time: int = 1_000
    in_bulk: int = 20_000
    drained: int = 20_000
    pick_ups: int = 200
    units: int = 100_000
    units_of_the_slow: int = 20_000
    canceled: int = 20_000
    killed: int = 20_000
    tables: tuple[int, ...] = (10_000, 100_000, 1_000_000, 10_000_000)
    patience: float = 600.0
    work_seconds: float = 180.0
    """How long one user's work may take before it is counted by what is done."""
    silence: float = 90.0
    """How long nothing may happen after a kill before what is missing counts as missing."""

    @classmethod
    def quick(cls) -> Size:
        """Enough to see that it works."""
        return cls(
            one_at_a_time=200, in_bulk=2_000, drained=2_000, pick_ups=40, units=5_000, units_of_the_slow=1_000,
            canceled=2_000, killed=2_000, tables=(5_000, 20_000), work_seconds=60.0, silence=40.0,
        )  # fmt: skip
