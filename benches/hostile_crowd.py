"""What a hostile crowd costs the one user who works: how long requests take, the server's memory, and what is lost.

Two hundred connections drip, bodies of 50 MB come without tokens, one user throws twelve bombs, and guests ask for a
hundred pages that never come (:mod:`benches.hostile_clients`), while somebody submits jobs, looks at them and saves
recipes. The ceiling is the same user in peace; that of memory the bar itself.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from urllib.parse import urlsplit

import httpx2
import psutil

from benches.crowd_app import build
from benches.databases import Databases
from benches.plan import Plan
from benches.report import Answer, Bar, by_blocks, by_pairs, p99
from benches.status_reads import SECRET, server_process
from benches.workload import KIND
from penstock import Settings
from penstock.http.tokens import OwnSecret, Tokens

NAME = "crowd"
SLOWDOWN = Bar(3, at_least=False)
MEMORY = Bar(1, at_least=False)
MAX_MEBIBYTES = 400.0
PAUSE_SECONDS = 0.02
PATIENCE = 120.0
_MEBIBYTE = 1024 * 1024
SERVER = ("-m", "penstock", "serve", "--port", "0", "--app", "benches.crowd_app:app")


def ask(databases: Databases, plan: Plan) -> list[Answer]:
    """Measure one database."""
    tokens = Tokens(OwnSecret(SECRET))
    with databases.fresh() as url, attackers() as (crowd, site):
        build(Settings(database_url=url)).system.migrate()
        allowed = {"PENSTOCK_FETCH_ALLOW_HOSTS": urlsplit(site).netloc, "PENSTOCK_LOG_LEVEL": "ERROR"}
        with server_process(url, *SERVER, **allowed) as (address, pid), User(address, tokens.issue("ada")) as user:
            user.work(2.0)
            peace = user.work(plan.seconds_of_attack)
            target = {"url": address, "token": tokens.issue("eve"), "seconds": plan.seconds_of_attack + 2}
            _tell(crowd, json.dumps(target))
            begun_at = time.monotonic()
            peak = 0.0
            attacked: list[float] = []
            while time.monotonic() - begun_at < plan.seconds_of_attack:
                attacked += user.work(0.5)
                peak = max(peak, psutil.Process(pid).memory_info().rss / _MEBIBYTE)
            report = json.loads(_line_of(crowd))
            user.require_nothing_lost()
            user.require_answers(report["requests"])
    seen = ", ".join(f"{what}: {count:,}" for what, count in sorted(report["counts"].items()))
    notes = [f"{len(attacked):,} requests under attack, {len(peace):,} in peace; nothing was lost", seen]
    return [
        by_blocks(NAME, "a user's requests under attack, p99", databases.name, attacked, peace, p99,
                  bar=SLOWDOWN, notes=notes),
        by_pairs(NAME, "the server's memory under attack", databases.name, "MiB", [peak], [MAX_MEBIBYTES], bar=MEMORY,
                 notes=["the ceiling is the bar"]),
    ]  # fmt: skip


@contextmanager
def attackers() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The crowd in a process of its own, which waits to be told whom to attack; with the site of its pages."""
    command = [sys.executable, "-m", "benches.hostile_clients"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process, _line_of(process).strip()
        finally:
            process.kill()


def _tell(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{line}\n")
    process.stdin.flush()


def _line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


class User:
    """Somebody who works: submits, looks, lists, saves."""

    def __init__(self, url: str, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        self._client = httpx2.Client(base_url=url, headers=headers, timeout=PATIENCE)
        self._jobs: list[str] = []
        self._saved = 0
        self._steps = cycle((self._submit, self._look, self._list, self._save))

    def __enter__(self) -> User:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def work(self, seconds: float) -> list[float]:
        """Do one thing after the other for so long; how long each took, in milliseconds."""
        taken = []
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            taken.append(self.take_step())
            time.sleep(PAUSE_SECONDS)
        return taken

    def take_step(self) -> float:
        """Do the next thing; how long it took, in milliseconds."""
        begun_at = time.perf_counter()
        next(self._steps)()
        return (time.perf_counter() - begun_at) * 1000.0

    def require_nothing_lost(self) -> None:
        """Every job that was accepted has succeeded, or does soon, and every recipe is there."""
        until = time.monotonic() + PATIENCE
        for job in self._jobs:
            while (status := self._ask("GET", f"/api/jobs/{job}").json()["status"]) != "completed":
                assert status in ("queued", "running"), f"job {job} is {status}"
                assert time.monotonic() < until, f"job {job} is still {status}"
                time.sleep(PAUSE_SECONDS)
        saved, address = 0, "/recipes"
        while address:
            page = self._ask("GET", address)
            saved += len(page.json())
            address = page.links.get("next", {}).get("url", "")
        assert saved == self._saved, f"{self._saved} recipes were saved, and {saved} are there"

    def require_answers(self, requests: list[str]) -> None:
        """What guests were promised is still there, whatever became of it."""
        for request in requests:
            assert self._ask("GET", f"/parse-requests/{request}").json()["status"]

    def _submit(self) -> None:
        answer = self._ask("POST", f"/api/kinds/{KIND}/jobs", json={"n": len(self._jobs)})
        self._jobs.append(answer.json()["job_id"])

    def _look(self) -> None:
        self._ask("GET", f"/api/jobs/{self._jobs[-1]}")

    def _list(self) -> None:
        self._ask("GET", "/api/jobs?limit=20")

    def _save(self) -> None:
        self._ask("POST", "/recipes", json={"title": "Soup"})
        self._saved += 1

    def _ask(self, method: str, address: str, json: object = None) -> httpx2.Response:
        answer = self._client.request(method, address, json=json)
        assert answer.is_success, f"{method} {address}: {answer.status_code} {answer.text[:300]}"
        return answer
