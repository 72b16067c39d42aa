"""Pick-up by an idle worker, from before the submit to the start of the handler, one job at a time.

On PostgreSQL the worker is another process, and so is its peer: a bare INSERT and NOTIFY in plain psycopg here, and
there a LISTEN and one UPDATE … RETURNING. The samples alternate. CLOCK_MONOTONIC is one clock for all processes.
On SQLite both are threads of this process; the peer is woken by a ``threading.Event``.
"""

from __future__ import annotations

import random
import select
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from statistics import median
from typing import Any

import psycopg
from uuid_utils.compat import uuid7

from benches.ceilings_sqlite import now_microseconds
from benches.databases import Databases, SQLiteDatabases, plain, sqlite_path
from benches.pick_up_peer import CHANNEL
from benches.plan import Plan
from benches.report import Answer, Bar, by_blocks, p95
from benches.workload import KIND, LEASE_SECONDS, RESULT, WORKER, given, given_text, working
from penstock import Penstock

NAME = "pick-up"
BAR = Bar(2.0, at_least=False)
WARM_UP = 20
REST_SECONDS = (0.02, 0.05)  # between two jobs: both sides are idle again, and no timer beats with ours
SECONDS_TO_ANSWER = 30.0

Sample = Callable[[int], float]


def ask(databases: Databases, plan: Plan) -> list[Answer]:
    """Measure one database."""
    light = isinstance(databases, SQLiteDatabases)
    both = _in_this_process if light else _in_other_processes
    with databases.fresh() as our_url, databases.fresh() as their_url, both(our_url, their_url) as (ours, peer):
        mine: list[float] = []
        theirs: list[float] = []
        for number in range(WARM_UP + plan.pick_ups):
            turns = [(ours, mine), (peer, theirs)]
            for sample, kept in turns if number % 2 == 0 else reversed(turns):
                time.sleep(random.uniform(*REST_SECONDS))
                kept.append(sample(number))
    mine, theirs = mine[WARM_UP:], theirs[WARM_UP:]
    where = "threads of one process" if light else "worker in another process"
    notes = [f"{plan.pick_ups} jobs, {where}; median {median(mine):.2f} ms, the peer's {median(theirs):.2f} ms"]
    what = "pick-up by an idle worker, p95"
    return [by_blocks(NAME, what, databases.name, mine, theirs, p95, bar=None if light else BAR, notes=notes)]


# PostgreSQL -----------------------------------------------------------------------------------------------------------


@contextmanager
def _in_other_processes(our_url: str, their_url: str) -> Iterator[tuple[Sample, Sample]]:
    app = Penstock(our_url)
    app.kind(KIND)(_noop)
    with (
        _process("benches.pick_up_worker", our_url) as our_worker,
        _process("benches.pick_up_peer", their_url) as their_worker,
        psycopg.connect(plain(their_url)) as link,
    ):

        def ours(number: int) -> float:
            begun = time.monotonic_ns()
            app.submit(KIND, given(number))
            return (_time_from(our_worker) - begun) / 1e6

        def peer(number: int) -> float:
            begun = time.monotonic_ns()
            link.execute(
                "INSERT INTO job_items (job_id, kind, role, position, status, input_json, updated_at) "
                "VALUES (%b, %b, 'item', 1, 'PENDING', %s, now())",
                (uuid7(), KIND, given_text(number)),
                prepare=True,
            )
            link.execute(f"NOTIFY {CHANNEL}".encode())
            link.commit()
            return (_time_from(their_worker) - begun) / 1e6

        yield ours, peer
    app.close()


@contextmanager
def _process(module: str, url: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", module, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    try:
        assert _line_from(process) == "ready"
        yield process
    finally:
        try:
            process.communicate(timeout=SECONDS_TO_ANSWER)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def _line_from(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], SECONDS_TO_ANSWER)
    assert ready, f"{process.args!r} did not answer in {SECONDS_TO_ANSWER} s"
    line = process.stdout.readline()
    assert line, f"{process.args!r} ended with {process.wait()}"
    return line.strip()


def _time_from(process: subprocess.Popen[str]) -> int:
    return int(_line_from(process))


# SQLite ---------------------------------------------------------------------------------------------------------------


@contextmanager
def _in_this_process(our_url: str, their_url: str) -> Iterator[tuple[Sample, Sample]]:
    app = Penstock(our_url)
    started: SimpleQueue[int] = SimpleQueue()

    @app.kind(KIND)
    async def noop(_item: Any) -> dict[str, str]:
        started.put(time.monotonic_ns())
        return RESULT

    def ours(number: int) -> float:
        begun = time.monotonic_ns()
        app.submit(KIND, given(number))
        return (started.get(timeout=30) - begun) / 1e6

    with working(app) as worker, _plain_thread(their_url) as peer:
        worker.signals.wait("idle")
        yield ours, peer
    app.close()


@contextmanager
def _plain_thread(url: str) -> Iterator[Sample]:
    """A thread that claims when an event is set, and a plain INSERT that sets it."""
    told, ended = threading.Event(), threading.Event()
    started: SimpleQueue[int] = SimpleQueue()

    def claim_when_told() -> None:
        link = _connect(url)
        while told.wait() and not ended.is_set():
            told.clear()
            now = now_microseconds()
            link.execute("BEGIN IMMEDIATE")
            rows = link.execute(
                "UPDATE job_items SET status = 'PROCESSING', attempts = attempts + 1, lease = ?, locked_by = ?, "
                "locked_at = ?, lock_expires_at = ?, updated_at = ? WHERE id = "
                "(SELECT id FROM job_items WHERE status = 'PENDING' ORDER BY id LIMIT 1) "
                "RETURNING id, job_id, position, attempts, input_json",
                (uuid7().hex, WORKER, now, now + int(LEASE_SECONDS * 1e6), now),
            ).fetchall()
            link.execute("COMMIT")
            assert rows
            started.put(time.monotonic_ns())
        link.close()

    thread = threading.Thread(target=claim_when_told, daemon=True)
    thread.start()
    link = _connect(url)

    def peer(number: int) -> float:
        begun = time.monotonic_ns()
        link.execute("BEGIN IMMEDIATE")
        link.execute(
            "INSERT INTO job_items (job_id, kind, role, position, status, input_json, updated_at) "
            "VALUES (?, ?, 'item', 1, 'PENDING', ?, ?)",
            (uuid7().hex, KIND, given_text(number), now_microseconds()),
        )
        link.execute("COMMIT")
        told.set()
        return (started.get(timeout=30) - begun) / 1e6

    try:
        yield peer
    finally:
        ended.set()
        told.set()
        thread.join()
        link.close()


def _connect(url: str) -> Any:
    link = sqlite3.connect(sqlite_path(url), isolation_level=None, timeout=30)
    link.execute("PRAGMA synchronous=NORMAL")
    return link


async def _noop(_item: Any) -> dict[str, str]:
    return RESULT
