"""Finds faults: runs operations of a scene in chosen orders and judges what comes of each.

Of two operations every order of their steps can be tried. They are tried in the order of how often somebody is stopped
who could have gone on: almost every fault needs one or two such stops, so a bound on the number of schedules cuts off
the least likely ones. Each different end state of a scene is judged once.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations, islice, permutations
from typing import Any

from penstock.errors import PenstockError
from penstock.testing.fault_points import StoppedDead
from tests.interleavings.allowed import allowed, unexpected
from tests.interleavings.databases import Database, EndState, PostgreSQLDatabase, end_state
from tests.interleavings.operations import REFUSALS, operations
from tests.interleavings.scenes import SCENES, Stage
from tests.interleavings.schedule import Fault, Harm, Schedule
from tests.interleavings.scheduler import Choose, Hang, Operation, Ran, Scheduler, follow, one_after_the_other
from tests.interleavings.verdict import judge, out_of_order

_DEADLOCK = "40P01"
_GOES_ON = 0.55
"""How often a random walk lets whoever runs go on."""

End = tuple[EndState, tuple[str | None, ...]]
"""The rows, and what each operation was answered; None for one that found nothing to do."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong, and the schedule that shows it."""

    schedule: Schedule
    fault: str

    def __str__(self) -> str:
        return f"{self.fault}\n    {self.schedule}"


@dataclass(slots=True)
class Explorer:
    """Runs schedules in one database, one scene at a time."""

    database: Database
    schedules: int = 0
    """How many have been run."""
    states: int = 0
    """How many different end states have been judged."""
    findings: dict[tuple[str, tuple[str, ...], str], Finding] = field(default_factory=dict)
    """One for each fault of a scene and its operations."""
    scheduler: Scheduler = field(init=False)
    _scene: str = ""
    _stage: Stage = field(init=False)
    _operations: dict[str, Operation] = field(default_factory=dict)
    _acts: dict[str, bool] = field(default_factory=dict)
    _judged: dict[Any, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        server = self.database if isinstance(self.database, PostgreSQLDatabase) else None
        self.scheduler = Scheduler(self.database.store, self.database.clock, server)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Schedules are run inside this."""
        with self.scheduler.watching():
            yield

    def enter(self, scene: str) -> list[str]:
        """Prepare a scene; the answer is the names of the operations there are."""
        if scene != self._scene:
            self.database.empty()
            self._scene, self._stage = scene, Stage(self.database)
            SCENES[scene](self._stage)
            self._stage.know_one_kind()
            self._operations = operations(self._stage)
            self.database.keep()
            self._acts, self._judged = {}, {}
        return list(self._operations)

    def acts(self, name: str) -> bool:
        """Does an operation change something in this scene when it is alone?"""
        if name not in self._acts:
            self.database.restore()
            before = end_state(self.database)
            self._acts[name] = self._run((name,), follow(()), judged=False)[1][0] != before
        return self._acts[name]

    def acting(self, chance: random.Random | None = None, most: int | None = None) -> list[str]:
        """The operations that change something here when they are alone; or some of them, chosen by chance."""
        names = list(self._operations)
        if chance is not None:
            chance.shuffle(names)
        return list(islice(filter(self.acts, names), most))

    def forget(self) -> None:
        """Begin again: the engine has been changed."""
        self._scene = ""
        self.findings.clear()
        self.scheduler.forget()

    # One schedule -----------------------------------------------------------------------------------------------------

    def replay(self, schedule: Schedule) -> Ran | None:
        """Run one schedule again; what is wrong is in the findings."""
        self.enter(schedule.scene)
        expected = None if schedule.fault else self._one_by_one(schedule.operations)
        ran, _ = self._run(schedule.operations, follow(schedule.choices), schedule.fault, expected)
        return ran

    def run_one(self, name: str, fault: Fault | None = None) -> tuple[EndState, Ran | None]:
        """Run one operation alone."""
        ran, end = self._run((name,), follow(()), fault)
        return end[0], ran

    def _run(
        self,
        names: Sequence[str],
        choose: Choose,
        fault: Fault | None = None,
        expected: set[End] | None = None,
        *,
        slots: Sequence[int] | None = None,
        judged: bool = True,
    ) -> tuple[Ran | None, End]:
        """Run operations together and judge what comes of it; ``expected`` are the ends that are right.

        ``slots`` are their places, where others among them have been left out.
        """
        self.database.restore()
        self._stage.begin_again()
        schedule = Schedule(self._scene, tuple(names), (), fault)
        try:
            ran = self.scheduler.run(self._placed(names, slots or range(len(names))), choose, fault)
        except Hang as hang:
            self._note(schedule, f"HANG: {hang}")
            return None, ((), ())
        self.schedules += 1
        schedule = replace(schedule, choices=ran.choices)
        end = end_state(self.database), tuple(_answer(task.answer, task.error) for task in ran.tasks)
        if not judged:
            return ran, end
        self._look_at_run(schedule, ran)
        tolerated = allowed(self._scene, tuple(names))
        for wrong in self._verdict(end[0], repeated=fault is not None, followers_may_lag=tolerated):
            self._note(schedule, wrong)
        unlike = expected is not None and not any(_is_like(end, one) for one in expected)
        if expected is not None and unlike and not tolerated:
            self._note(schedule, _difference(end, expected))
            expected.add(end)
        return ran, end

    def _placed(self, names: Sequence[str], slots: Sequence[int]) -> list[Operation]:
        return [
            replace(self._operations[name], run=partial(_run_as, slot, self._operations[name].run))
            for name, slot in zip(names, slots, strict=True)
        ]

    def _look_at_run(self, schedule: Schedule, ran: Ran) -> None:
        for task in ran.tasks:
            expected = REFUSALS if schedule.fault is None else (*REFUSALS, StoppedDead, PenstockError)
            if task.error is not None and not isinstance(task.error, expected):
                self._note(schedule, f"{task.operation.name} raised {type(task.error).__name__}: {task.error}")
        for name, statement, error in ran.errors:
            if error == _DEADLOCK:
                self._note(schedule, f"DEADLOCK: {name} at {statement}")
        workers = {task.operation.name for task in ran.tasks if task.operation.by_worker}
        for wait in ran.waits:
            if wait.operation in workers and unexpected(wait):
                bound = "" if wait.bounded else ", without a bound"
                self._note(schedule, f"WAIT: {wait.operation} waits for a lock at {wait.statement}{bound}")

    def _verdict(self, state: EndState, *, repeated: bool, followers_may_lag: bool) -> list[str]:
        sent = tuple(self._stage.messages)
        key = state, sent, repeated, followers_may_lag
        if key not in self._judged:
            self.states += 1
            found = judge(self._stage, self._scene, followers_may_lag=followers_may_lag)
            self._judged[key] = found + out_of_order(self._stage, repeated=repeated)
        return self._judged[key]

    def _note(self, schedule: Schedule, fault: str) -> None:
        self.findings.setdefault((schedule.scene, schedule.operations, fault), Finding(schedule, fault))

    # Many of them -----------------------------------------------------------------------------------------------------

    def _one_by_one(self, names: Sequence[str]) -> set[End]:
        """The ends of operations that run one after the other, in every order.

        One that passes over what is locked may also do nothing, as if it had come too early: the next one will do it.
        """
        slots = range(len(names))
        passing = [slot for slot in slots if self._operations[names[slot]].passes_over]
        found: set[End] = set()
        for count in range(len(passing) + 1):
            for left_out in combinations(passing, count):
                running = [slot for slot in slots if slot not in left_out]
                left = [names[slot] for slot in running]
                for order in permutations(range(len(running))):
                    state, answers = self._run(left, one_after_the_other(order), slots=running)[1]
                    given = iter(answers)
                    found.add((state, tuple(None if slot in left_out else next(given) for slot in slots)))
        return found

    def explore(self, names: Sequence[str], most: int, *, until_found: str | None = None) -> bool:
        """Every interleaving of some operations, the plainest first, up to ``most``; were that all there are?

        No further than to the first finding that says ``until_found``.
        """
        expected = self._one_by_one(names)
        waiting: list[deque[tuple[int, ...]]] = [deque([()])]
        tried = 0
        while any(waiting):
            if tried == most or (until_found is not None and self._has_found(until_found)):
                return False
            beginning = next(those for those in waiting if those).popleft()
            ran, _ = self._run(names, follow(beginning), expected=expected)
            tried += 1
            if ran is not None:
                _branch(ran, beginning, waiting)
        return True

    def _has_found(self, fault: str) -> bool:
        return any(fault in finding.fault for finding in self.findings.values())

    def walk(self, names: Sequence[str], seeds: Sequence[int], fault: Fault | None = None) -> None:
        """A random interleaving for each seed, always the same for the same one."""
        expected = None if fault is not None else self._one_by_one(names)
        for seed in seeds:
            self._run(names, random_walk(seed), fault, expected)

    def crash(self, name: str) -> int:
        """Let one operation die at each of its points, and cut its connection at each; the answer is how many."""
        self.database.restore()
        before = end_state(self.database)
        after, ran = self.run_one(name)
        if ran is None or after == before:
            return 0
        [task] = ran.tasks
        signals = range(1, task.signals + 1)
        for point in signals:
            self._crash_at(name, Fault(0, point, Harm.DIES), before, after)
            if self.database.postgresql:
                self._crash_at(name, Fault(0, point, Harm.IS_CUT), before, after)
        return len(signals)

    def _crash_at(self, name: str, fault: Fault, before: EndState, after: EndState) -> None:
        state, ran = self.run_one(name, fault)
        if ran is None:
            return
        [task] = ran.tasks
        schedule = Schedule(self._scene, (name,), ran.choices, fault)
        if task.error is None and state != after:
            self._note(schedule, f"{name} was answered as if it had happened: {_changes(state, after)}")
        elif state not in (before, after) and name not in IN_PARTS:
            self._note(schedule, f"TORN: {_changes(state, after)}")


IN_PARTS = frozenset({"relay"})
"""Operations of several transactions, each of which leaves something when it is the last."""


def _run_as(slot: int, run: Callable[[int], Any], _slot: int) -> Any:
    return run(slot)


def random_walk(seed: int) -> Choose:
    """Who goes next by chance; mostly whoever runs goes on."""
    chance = random.Random(seed)

    def choose(_number: int, possible: Sequence[int], current: int | None) -> int:
        if current is not None and chance.random() < _GOES_ON:
            return current
        return chance.choice(possible)

    return choose


def _branch(ran: Ran, beginning: tuple[int, ...], waiting: list[deque[tuple[int, ...]]]) -> None:
    """Add what could have been chosen otherwise, by how many are stopped in it who could have gone on."""
    choices = ran.choices
    stops = 0
    for number, step in enumerate(ran.steps):
        if number >= len(beginning):
            for other in step.possible:
                if other != step.slot:
                    cost = stops + (step.current is not None and other != step.current)
                    waiting.extend(deque() for _ in range(cost + 1 - len(waiting)))
                    waiting[cost].append((*choices[:number], other))
        stops += step.preempts


def _answer(answer: Any, error: BaseException | None) -> str:
    if error is None:
        return repr(answer)
    return f"{type(error).__name__} {getattr(error, 'code', '')}"


def _is_like(end: End, other: End) -> bool:
    state, answers = end
    return state == other[0] and all(b is None or a == b for a, b in zip(answers, other[1], strict=True))


def _difference(end: End, expected: set[End]) -> str:
    """How an end differs from the nearest that is right."""
    state, answers = end
    same = [one for one in expected if one[0] == state]
    if same:
        return f"NOT SERIAL: answered {answers}, and one by one {' or '.join(str(one[1]) for one in same)}"
    nearest = min(expected, key=lambda one: len(set(one[0]) ^ set(state)))
    return f"NOT SERIAL: {_changes(state, nearest[0])}"


def _changes(state: EndState, other: EndState) -> str:
    there, missing = sorted(set(state) - set(other), key=repr), sorted(set(other) - set(state), key=repr)
    lines = []
    for row in there:
        twin = next((one for one in missing if one[0] == row[0] and len(one) == len(row)), None)
        if twin is None:
            lines.append(f"more: {row}")
        else:
            missing.remove(twin)
            lines.append(f"{row[0]}: " + ", ".join(f"{a} (not {b})" for a, b in zip(row, twin, strict=True) if a != b))
    return "; ".join(lines + [f"less: {row}" for row in missing])
