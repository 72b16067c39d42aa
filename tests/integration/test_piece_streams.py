"""Answers that come in pieces out of a child process: in order, within bounds, and gone when nobody reads them."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import MemoryLimitExceeded, Retryable, Stopped, TimeLimitExceeded, WorkerCrashed
from penstock.runners.piece_stream import MANY
from penstock.runners.process_handle import Child
from penstock.runners.processes import Limits, ProcessPool
from tests.integration.pool_calls import FREE, MEBIBYTE, dies
from tests.waiting import eventually

PIECE = 512 * 1024
"""More than a socket takes at once, so that each piece is a frame of its own."""


@pytest.fixture
def pool() -> Iterator[ProcessPool]:
    one = ProcessPool(1)
    yield one
    one.close(0.0)


# What runs in the child.


def count_to(last: int) -> Iterator[int]:
    yield from range(last)


def large_pieces(log: str) -> Iterator[bytes]:
    for number in range(100):
        with open(log, "a") as file:  # noqa: PTH123
            file.write(f"{number}\n")
        yield bytes(PIECE)


def fail_after_two(_: object) -> Iterator[int]:
    yield 1
    yield 2
    raise Retryable("the third cannot be had", code="NO_THIRD")


def hang_after_one(_: object) -> Iterator[int]:
    yield os.getpid()
    threading.Event().wait()


def die_after_one(_: object) -> Iterator[int]:
    yield 1
    os.kill(os.getpid(), signal.SIGKILL)


def grow_after_one(_: object) -> Iterator[int]:
    yield 1
    yield len(bytes(512 * MEBIBYTE))


def yield_a_lock(_: object) -> Iterator[object]:
    yield threading.Lock()


def own_pid(_: object) -> int:
    return os.getpid()


def test_pieces_come_in_order_and_the_process_is_used_again(pool: ProcessPool) -> None:
    assert list(pool.stream(count_to, 1_000, FREE)) == list(range(1_000))
    [child] = pool.processes
    assert pool.submit(own_pid, None, FREE).result() == child
    assert list(pool.stream(count_to, 0, FREE)) == []
    assert pool.processes == (child,)


def test_what_nobody_takes_is_not_made(pool: ProcessPool, tmp_path: Path) -> None:
    """The child is held back by its reader, its time stands still meanwhile, and all of it comes in the end."""
    log = tmp_path / "made"
    with contextlib.closing(pool.stream(large_pieces, str(log), Limits(timeout=30.0, memory_bytes=None))) as pieces:
        assert len(next(pieces)) == PIECE
        child = held_back(pool)
        assert child.deadline is None
        # Those that wait here, one that was taken, one on the socket, and one in the child's hand.
        assert len(log.read_text().splitlines()) <= MANY + 3
        assert sum(1 for _ in pieces) == 99
        assert child.deadline is None, "it rests"
    assert len(log.read_text().splitlines()) == 100


def test_an_error_comes_behind_the_pieces(pool: ProcessPool) -> None:
    pieces = pool.stream(fail_after_two, None, FREE)
    assert [next(pieces), next(pieces)] == [1, 2]
    with pytest.raises(Retryable) as caught:
        next(pieces)
    assert caught.value.code == "NO_THIRD"
    with pytest.raises(StopIteration):
        next(pieces)


def test_the_time_limit_is_for_each_piece(pool: ProcessPool) -> None:
    pieces = pool.stream(hang_after_one, None, Limits(timeout=0.3, memory_bytes=None))
    child = next(pieces)
    with pytest.raises(TimeLimitExceeded):
        next(pieces)
    assert dies(child)


def test_memory_is_limited_between_pieces(pool: ProcessPool) -> None:
    pieces = pool.stream(grow_after_one, None, Limits(timeout=30.0, memory_bytes=128 * MEBIBYTE))
    assert next(pieces) == 1
    with pytest.raises(MemoryLimitExceeded):
        next(pieces)


def test_a_child_that_dies_ends_the_stream(pool: ProcessPool) -> None:
    pieces = pool.stream(die_after_one, None, FREE)
    assert next(pieces) == 1
    with pytest.raises(WorkerCrashed):
        next(pieces)


def test_a_piece_that_cannot_travel_is_an_error(pool: ProcessPool) -> None:
    with pytest.raises(Exception, match="cannot be pickled"):
        next(pool.stream(yield_a_lock, None, FREE))


def test_closing_the_stream_kills_its_process(pool: ProcessPool) -> None:
    pieces = pool.stream(hang_after_one, None, FREE)
    child = next(pieces)
    pieces.close()
    assert dies(child)
    with pytest.raises(Stopped):
        next(pieces)


def test_closing_the_pool_ends_a_stream_that_is_held_back(pool: ProcessPool, tmp_path: Path) -> None:
    log = tmp_path / "made"
    pieces = pool.stream(large_pieces, str(log), FREE)
    next(pieces)
    child = held_back(pool)
    pool.close(0.0)
    assert dies(child.pid)
    with pytest.raises(Stopped):
        list(pieces)


def held_back(pool: ProcessPool) -> Child:
    """The pool's one child, once nobody reads from it."""
    eventually(lambda: all(child.is_unread for child in pool._children.values()))
    [child] = pool._children.values()
    return child
