"""What is submitted again and again, and when: pure, by cron's own rules and a time zone.

A *tick* is a moment that the cron expression names. When the clocks are changed, a time of day that is left out comes
at the change, and one that comes twice is one tick, as Debian's cron has it; what runs every hour or every few minutes
goes by the clock that never changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cache
from itertools import islice, takewhile
from typing import Any
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from penstock.errors import ConfigurationError
from penstock.lifecycle import bounds
from penstock.lifecycle.payloads import JSON

LATE = timedelta(minutes=1)
"""A tick that nobody has submitted for so long was missed: all programs were down, or had no time."""
MOST_TICKS = 1_000
"""How many missed ticks are made good for at once; the others follow in the next turns."""


_FIELDS = 5


class CatchUp(StrEnum):
    """What becomes of ticks that were missed."""

    ONE = "one"
    """The last of them is run."""
    ALL = "all"
    """Each of them is run."""
    NONE = "none"
    """None of them is run."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A job that is submitted at each tick."""

    name: str
    cron: str
    kind: str
    params: JSON = None
    zone: str = "UTC"
    catch_up: CatchUp = CatchUp.ONE
    owner: str | None = None
    title: str | None = None
    priority: int | None = None
    unique_key: str | None = None
    """With a key, a tick that comes while the job of the tick before still runs is answered with that one."""

    def __post_init__(self) -> None:
        bounds.SCHEDULE.require(self.name)
        _zone(self.zone)
        _require_cron(self.cron, self.name)

    def as_json(self) -> dict[str, JSON]:
        """What is kept of it beside its name."""
        definition = asdict(self)
        del definition["name"]
        return definition

    @classmethod
    def from_json(cls, name: str, definition: dict[str, Any]) -> Schedule:
        """What was kept."""
        return cls(name, **definition | {"catch_up": CatchUp(definition["catch_up"])})

    def ticks(self, after: datetime) -> Iterator[datetime]:
        """The moments that the expression names, behind another one.

        >>> nightly = Schedule("nightly", "30 2 * * *", "report", zone="Europe/Berlin")
        >>> [f"{tick:%d %H:%M}" for tick in islice(nightly.ticks(datetime(2026, 3, 28, tzinfo=UTC)), 3)]
        ['28 01:30', '29 01:00', '30 00:30']
        """
        for local_tick in CronSim(self.cron, after.astimezone(_zone(self.zone))):
            tick = local_tick.astimezone(UTC)
            if tick > after:  # in the hour that comes twice, a time of day is found in the first one again
                yield tick

    def first_tick(self, after: datetime) -> datetime | None:
        """The next one; None where none comes in fifty years."""
        return next(self.ticks(after), None)

    def due(self, tick: datetime, now: datetime) -> Due:
        """Which jobs are to be submitted now that the waited-for tick has come, and which tick is waited for next."""
        rest = self.ticks(tick)
        ticks = [tick, *islice(takewhile(lambda later: later <= now, rest), MOST_TICKS - 1)]
        late_ticks = [late for late in ticks if now - late > LATE]
        ticks_in_time = ticks[len(late_ticks) :]
        if self.catch_up is CatchUp.NONE:
            late_ticks = []
        if self.catch_up is CatchUp.ONE:  # one in time stands for those that were missed
            late_ticks = [] if ticks_in_time else late_ticks[-1:]
        return Due((*late_ticks, *ticks_in_time), self.first_tick(ticks[-1]))


@dataclass(frozen=True, slots=True)
class Due:
    """What a schedule's turn comes to."""

    ticks: tuple[datetime, ...]
    next_tick: datetime | None


@cache
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ConfigurationError(
            f"{name!r} is not a time zone; name one like Europe/Berlin or UTC", code="TIME_ZONE_UNKNOWN"
        ) from error


def _require_cron(cron: str, name: str) -> None:
    try:
        if len(cron.split()) != _FIELDS:
            raise CronSimError("it has five fields")
        CronSim(cron, datetime(2026, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        raise ConfigurationError(
            f"{cron!r} of the schedule {name!r} is not a cron expression ({error}); "
            "write minute, hour, day, month and weekday, like '0 3 * * *' or '*/15 8-18 * * MON-FRI'",
            code="CRON_NOT_UNDERSTOOD",
        ) from error
