"""Handlers that do what no handler should; each at the top of this module, so that a child process finds it."""

from __future__ import annotations

import asyncio
import enum
import io
import os
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from penstock import ItemContext, Permanent, Retryable
from penstock.errors import Stopped


class StrRaises(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no message for you")

    __repr__ = __str__


class StrRaisesExit(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)

    __repr__ = __str__


class StrAnswersNothing(Exception):
    def __str__(self) -> str:
        return None  # type: ignore[return-value]  # noqa: PLE0307


class StrAnswersMuch(Exception):
    def __str__(self) -> str:
        return "x" * 100_000_000


class Text(str):
    __slots__ = ()

    def __len__(self) -> int:
        raise RuntimeError("no length")

    def __getitem__(self, key: Any) -> NoReturn:
        raise RuntimeError("no part")

    __str__ = __repr__ = __format__ = __getitem__  # type: ignore[assignment]


class StrAnswersTrap(Exception):
    def __str__(self) -> str:
        return Text("trap")


class CauseRaises(Exception):
    @property
    def __cause__(self) -> NoReturn:  # type: ignore[override]
        raise RuntimeError("no cause")

    __context__ = __cause__
    __notes__ = __cause__


class ClassLies(Exception):
    @property  # type: ignore[misc]
    def __class__(self) -> type:
        raise RuntimeError("no class")


class NameLies(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise RuntimeError("no name")


class Nameless(Exception, metaclass=NameLies):
    pass


class ReduceRaises(Exception):
    def __reduce__(self) -> NoReturn:
        raise SystemExit("not to be sent")


class NeedsMore(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__("two are needed")


class OwnBase(BaseException):
    pass


class ForgotMessage(Retryable):
    def __init__(self, seconds: object) -> None:
        self.retry_after = seconds  # type: ignore[assignment]


class OddSyntax(SyntaxError):
    lineno = "seven"  # type: ignore[assignment]
    offset = object()  # type: ignore[assignment]
    text = 5  # type: ignore[assignment]


def raises(make: Callable[[], BaseException]) -> Callable[[], Any]:
    def act() -> NoReturn:
        raise make()

    return act


def group() -> BaseException:
    return BaseExceptionGroup("several", [StrRaises(), ExceptionGroup("inner", [CauseRaises(), ValueError("v")])])


def chained() -> NoReturn:
    try:
        raise StrRaises
    except StrRaises as error:
        raise StrAnswersNothing from error


def recurse() -> Any:
    return recurse()


class Trap:
    def __getattr__(self, name: str) -> NoReturn:
        raise SystemExit(name)


class TrapClass:
    @property  # type: ignore[misc]
    def __class__(self) -> type:
        raise KeyboardInterrupt


class ReprRaises:
    def __repr__(self) -> str:
        raise OwnBase

    __hash__ = object.__hash__


class OddEnum(enum.Enum):
    ONE = object()


@dataclass
class Odd:
    trap: Any


def nested() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


def generate() -> Iterator[int]:
    while True:
        yield 1


async def coroutine() -> int:
    return 1


class Awaitable:
    def __await__(self) -> Any:
        raise OwnBase


class UnpickleRaises:
    def __reduce__(self) -> Any:
        return sys.exit, (3,)


class Sink(io.StringIO):
    def flush(self) -> None:
        raise OwnBase

    def write(self, text: str) -> int:
        raise OwnBase


def replace_streams() -> str:
    sys.stdout = sys.stderr = Sink()
    return "fine"


over = threading.Event()


def leave_thread() -> str:
    threading.Thread(target=over.wait, args=(30.0,), daemon=False).start()
    return "fine"


def change_folder() -> str:
    os.chdir("/")
    return "fine"


UNEXPECTED, NOT_JSON, UNREADABLE = "PROCESSING_ERROR", "PAYLOAD_NOT_STORABLE", "OUTCOME_UNREADABLE"

ANYWHERE: dict[str, tuple[Callable[[], Any], tuple[str | None, ...]]] = {
    "str raises": (raises(StrRaises), (UNEXPECTED,)),
    "str raises SystemExit": (raises(StrRaisesExit), (UNEXPECTED,)),
    "str answers None": (raises(StrAnswersNothing), (UNEXPECTED,)),
    "str answers 100 MB": (raises(StrAnswersMuch), (UNEXPECTED,)),
    "str answers a trap": (raises(StrAnswersTrap), (UNEXPECTED,)),
    "cause raises": (raises(CauseRaises), (UNEXPECTED,)),
    "class lies": (raises(ClassLies), (UNEXPECTED, UNREADABLE)),
    "nameless class": (raises(Nameless), (UNEXPECTED, UNREADABLE)),
    "group": (raises(group), (UNEXPECTED,)),
    "chained": (chained, (UNEXPECTED,)),
    "odd SyntaxError": (raises(OddSyntax), (UNEXPECTED,)),
    "reduce raises": (raises(ReduceRaises), (UNEXPECTED,)),
    "needs more": (raises(lambda: NeedsMore(1, 2)), (UNEXPECTED,)),
    "SystemExit": (raises(lambda: SystemExit(3)), (UNEXPECTED,)),
    "KeyboardInterrupt": (raises(KeyboardInterrupt), (UNEXPECTED,)),
    "GeneratorExit": (raises(GeneratorExit), (UNEXPECTED,)),
    "StopIteration": (raises(StopIteration), (UNEXPECTED,)),
    "CancelledError": (raises(asyncio.CancelledError), (UNEXPECTED,)),
    "own BaseException": (raises(OwnBase), (UNEXPECTED,)),
    "MemoryError": (raises(MemoryError), (UNEXPECTED,)),
    "RecursionError": (recurse, (UNEXPECTED,)),
    "Stopped by nobody": (raises(lambda: Stopped("I stop")), (UNEXPECTED,)),
    "no message": (raises(lambda: ForgotMessage("soon")), ("RETRYABLE",)),
    "message is no text": (raises(lambda: Permanent(StrRaises(), code=StrRaises())), ("(its message cannot be read)",)),  # type: ignore[arg-type]
    "returns a trap": (Trap, (NOT_JSON,)),
    "returns a class trap": (TrapClass, (NOT_JSON,)),
    "returns a set of traps": (lambda: {ReprRaises(), ReprRaises()}, (NOT_JSON,)),
    "returns a dataclass of traps": (lambda: Odd(Odd(Trap())), (NOT_JSON,)),
    "returns an odd enum": (lambda: OddEnum.ONE, (NOT_JSON,)),
    "returns itself": (nested, (NOT_JSON,)),
    "returns a generator": (generate, (NOT_JSON,)),
    "returns an exit": (UnpickleRaises, (NOT_JSON,)),
    "replaces stdout": (replace_streams, (None,)),
    "leaves a thread": (leave_thread, (None,)),
    "changes folder": (change_folder, (None,)),
}
"""What a handler does, and the codes it may end with: the same in a thread, on the loop and in a process."""


def stop_the_loop() -> str:
    asyncio.get_running_loop().stop()
    return "fine"


def set_task_factory() -> str:
    asyncio.get_running_loop().set_task_factory(lambda loop, coro, **named: 1 / 0)  # type: ignore[arg-type]
    return "fine"


def cancel_oneself() -> str:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    return "fine"


def exit_in_a_task() -> str:
    async def leave() -> None:
        sys.exit(3)

    keep.append(asyncio.Task(leave()))
    return "fine"


keep: list[object] = []

ON_LOOP: dict[str, tuple[Callable[[], Any], tuple[str | None, ...]]] = {
    "stops the loop": (stop_the_loop, (None,)),
    "exit in a task": (exit_in_a_task, (None,)),
    "cancels itself": (cancel_oneself, (None,)),
    "sets a task factory": (set_task_factory, (None,)),
    "returns a bad awaitable": (Awaitable, (NOT_JSON,)),
}


def exit_at_once() -> NoReturn:
    os._exit(0)


def close_descriptors() -> str:
    os.closerange(3, 1000)
    return "fine"


IN_PROCESS: dict[str, tuple[Callable[[], Any], tuple[str | None, ...]]] = {
    "os._exit": (exit_at_once, ("WORKER_CRASH",)),
    "closes descriptors": (close_descriptors, ("WORKER_CRASH",)),
}

CASES = {"threads": ANYWHERE, "event_loop": ANYWHERE | ON_LOOP, "processes": ANYWHERE | IN_PROCESS}


def act(item: ItemContext) -> Any:
    """Do what the item says."""
    if item.input == "fine":
        return "fine"
    place, name = item.input
    return CASES[place][name][0]()


async def act_async(item: ItemContext) -> Any:
    """The same, on the loop."""
    return act(item)
