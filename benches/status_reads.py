"""How fast a job's status is read over HTTP, and whether that stays so with 100,000 jobs in the table.

Ours is ``penstock serve`` in a process of its own, with tokens, a log line and figures for each request. The ceiling is
a bare FastAPI route that reads the same row. The load comes from a third process, in turns. Then pages of the list, of
a user and of an admin: with many jobs in the table against as many as one page shows.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from uuid import UUID

from benches.databases import Databases
from benches.load import CONNECTIONS, Load, load, require_wrk
from benches.plan import Plan
from benches.report import Answer, Bar, by_pairs
from benches.workload import KIND, application, given
from penstock.http.tokens import OwnSecret, Tokens

NAME = "status"
BAR = Bar(0.6)
GROWTH = Bar(0.9)
PAGE = 50
USER = "ada"
OTHERS = 9
SECRET = "a secret for the bench alone, of more than thirty-two characters"
OURS = ("-m", "penstock", "serve", "--no-worker", "--port", "0", "--app", "benches.status_app:app")


def ask(databases: Databases, plan: Plan) -> list[Answer]:
    """Measure one database."""
    require_wrk()
    tokens = Tokens(OwnSecret(SECRET))
    user, admin = tokens.issue(USER), tokens.issue("root", is_admin=True)
    with ExitStack() as open_now:
        small_url, large_url = (open_now.enter_context(databases.fresh()) for _ in range(2))
        [one], [*many] = fill(small_url, 1), fill(large_url, plan.jobs_to_ask_for)
        small, large = (open_now.enter_context(serving(url, *OURS)) for url in (small_url, large_url))
        bare = open_now.enter_context(serving(large_url, "-m", "benches.status_peer", large_url))
        middle = many[len(many) // 2]
        ours, theirs, with_one = in_rounds(
            [
                (f"{large}/api/jobs/{middle}", user),
                (f"{bare}/api/jobs/{middle}", user),
                (f"{small}/api/jobs/{one}", user),
            ],
            plan,
        )
        fill(small_url, PAGE - 1)
        targets = [(f"{where}/api/jobs?limit={PAGE}", who) for who in (user, admin) for where in (large, small)]
        users, users_small, admins, admins_small = in_rounds(targets, plan)
    size = f"{plan.jobs_to_ask_for:,} jobs"
    return [
        answer(databases, f"status of a job of {size}, bare route", ours, theirs, BAR),
        answer(databases, f"status of a job of {size}, against 1 job", ours, with_one, GROWTH),
        answer(databases, f"a user's list of {size}, against {PAGE} jobs", users, users_small, GROWTH),
        answer(databases, f"an admin's list of {size}, against {PAGE} jobs", admins, admins_small, GROWTH),
    ]


def fill(url: str, count: int) -> list[UUID]:
    """Record jobs; where there are many, a tenth of them is the user's, who is the last. The answer is the user's."""
    with application(url) as app:
        share = max(count // (OTHERS + 1), 1)
        for number in range(OTHERS if count > PAGE else 0):
            app.submit_many(KIND, [given(one) for one in range(share)], owner=f"other{number}")
        return app.submit_many(KIND, [given(one) for one in range(share if count > PAGE else count)], owner=USER)


@contextmanager
def serving(url: str, *arguments: str) -> Iterator[str]:
    """A server in a process of its own; its address."""
    with server_process(url, *arguments) as (address, _):
        yield address


@contextmanager
def server_process(url: str, *arguments: str, **variables: str) -> Iterator[tuple[str, int]]:
    """A server in a process of its own, with these variables; its address, and the number of the process."""
    environment = {**os.environ, "PENSTOCK_DATABASE_URL": url, "PENSTOCK_JWT_SECRET": SECRET, **variables}
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            [sys.executable, *arguments], env=environment, stdout=subprocess.PIPE, stderr=said, text=True
        )
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line.startswith("serving on "):
                said.seek(0)
                raise RuntimeError(f"{process.args!r} does not serve: {line}{said.read()}")
            yield line.removeprefix("serving on ").partition(";")[0], process.pid
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.communicate(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()


def in_rounds(targets: Sequence[tuple[str, str]], plan: Plan) -> list[list[Load]]:
    """Each address in its turn, so many times; the order turns round each time, and a first round warms up."""
    seen: list[list[Load]] = [[] for _ in targets]
    numbers = range(len(targets))
    for url, token in targets:
        load(url, seconds=1, token=token)
    for repetition in range(plan.repetitions_of_load):
        for number in numbers if repetition % 2 == 0 else reversed(numbers):
            url, token = targets[number]
            seen[number].append(load(url, seconds=plan.seconds_of_load, token=token))
    return seen


def answer(databases: Databases, what: str, ours: list[Load], other: list[Load], bar: Bar) -> Answer:
    """Requests a second of both; how long one waited is in the notes."""
    sides = [f"p50 {_middle(side, 'p50')} ms, p99 {_middle(side, 'p99')} ms" for side in (ours, other)]
    notes = [f"{CONNECTIONS} connections; {sides[0]}; the ceiling's {sides[1]}"]
    mine, theirs = ([one.rate for one in side] for side in (ours, other))
    return by_pairs(NAME, what, databases.name, "requests/s", mine, theirs, bar=bar, notes=notes)


def _middle(loads: Sequence[Load], what: str) -> str:
    return f"{statistics.median(getattr(one, what) for one in loads):.1f}"
