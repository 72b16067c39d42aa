"""The first view of the page of jobs: its frame, and the first event of its live list. Milliseconds, at a large size.

The same is asked of a server with as many jobs as the page shows: a list should cost what it shows, not what there is.
A browser adds its own time for drawing; static files are kept by it and are not counted.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from statistics import median

import httpx2

from benches.databases import Databases
from benches.plan import Plan
from benches.report import Answer, Bar, by_blocks
from benches.status_reads import OURS, PAGE, SECRET, USER, fill, serving
from penstock.http.sessions import SESSION_COOKIE
from penstock.http.tokens import OwnSecret, Tokens

NAME = "first-view"
GROWTH = Bar(1.5, at_least=False)
PROMISED_MS = 300.0
WARM_UP = 5


def ask(databases: Databases, plan: Plan) -> list[Answer]:
    """Measure one database."""
    tokens = Tokens(OwnSecret(SECRET))
    with ExitStack() as open_now:
        small_url, large_url = (open_now.enter_context(databases.fresh()) for _ in range(2))
        fill(small_url, PAGE)
        fill(large_url, plan.jobs_to_ask_for)
        small, large = (open_now.enter_context(serving(url, *OURS)) for url in (small_url, large_url))
        answers = []
        for who, token in (("a user", tokens.issue(USER)), ("an admin", tokens.issue("root", is_admin=True))):
            for what, query in (
                ("", ""),
                (" of one status", "&status=queued"),
                (", searched in vain", "&q=nothing+like+it"),
            ):
                asked = {"cookies": {SESSION_COOKIE: token}, "timeout": 30.0}
                clients = [
                    open_now.enter_context(httpx2.Client(base_url=where, **asked))  # type: ignore[arg-type]
                    for where in (large, small)
                ]
                seen: list[list[float]] = [[], []]
                for number in range(WARM_UP + plan.page_asks):
                    for side in (0, 1) if number % 2 else (1, 0):
                        taken = _view(clients[side], query)
                        if number >= WARM_UP:
                            seen[side].append(taken)
                name = f"first view of {who}'s {plan.jobs_to_ask_for:,} jobs{what}, against {PAGE}"
                notes = [f"{name}: slowest {max(seen[0]):.0f} ms of {len(seen[0])}; promised are {PROMISED_MS:.0f} ms"]
                # A search reads what it looks through, up to its bound: it has the promise in milliseconds alone.
                bar = None if "q=" in query else GROWTH
                answers.append(by_blocks(NAME, name, databases.name, seen[0], seen[1], median, bar=bar, notes=notes))
        return answers


def _view(client: httpx2.Client, query: str) -> float:
    begun = time.perf_counter()
    frame = client.get("/ui/jobs")
    assert frame.status_code == 200, frame.status_code
    with client.stream("GET", f"/api/jobs/live?limit={PAGE}{query}") as stream:
        for line in stream.iter_lines():
            if line.startswith("data:"):
                break
        else:
            raise AssertionError("the list sent nothing")
        return (time.perf_counter() - begun) * 1000.0
