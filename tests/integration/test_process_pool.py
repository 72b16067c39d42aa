"""The process pool against real processes: every limit is exceeded, every way to die is died."""

from __future__ import annotations

import asyncio
import concurrent.futures
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError
from pathlib import Path

import psutil
import pytest

from penstock.errors import (
    MemoryLimitExceeded,
    PayloadNotStorable,
    PayloadTooLarge,
    Retryable,
    TimeLimitExceeded,
    WorkerCrashed,
)
from penstock.runners import process_handle
from penstock.runners.processes import ForeignError, Limits
from tests.integration.pool_calls import (
    FREE,
    MEBIBYTE,
    PATIENCE,
    Greeter,
    Late,
    PoolFactory,
    announce_and_hang,
    announce_and_spin,
    append_line,
    catch_signals,
    dies,
    fork_and_exit,
    grow_slowly,
    heard,
    keep,
    own_pid,
    raise_memory_error,
    raise_retryable,
    raise_stop_iteration,
    raise_what_cannot_travel,
    return_lock,
    session_and_group,
    start_program_and_hang,
    terminate_a_program,
    wait_for_file,
    write_to_pool,
)

# Calls and their answers.


def test_functions_and_bound_methods_run_in_a_child(make_pool: PoolFactory) -> None:
    pool = make_pool()
    assert pool.submit(own_pid, None, FREE).result(PATIENCE) not in (None, os.getpid())
    assert pool.submit(Greeter("good day").greet, "Ann", FREE).result(PATIENCE) == "good day, Ann"


def test_children_start_when_needed_and_are_used_again(make_pool: PoolFactory) -> None:
    pool = make_pool(2)
    assert pool.processes == ()
    pids = {pool.submit(own_pid, None, FREE).result(PATIENCE) for _ in range(5)}
    assert pids == set(pool.processes)
    assert len(pids) == 1


def test_a_child_is_recycled_after_its_calls(make_pool: PoolFactory) -> None:
    pool = make_pool(recycle_after=2)
    first, second, third = (pool.submit(own_pid, None, FREE).result(PATIENCE) for _ in range(3))
    assert first == second != third
    assert dies(first)


def test_calls_beyond_the_size_wait_in_order(make_pool: PoolFactory, fifo: Path, tmp_path: Path) -> None:
    pool = make_pool()
    log = tmp_path / "log"
    gate = pool.submit(wait_for_file, str(fifo), FREE)
    waiting = [pool.submit(append_line, (str(log), str(number)), FREE) for number in range(20)]
    assert not any(future.done() for future in waiting)
    fifo.write_text("go")
    assert gate.result(PATIENCE) == "go"
    concurrent.futures.wait(waiting, PATIENCE)
    assert log.read_text().split() == [str(number) for number in range(20)]
    assert len(pool.processes) == 1


def test_a_penstock_error_arrives_whole(make_pool: PoolFactory) -> None:
    error = make_pool().submit(raise_retryable, None, FREE).exception(PATIENCE)
    assert type(error) is Retryable
    assert (error.message, error.code, error.retry_after) == ("the shop answers 429", "SHOP_BUSY", 30)
    assert "in raise_retryable" in "".join(error.__notes__)


@pytest.mark.parametrize(
    ("handler", "argument", "type_name", "message"),
    [
        (raise_what_cannot_travel, None, "NeedsTwo", "flour and water"),
        (sys.exit, 3, "SystemExit", "3"),
        (raise_stop_iteration, None, "StopIteration", ""),
    ],
)
def test_what_cannot_be_raised_here_keeps_its_name_and_text(
    make_pool: PoolFactory, handler: Callable[[object], object], argument: object, type_name: str, message: str
) -> None:
    pool = make_pool()
    before = pool.submit(own_pid, None, FREE).result(PATIENCE)
    error = pool.submit(handler, argument, FREE).exception(PATIENCE)
    assert type(error) is ForeignError
    assert (error.type_name, error.message) == (type_name, message)
    assert type_name in "".join(error.__notes__)
    assert pool.submit(own_pid, None, FREE).result(PATIENCE) == before


def test_a_memory_error_without_a_limit_is_only_an_error(make_pool: PoolFactory) -> None:
    assert type(make_pool().submit(raise_memory_error, None, FREE).exception(PATIENCE)) is MemoryError


def test_a_result_that_cannot_be_pickled_is_refused_and_the_child_lives(make_pool: PoolFactory) -> None:
    pool = make_pool()
    before = pool.submit(own_pid, None, FREE).result(PATIENCE)
    error = pool.submit(return_lock, None, FREE).exception(PATIENCE)
    assert type(error) is PayloadNotStorable
    assert "lock" in str(error)
    assert pool.submit(own_pid, None, FREE).result(PATIENCE) == before


def test_a_call_that_cannot_be_pickled_is_refused(make_pool: PoolFactory) -> None:
    pool = make_pool()
    assert type(pool.submit(lambda _: None, None, FREE).exception(PATIENCE)) is PayloadNotStorable
    assert pool.processes == ()


def test_large_arguments_and_results_pass(make_pool: PoolFactory) -> None:
    pool = make_pool()
    assert len(pool.submit(bytes, 100 * MEBIBYTE, FREE).result(PATIENCE)) == 100 * MEBIBYTE
    assert pool.submit(len, bytes(100 * MEBIBYTE), FREE).result(PATIENCE) == 100 * MEBIBYTE


def test_a_result_over_the_bound_is_refused_and_the_child_lives(make_pool: PoolFactory) -> None:
    pool = make_pool(result_bytes=MEBIBYTE)
    before = pool.submit(own_pid, None, FREE).result(PATIENCE)
    assert type(pool.submit(bytes, 2 * MEBIBYTE, FREE).exception(PATIENCE)) is PayloadTooLarge
    assert pool.submit(own_pid, None, FREE).result(PATIENCE) == before


# Limits.


def test_past_its_time_a_handler_is_gone_when_its_future_says_so(make_pool: PoolFactory, fifo: Path) -> None:
    pool = make_pool()
    future = pool.submit(announce_and_spin, str(fifo), Limits(timeout=0.3, memory_bytes=None))
    (pid,) = heard(fifo)
    error = future.exception(PATIENCE)
    assert not psutil.pid_exists(pid)
    assert type(error) is TimeLimitExceeded
    assert "0.3 s" in str(error)
    assert pool.submit(own_pid, None, FREE).result(PATIENCE) != pid


def test_the_clock_starts_when_the_handler_does(make_pool: PoolFactory) -> None:
    limits = Limits(timeout=0.2, memory_bytes=None)
    assert make_pool().submit(str, Late(0.6), limits).result(PATIENCE) == "arrived"


def test_a_handler_that_never_begins_is_killed(make_pool: PoolFactory) -> None:
    error = make_pool(start_timeout=0.3).submit(str, Late(1000), FREE).exception(PATIENCE)
    assert type(error) is TimeLimitExceeded
    assert "did not begin" in str(error)


def test_memory_that_grows_slowly_is_seen_from_outside(make_pool: PoolFactory) -> None:
    pool = make_pool()
    before = pool.submit(own_pid, None, FREE).result(PATIENCE)
    # Far above what pytest takes in the child, and below where the rlimit (on top of that) would speak first.
    future = pool.submit(grow_slowly, None, Limits(timeout=PATIENCE, memory_bytes=200 * MEBIBYTE))
    error = future.exception(PATIENCE)
    assert type(error) is MemoryLimitExceeded
    assert "reached" in str(error)
    assert dies(before)
    assert pool.submit(own_pid, None, FREE).result(PATIENCE) != before


def test_one_large_allocation_fails_at_once(make_pool: PoolFactory) -> None:
    pool = make_pool()
    before = pool.submit(own_pid, None, FREE).result(PATIENCE)
    future = pool.submit(bytearray, 4096 * MEBIBYTE, Limits(timeout=PATIENCE, memory_bytes=400 * MEBIBYTE))
    error = future.exception(PATIENCE)
    assert type(error) is MemoryLimitExceeded
    assert "asked for more memory" in str(error)
    assert "MemoryError" in "".join(error.__notes__)
    assert dies(before)
    assert len(pool.submit(bytearray, 500 * MEBIBYTE // 4, FREE).result(PATIENCE)) == 500 * MEBIBYTE // 4


def test_the_memory_limit_of_one_call_does_not_bind_the_next(make_pool: PoolFactory) -> None:
    pool = make_pool()
    first = pool.submit(own_pid, None, Limits(timeout=None, memory_bytes=300 * MEBIBYTE)).result(PATIENCE)
    assert pool.submit(keep, 400 * MEBIBYTE, FREE).result(PATIENCE) == first


def test_a_child_full_of_leftovers_does_not_get_a_call_it_would_fail(make_pool: PoolFactory) -> None:
    pool = make_pool()
    first = pool.submit(keep, 300 * MEBIBYTE, FREE).result(PATIENCE)
    assert pool.submit(own_pid, None, FREE).result(PATIENCE) == first
    assert pool.submit(own_pid, None, Limits(timeout=None, memory_bytes=300 * MEBIBYTE)).result(PATIENCE) != first


# Ways to die.


@pytest.mark.parametrize(
    ("handler", "argument", "how"),
    [
        (os._exit, 3, "exited with code 3"),
        (ctypes.string_at, 0, "SIGSEGV"),
        (signal.raise_signal, signal.SIGKILL, "SIGKILL"),
        (fork_and_exit, None, "exited with code 4"),
        (write_to_pool, b"\xff" * 100, "something invalid"),
        (write_to_pool, (2).to_bytes(8) + b"\x63?", "something invalid"),
        (write_to_pool, (5).to_bytes(8) + b"\x03junk", "something invalid"),
    ],
)
def test_a_crash_is_told_and_the_child_replaced(
    make_pool: PoolFactory, handler: Callable[[object], object], argument: object, how: str
) -> None:
    pool = make_pool()
    before = pool.submit(own_pid, None, FREE).result(PATIENCE)
    error = pool.submit(handler, argument, FREE).exception(PATIENCE)
    assert type(error) is WorkerCrashed
    assert how in str(error)
    assert pool.submit(own_pid, None, FREE).result(PATIENCE) != before


def test_without_pidfds_a_crash_and_a_timeout_are_still_told(
    make_pool: PoolFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_handle, "_open_exit_descriptor", lambda _pid: None)
    pool = make_pool()
    assert "exited with code 3" in str(pool.submit(os._exit, 3, FREE).exception(PATIENCE))
    error = pool.submit(time.sleep, 1000, Limits(timeout=0.2, memory_bytes=None)).exception(PATIENCE)
    assert type(error) is TimeLimitExceeded
    assert pool.submit(abs, -1, FREE).result(PATIENCE) == 1


def test_a_child_killed_from_outside_while_idle_costs_no_call(make_pool: PoolFactory) -> None:
    pool = make_pool()
    pid = pool.submit(own_pid, None, FREE).result(PATIENCE)
    os.kill(pid, signal.SIGKILL)
    assert pool.submit(own_pid, None, FREE).result(PATIENCE) != pid


def test_half_an_answer_holds_up_nobody(make_pool: PoolFactory) -> None:
    pool = make_pool(2)
    limits = Limits(timeout=0.5, memory_bytes=None)
    stalled = pool.submit(write_to_pool, MEBIBYTE.to_bytes(8) + b"\x02 and then nothing", limits)
    assert pool.submit(abs, -1, FREE).result(PATIENCE) == 1
    assert type(stalled.exception(PATIENCE)) is TimeLimitExceeded


def test_a_child_that_does_not_read_holds_up_nobody(make_pool: PoolFactory) -> None:
    pool = make_pool(2, start_timeout=3.0)
    os.kill(pool.submit(own_pid, None, FREE).result(PATIENCE), signal.SIGSTOP)
    unread = pool.submit(len, bytes(10 * MEBIBYTE), FREE)
    assert pool.submit(abs, -1, FREE).result(PATIENCE) == 1
    assert not unread.done()
    assert type(unread.exception(PATIENCE)) is TimeLimitExceeded


def test_the_programs_a_handler_started_die_with_it(make_pool: PoolFactory, fifo: Path) -> None:
    future = make_pool().submit(start_program_and_hang, str(fifo), Limits(timeout=0.3, memory_bytes=None))
    child, program = heard(fifo)
    assert type(future.exception(PATIENCE)) is TimeLimitExceeded
    assert dies(child)
    assert dies(program)


# Signals and surroundings.


def test_a_child_survives_signals_meant_for_the_parent(make_pool: PoolFactory) -> None:
    pool = make_pool()
    pid = pool.submit(catch_signals, None, FREE).result(PATIENCE)
    assert pool.processes == (pid,)


def test_programs_of_a_handler_can_be_terminated(make_pool: PoolFactory) -> None:
    limits = Limits(timeout=PATIENCE, memory_bytes=None)
    assert make_pool().submit(terminate_a_program, None, limits).result(PATIENCE) == -signal.SIGTERM


def test_a_child_leads_its_own_session(make_pool: PoolFactory) -> None:
    pool = make_pool()
    session, group = pool.submit(session_and_group, None, FREE).result(PATIENCE)
    assert (session, group) == (pool.processes[0], pool.processes[0])


def test_a_child_outlives_the_thread_that_submitted(make_pool: PoolFactory) -> None:
    pool = make_pool()
    pids: list[int] = []
    thread = threading.Thread(target=lambda: pids.append(pool.submit(own_pid, None, FREE).result(PATIENCE)))
    thread.start()
    thread.join()
    assert pool.submit(own_pid, None, FREE).result(PATIENCE) == pids[0]


# Cancelling.


def test_a_waiting_call_is_dropped(make_pool: PoolFactory, fifo: Path, tmp_path: Path) -> None:
    pool = make_pool()
    gate = pool.submit(wait_for_file, str(fifo), FREE)
    dropped = pool.submit(append_line, (str(tmp_path / "log"), "never"), FREE)
    pool.cancel(dropped)
    done, _ = concurrent.futures.wait([dropped], PATIENCE)
    assert done == {dropped}
    fifo.write_text("go")
    assert gate.result(PATIENCE) == "go"
    assert pool.submit(abs, -1, FREE).result(PATIENCE) == 1
    assert not (tmp_path / "log").exists()


def test_a_running_call_is_killed(make_pool: PoolFactory, fifo: Path) -> None:
    pool = make_pool()
    future = pool.submit(announce_and_spin, str(fifo), FREE)
    (pid,) = heard(fifo)
    pool.cancel(future)
    with pytest.raises(CancelledError):
        future.result(PATIENCE)
    assert future.cancelled()
    assert dies(pid)
    assert pool.submit(own_pid, None, FREE).result(PATIENCE) != pid


def test_cancelling_the_task_that_awaits_kills_the_child(make_pool: PoolFactory, fifo: Path) -> None:
    pool = make_pool()

    async def scenario() -> int:
        future = asyncio.wrap_future(pool.submit(announce_and_hang, str(fifo), FREE))
        (pid,) = await asyncio.to_thread(heard, fifo)
        future.cancel()
        with pytest.raises(asyncio.CancelledError):
            await future
        return pid

    assert dies(asyncio.run(scenario()))


# Closing.


def test_close_waits_for_what_runs_and_drops_what_waits(make_pool: PoolFactory, fifo: Path) -> None:
    pool = make_pool()
    running = pool.submit(wait_for_file, str(fifo), FREE)
    waiting = pool.submit(abs, -1, FREE)
    closer = threading.Thread(target=pool.close, args=(PATIENCE,))
    with fifo.open("w") as gate:  # opens when the child has it open too: it runs
        closer.start()
        with pytest.raises(CancelledError):
            waiting.result(PATIENCE)
        assert not running.done()
        gate.write("finished")
    assert running.result(PATIENCE) == "finished"
    closer.join(PATIENCE)
    assert not closer.is_alive()
    assert pool.processes == ()


def test_close_kills_what_outlasts_its_grace(make_pool: PoolFactory, fifo: Path) -> None:
    pool = make_pool()
    future = pool.submit(announce_and_spin, str(fifo), FREE)
    (pid,) = heard(fifo)
    pool.close(0.2)
    assert not psutil.pid_exists(pid)
    assert future.cancelled()


def test_close_leaves_nothing_and_may_be_repeated(make_pool: PoolFactory) -> None:
    def holdings() -> tuple[int, list[str]]:
        return psutil.Process().num_fds(), sorted(thread.name for thread in threading.enumerate())

    before = holdings()
    pool = make_pool(2)
    for future in [pool.submit(abs, -1, FREE), pool.submit(os._exit, 1, FREE)]:
        future.exception(PATIENCE)
    assert holdings() != before
    pids = pool.processes
    pool.close(1.0)
    pool.close(1.0)
    assert holdings() == before
    assert all(dies(pid) for pid in pids)
    with pytest.raises(RuntimeError, match="closed"):
        pool.submit(abs, -1, FREE)
