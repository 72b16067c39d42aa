"""From where on a lane has to look in its kind's line: a low watermark for each priority.

A job that has been served leaves its place in the index behind as a dead entry. PostgreSQL removes it once no snapshot
can see the job as it was; while somebody keeps an old one open (a backup, a report), every claim would step over the
places of all jobs served since. So a lane remembers below which turn nothing is left, and begins there.

The mark is found by a plain read beside the claims, :func:`look`: the first turn that is in line, but none later than
what may still come in before it. A job gets its turn from the clock when it is written, and is seen when its
transaction commits, which may be much later. Transactions get a number when they first write. So each look takes a
number, too. Once all transactions with a lower one have ended, whatever is committed from then on was written after
that look and has no earlier turn: up to that look, the line is settled. ::

     served, dead           settled            in line                        now
    |.......................|..................|oooooooooooooooooooooooooooooo|
                            ^ the mark: nobody gets in line before it

A transaction that stays open for minutes would hold the mark where it is. Claims then follow the clock at a distance
instead (``near``, one second), and what commits later than that is found by looks from where the line is settled
(``sure``). Now and then a look goes back to the very beginning (``whole``), for clocks that were set and rows that were
changed by hand. What is made often is cheap, and what is dear is made less often: a lane gives a small share of its
time to its looks, whatever they cost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum, auto

from penstock.store.engine import Store
from penstock.store.queries import line as queries
from penstock.store.queries.line import FirstTurn, Look, WideLook

_INTERVAL = 0.1
"""Seconds between two looks of a busy lane."""
_GRACE = timedelta(seconds=0.1)
"""A statement reads the clock a little before its transaction gets its number."""
_LAG = timedelta(seconds=1)
_KEPT_PRIORITIES = 64
"""Beyond so many, a priority is remembered only while something of it is in line."""
_BELOW_ALL, _ABOVE_ALL = -(2**15) - 1, 2**15
"""Beyond what a priority can be."""
_EVER = datetime(1970, 1, 1, tzinfo=UTC)


class Reach(Enum):
    """How far back a look goes."""

    NEAR = auto()
    """To where claims begin."""
    SURE = auto()
    """To where the line is settled, and to priorities nobody has heard of."""
    WHOLE = auto()
    """To the beginning."""


_REST = {Reach.SURE: (0.0, 20), Reach.WHOLE: (1.0, 1_000)}
"""Seconds from one such look to the next, at least; and how many times as long as it took, where that was long."""
_LONG = 0.005
"""Seconds of the database's time."""


@dataclass(slots=True)
class _Mark:
    """Below which turn of one priority nothing is left."""

    sure: datetime = _EVER
    near: datetime = _EVER
    """The same, if no transaction is open for longer than ``_LAG``."""

    def since(self, reach: Reach) -> datetime:
        return {Reach.NEAR: self.near, Reach.SURE: self.sure, Reach.WHOLE: _EVER}[reach]


class Watermarks:
    """What one lane knows of its kind's line."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, *, long: float = _LONG) -> None:
        """A look that takes more than ``long`` seconds of the database's time is followed by a rest."""
        self._clock = clock
        self._long = long
        self.forget()

    def forget(self) -> None:
        """Begin again at the beginning."""
        self.asks_for_priorities = True
        """Are there perhaps priorities in line that it has not heard of?"""
        self._marks: dict[int, _Mark] = {}
        self._looked_at = -_INTERVAL
        self._last_reach = Reach.WHOLE
        self._due = dict.fromkeys(_REST, 0.0)
        self._seen_at = self._settled_at = _EVER
        self._pending: tuple[int, datetime] | None = None
        # The number and time of a look, until all transactions with a lower number have ended.

    @property
    def look_due(self) -> bool:
        """Has it been a while since the last look?"""
        return self._clock() >= self._looked_at + _INTERVAL

    @property
    def sure_in(self) -> float | None:
        """Seconds until a look may say for sure what is in line; None when the last one did."""
        return max(0.0, self._due[Reach.SURE] - self._clock()) if self._last_reach is Reach.NEAR else None

    def reach(self) -> Reach:
        """How far back the next look goes: as far as it may."""
        now = self._clock()
        return next((reach for reach in (Reach.WHOLE, Reach.SURE) if now >= self._due[reach]), Reach.NEAR)

    def claim_looks(self) -> list[Look]:
        """Where a claim looks, from the highest priority down."""
        return [Look(priority, mark.near) for priority, mark in sorted(self._marks.items(), reverse=True)]

    def looks(self, reach: Reach) -> list[WideLook]:
        """Where a look looks: at the priorities there are and, but for the nearest, at what lies between them."""
        looks = []
        above = _ABOVE_ALL
        for priority, mark in [*sorted(self._marks.items(), reverse=True), (_BELOW_ALL, _Mark())]:
            looks.append(WideLook(priority, mark.since(reach), priority if reach is Reach.NEAR else above))
            above = priority
        return looks

    def learn(self, priorities: Iterable[int]) -> None:
        """These are the priorities in line."""
        self.asks_for_priorities = False
        for priority in priorities:
            self._marks.setdefault(priority, _Mark())

    def observe(self, turns: Sequence[FirstTurn], reach: Reach) -> float | None:
        """What a look saw; the answer is in how many seconds something is due: 0 for now, None when nothing will be."""
        highest, lowest = turns[0], turns[-1]
        now = highest.now
        if now < self._seen_at:
            self.forget()  # the clock was set back, or it is another server's
            return 0.0
        self._looked_at, self._seen_at, self._last_reach = self._clock(), now, reach
        if reach in _REST:
            least, times = _REST[reach]
            took = lowest.microseconds / 1_000_000
            self._due[reach] = self._looked_at + max(least, times * took if took > self._long else 0.0)
        self._settle(highest.number, highest.oldest)
        firsts = {turn.priority: turn.first for turn in turns}
        for priority, mark in list(self._marks.items()):
            first = firsts.get(priority)
            if first is None and reach is Reach.WHOLE and len(self._marks) > _KEPT_PRIORITIES:
                del self._marks[priority]
            self._move(mark, first, reach)
        if any(turn.unheard is not None for turn in turns):
            self.asks_for_priorities = True  # each gap shows its highest; below it there may be one that is due
            return 0.0
        waits = [max(0.0, (first - now).total_seconds()) for first in firsts.values() if first is not None]
        return min(waits, default=None)

    def _settle(self, number: int, oldest: int) -> None:
        if self._pending is not None and oldest >= self._pending[0]:
            self._settled_at = self._pending[1] - _GRACE
            self._pending = None
        self._pending = self._pending or (number, self._seen_at)

    def _move(self, mark: _Mark, first: datetime | None, reach: Reach) -> None:
        """To the first turn that is in line, but not beyond what may still come in."""
        near = max(self._settled_at, self._seen_at - _LAG)
        mark.near = near if first is None else min(first, near)
        if reach is not Reach.NEAR:
            mark.sure = self._settled_at if first is None else min(first, self._settled_at)


def discover(store: Store, kind: str, marks: Watermarks) -> None:
    """Learn which priorities are in line."""
    marks.learn(store.read(lambda transaction: queries.priorities(transaction, kind), single_statement=True))


def look(store: Store, kind: str, marks: Watermarks) -> float | None:
    """Read where the line begins and move the marks there; the answer is that of :meth:`Watermarks.observe`."""
    reach = marks.reach()
    looks = marks.looks(reach)
    turns = store.read(lambda transaction: queries.first_turns(transaction, kind, looks), single_statement=True)
    return marks.observe(turns, reach)
