"""Processes for files of strangers: limits, places, and an end with their app."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from queue import SimpleQueue

import pytest

from penstock import Penstock
from penstock.app import ChildProcesses, Limits
from penstock.app.child_processes import Places
from penstock.errors import MemoryLimitExceeded, TimeLimitExceeded, TooManyRequests
from tests.integration.pool_calls import announce_and_hang, dies, heard, own_pid
from tests.waiting import eventually

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


def test_a_user_has_one_call_at_a_time_and_keeps_nobody_out(fifo: Path) -> None:
    processes = ChildProcesses(2, max_waiting=6)
    ends: SimpleQueue[object] = SimpleQueue()

    def hang() -> None:
        try:
            ends.put(processes.call(announce_and_hang, str(fifo), LIMITS, user="ben"))
        except BaseException as error:
            ends.put(error)

    threads = [threading.Thread(target=hang) for _ in range(2)]
    for thread in threads:
        thread.start()
    heard(fifo)
    assert processes._places is not None
    eventually(lambda: processes._places._taken_by["ben"] == 2)  # type: ignore[union-attr]
    with pytest.raises(TooManyRequests) as caught:
        processes.call(own_pid, None, LIMITS, user="ben")
    assert caught.value.code == "TOO_MANY_LOOKS"
    assert processes.call(own_pid, None, LIMITS, user="ada"), "one of two processes is hers"
    processes.close()  # the one that runs ends, and the other begins, in a new process
    heard(fifo)
    processes.close()
    for thread in threads:
        thread.join()
    assert isinstance(ends.get(), CancelledError)
    assert processes._places._taken_by.total() == 0
    assert processes.call(own_pid, None, LIMITS, user="ben"), "his places are free again"
    processes.close()


def test_no_more_are_taken_than_there_are_places() -> None:
    places = Places(4)
    with contextlib.ExitStack() as stack:
        for user in ("ada", "ben", "cem", "dov"):
            stack.enter_context(places.take(user))
        for user in ("ada", "eve"):
            with pytest.raises(TooManyRequests), places.take(user):
                pytest.fail("there was no place")
    with places.take("eve"):
        assert places._turns.keys() == {"eve"}


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
