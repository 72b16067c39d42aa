"""Processes for files of strangers: limits, places, and an end with their app."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock import Penstock
from penstock.app import ChildProcesses, Limits
from penstock.errors import MemoryLimitExceeded, TimeLimitExceeded, TooManyRequests
from tests.integration.test_process_pool import announce_and_hang, dies, fifo, heard, own_pid

__all__ = ["fifo"]

LIMITS = Limits(timeout=30.0, memory_bytes=None)


@pytest.fixture
def processes() -> Iterator[ChildProcesses]:
    one = ChildProcesses(1)
    yield one
    one.close()


def numbers(last: int) -> Iterator[int]:
    yield from range(last)


def announce_and_yield(fifo: str) -> Iterator[int]:
    Path(fifo).write_text(str(os.getpid()))
    while True:
        yield os.getpid()


def take_memory(size: int) -> int:
    return len(bytes(size))


def test_a_call_runs_elsewhere_and_its_answer_comes_back(processes: ChildProcesses) -> None:
    assert processes.call(own_pid, None, LIMITS) != os.getpid()
    assert asyncio.run(processes.call_async(own_pid, None, LIMITS)) == processes.call(own_pid, None, LIMITS)
    assert list(processes.stream(numbers, 5, LIMITS)) == [0, 1, 2, 3, 4]


def test_limits_are_kept(processes: ChildProcesses, fifo: Path) -> None:
    with pytest.raises(MemoryLimitExceeded):
        processes.call(take_memory, 1 << 30, Limits(timeout=30.0, memory_bytes=128 << 20))
    reader = threading.Thread(target=heard, args=(fifo,))
    reader.start()
    with pytest.raises(TimeLimitExceeded):
        processes.call(announce_and_hang, str(fifo), Limits(timeout=0.2, memory_bytes=None))
    reader.join()


def test_one_more_than_may_wait_is_refused(fifo: Path) -> None:
    processes = ChildProcesses(1, max_waiting=1)
    errors: list[BaseException] = []

    def hang() -> None:
        try:
            processes.call(announce_and_hang, str(fifo), LIMITS)
        except BaseException as error:
            errors.append(error)

    running = threading.Thread(target=hang)
    running.start()
    heard(fifo)
    waiting = processes._submit(own_pid, None, LIMITS)
    with pytest.raises(TooManyRequests) as caught:
        processes.call(own_pid, None, LIMITS)
    assert caught.value.code == "TOO_MANY_LOOKS"
    processes.close()
    running.join()
    assert waiting.cancelled()
    assert len(errors) == 1
    assert processes.call(own_pid, None, LIMITS), "its places are free again, in new processes"
    processes.close()


def test_a_canceled_coroutine_kills_its_process(processes: ChildProcesses, fifo: Path) -> None:
    async def cancel_it() -> int:
        task = asyncio.create_task(processes.call_async(announce_and_hang, str(fifo), LIMITS))
        [child] = await asyncio.to_thread(heard, fifo)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return child

    assert dies(asyncio.run(cancel_it()))


def test_a_generator_that_is_closed_kills_its_process(processes: ChildProcesses, fifo: Path) -> None:
    pieces = processes.stream(announce_and_yield, str(fifo), LIMITS)
    threading.Thread(target=heard, args=(fifo,)).start()
    child = next(pieces)
    pieces.close()  # type: ignore[attr-defined]
    assert dies(child)


def test_they_end_with_their_app(fifo: Path) -> None:
    app = Penstock("sqlite://")
    child = app.child_processes(1).call(own_pid, None, LIMITS)
    app.close()
    assert dies(child)
