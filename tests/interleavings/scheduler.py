"""Runs operations in threads of their own, one step at a time: somebody else decides who makes the next one.

A thread stops before each statement and before COMMIT (on SQLite before the write lock: a transaction there is one
step, because nobody else can write meanwhile). So at any moment every thread stands at a point, is done, or waits for a
lock that another one has. The last is not guessed from the time it takes: the server is asked.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Protocol

from sqlalchemy import Connection, event
from sqlalchemy.engine import ExceptionContext

from penstock.clock import ManualClock
from penstock.store.engine import AFTER_COMMIT, BEFORE_COMMIT, WRITE_LOCK, Store
from penstock.store.observation import NOTIFY, observe
from penstock.testing.fault_points import StoppedDead, tear_down
from tests.interleavings.schedule import Fault, Harm

BOUND = 20.0
"""Seconds in which a step is made, or a deadlock broken; whoever takes longer hangs. Far more than any takes."""
_LOOK = 0.002
"""Seconds after which a thread that has not come to its next point is looked for among those that wait for a lock."""
_TICK = 0.001
"""Seconds by which the clock goes on with each step."""
_MAX_STEPS = 500

# Nobody else can tell whether these have happened before the COMMIT: a history row belongs to a job that the statement
# before it has changed and locked, and a notice is sent when the transaction commits.
_UNSEEN = frozenset({NOTIFY, "insert_events", "insert_explained_events", "insert_first_events"})


class Hang(AssertionError):
    """Nobody made a step within the bound."""


class Server(Protocol):
    """What a scheduler has to know from the database's own side."""

    def waiting(self) -> set[int]:
        """The sessions that wait for a lock."""

    def end_session(self, session: int) -> None:
        """End a session, as an administrator or a failing network would."""


class State(Enum):
    """What a thread is doing."""

    NEW = auto()
    RUNNING = auto()
    AT_A_POINT = auto()
    WAITING = auto()
    """For a lock."""
    DONE = auto()


@dataclass(frozen=True, slots=True)
class Operation:
    """Something the engine does; ``slot`` is its place among those that run together."""

    name: str
    run: Callable[[int], Any]
    by_worker: bool = False
    """Is it a worker, a sweep or a relay that does it? They wait for nobody without a bound."""
    passes_over: bool = False
    """Does it pass over rows that somebody has locked, because it comes again soon?"""


@dataclass(frozen=True, slots=True)
class Step:
    """One step that was made, and those that could have been."""

    slot: int
    name: str
    possible: tuple[int, ...]
    current: int | None
    """Who made the step before, if that one could have gone on."""

    @property
    def preempts(self) -> bool:
        """Was somebody stopped who could have gone on?"""
        return self.current is not None and self.slot != self.current


@dataclass(frozen=True, slots=True)
class Wait:
    """An operation waited for a lock at a statement."""

    operation: str
    statement: str
    bounded: bool
    """Would the server have ended the wait by itself?"""


@dataclass(slots=True)
class Task:
    """One operation in its thread."""

    operation: Operation
    slot: int
    fault: Fault | None = None
    state: State = State.NEW
    point: str = ""
    signals: int = 0
    session: int | None = None
    bounded: bool = False
    writing: bool = False
    dead: bool = False
    answer: Any = None
    error: BaseException | None = None
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of the operations that ran together."""

    tasks: Sequence[Task]
    steps: Sequence[Step]
    waits: frozenset[Wait]
    errors: tuple[tuple[str, str, str], ...]
    """What the database refused on the way: by whom, at which statement, as what."""

    @property
    def choices(self) -> tuple[int, ...]:
        """Who made each step."""
        return tuple(step.slot for step in self.steps)


Choose = Callable[[int, Sequence[int], int | None], int]
"""Who makes a step: its number, those who can, and who made the one before if that one can go on."""


def follow(choices: Sequence[int]) -> Choose:
    """These, as far as they can be had; after that whoever runs goes on."""

    def choose(number: int, possible: Sequence[int], current: int | None) -> int:
        if number < len(choices) and choices[number] in possible:
            return choices[number]
        return possible[0] if current is None else current

    return choose


def one_after_the_other(order: Sequence[int]) -> Choose:
    """The first of them to its end, then the second, and so on."""
    rank = {slot: place for place, slot in enumerate(order)}
    return lambda _number, possible, _current: min(possible, key=rank.__getitem__)


class Scheduler:
    """Makes the steps of one store's operations; used by one thread, inside :meth:`watching`."""

    def __init__(self, store: Store, clock: ManualClock, server: Server | None) -> None:
        self._store, self._clock, self._server = store, clock, server
        self._events: queue.SimpleQueue[tuple[Task, State]] = queue.SimpleQueue()
        self._own = threading.local()
        self._tasks: list[Task] = []
        self._waits: set[Wait] = set()
        self._errors: list[tuple[str, str, str]] = []
        self._bounds: dict[tuple[str, str], bool] = {}

    def forget(self) -> None:
        """The engine has been changed: nothing is known of its bounds."""
        self._bounds.clear()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Let operations of the store stop at their points for the length of the block."""
        event.listen(self._store.engine, "handle_error", self._note_error)
        try:
            with observe(self._store, self._reach):
                yield
        finally:
            event.remove(self._store.engine, "handle_error", self._note_error)

    def run(self, operations: Iterable[Operation], choose: Choose, fault: Fault | None = None) -> Ran:
        """Run operations together until all are done."""
        self._events = queue.SimpleQueue()
        self._waits, self._errors = set(), []
        self._tasks = [
            Task(one, slot, fault if fault is not None and fault.slot == slot else None)
            for slot, one in enumerate(operations)
        ]
        threads = [threading.Thread(target=self._perform, args=(task,), daemon=True) for task in self._tasks]
        try:
            for task, thread in zip(self._tasks, threads, strict=True):
                task.state = State.RUNNING
                thread.start()
                self._settle()
            steps = self._make_steps(choose)
        except Hang:
            self._let_all_go()
            raise
        for thread in threads:
            thread.join(BOUND)
        return Ran(self._tasks, steps, frozenset(self._waits), tuple(self._errors))

    # In the threads of the operations ---------------------------------------------------------------------------------

    def _perform(self, task: Task) -> None:
        self._own.task = task
        try:
            task.answer = task.operation.run(task.slot)
        except BaseException as error:
            task.error = error
        self._events.put((task, State.DONE))

    def _reach(self, name: str, connection: Connection | None) -> None:
        task: Task | None = getattr(self._own, "task", None)
        if task is None:
            return  # somebody prepares or looks
        if task.dead:
            if connection is not None:
                tear_down(connection)
            raise StoppedDead(f"{task.operation.name} is dead")
        if connection is not None:
            self._count(task, name, connection)
        if self._server is None:
            stops = name == WRITE_LOCK or (not task.writing and name not in (BEFORE_COMMIT, AFTER_COMMIT))
            task.writing = name == WRITE_LOCK or (task.writing and name != AFTER_COMMIT)
        else:
            stops = name != AFTER_COMMIT and name not in _UNSEEN
        if stops:
            task.point = name
            self._events.put((task, State.AT_A_POINT))
            task.go.acquire()

    def _count(self, task: Task, name: str, connection: Connection) -> None:
        """One more point, at which harm may come to it."""
        task.signals += 1
        if self._server is not None:
            driver: Any = connection.connection.driver_connection
            task.session = driver.info.backend_pid
            if task.operation.by_worker:
                task.bounded = self._is_bounded(task.operation.name, name, driver)
        if task.fault is None or task.fault.point != task.signals:
            return
        task.dead = task.fault.harm is Harm.DIES
        if task.dead:
            tear_down(connection)
        if self._server is not None and task.session is not None:
            self._server.end_session(task.session)  # of one that died, as soon as the server would notice
        if task.dead:
            raise StoppedDead(f"{task.operation.name} died at {name}")

    def _is_bounded(self, operation: str, statement: str, driver: Any) -> bool:
        """Would the server end this transaction's wait for a lock?"""
        known = self._bounds.get((operation, statement))
        if known is None:
            [timeout] = driver.execute("SHOW lock_timeout").fetchone()
            known = self._bounds[operation, statement] = timeout != "0"
        return known

    def _note_error(self, context: ExceptionContext) -> None:
        task: Task | None = getattr(self._own, "task", None)
        if task is not None:
            error = context.original_exception
            what = getattr(error, "sqlstate", None) or type(error).__name__
            self._errors.append((task.operation.name, task.point, what))

    # In the thread that decides ---------------------------------------------------------------------------------------

    def _make_steps(self, choose: Choose) -> list[Step]:
        steps: list[Step] = []
        current: int | None = None
        while self._unfinished():
            possible = tuple(task.slot for task in self._tasks if task.state is State.AT_A_POINT)
            if not possible:
                self._until_broken()
                continue
            current = current if current in possible else None
            slot = choose(len(steps), possible, current)
            task = self._tasks[slot]
            steps.append(Step(slot, task.point, possible, current))
            if len(steps) > _MAX_STEPS:
                raise Hang(f"{_MAX_STEPS} steps, and no end: {self._described()}")
            self._clock.advance(_TICK)
            task.state, current = State.RUNNING, slot
            task.go.release()
            self._settle()
        return steps

    def _settle(self) -> None:
        """Until each task stands at a point, is done, or waits for a lock that a step will release."""
        deadline = time.monotonic() + BOUND
        while True:
            while any(task.state is State.RUNNING for task in self._tasks):
                self._hear(deadline)
            waiting = [task for task in self._tasks if task.state is State.WAITING]
            if not waiting or self._server is None:
                return
            still = self._server.waiting()
            for task in waiting:
                if task.session not in still:
                    task.state = State.RUNNING
            if all(task.state is State.WAITING for task in waiting):
                return

    def _until_broken(self) -> None:
        """All wait for each other: the server has to end that."""
        deadline = time.monotonic() + BOUND
        while not any(task.state is State.AT_A_POINT for task in self._tasks) and self._unfinished():
            self._hear(deadline)
        self._settle()

    def _unfinished(self) -> bool:
        return any(task.state is not State.DONE for task in self._tasks)

    def _hear(self, deadline: float) -> None:
        """Wait a moment for somebody to come to a point; look who waits for a lock."""
        if time.monotonic() > deadline:
            raise Hang(f"no step within {BOUND:g} s: {self._described()}")
        with suppress(queue.Empty):
            arrived, state = self._events.get(timeout=_LOOK)
            arrived.state = state
            return
        if self._server is None:
            return
        waiting = self._server.waiting()
        for task in self._tasks:
            if task.state is State.RUNNING and task.session in waiting:
                task.state = State.WAITING
                self._waits.add(Wait(task.operation.name, task.point, task.bounded))

    def _described(self) -> str:
        return ", ".join(f"{task.operation.name} is {task.state.name} at {task.point}" for task in self._tasks)

    def _let_all_go(self) -> None:
        """End what hangs, so that the next run finds nobody in its way."""
        for task in self._tasks:
            task.dead = True
            task.go.release()
            if self._server is not None and task.session is not None and task.state is not State.DONE:
                self._server.end_session(task.session)
