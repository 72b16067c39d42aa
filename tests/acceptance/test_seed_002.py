"""The "Testing" section of the task-status seed, command by command, with the real curl and a real server."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from PIL import Image

from tests.acceptance.terminal import PATIENCE, Terminal, next_line, until

# As the seed has them; the address, the ids and the token are filled in.
START = 'curl -X POST "http://localhost:8765/api/catalogs/{id}/detect-duplicates"'
STATUS = 'curl "http://localhost:8765/api/jobs/{job_id}"'
KILL = 'curl -X DELETE "http://localhost:8765/api/jobs/{job_id}"'
# Not in the seed: what has to be there before.
CREATE = 'curl -X POST "http://localhost:8765/api/catalogs" -H "Content-Type: application/json" -d @catalog.json'
SCAN = 'curl -X POST "http://localhost:8765/api/catalogs/{id}/scan"'
Answer = dict[str, Any]


class Curl:
    """Somebody with a terminal, a token and the seed's commands."""

    def __init__(self, terminal: Terminal, address: str, token: str) -> None:
        self._directory = terminal.directory
        self._address = address
        self._token = token

    def __call__(self, command: str, **filled_in: str) -> Answer:
        """What the server answers, whatever its status code."""
        for name, value in filled_in.items():
            command = command.replace(f"{{{name}}}", value)
        words = shlex.split(command.replace("http://localhost:8765", self._address))
        ended = subprocess.run(
            [*words, "-H", f"Authorization: Bearer {self._token}"],
            cwd=self._directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
        answer: Answer = json.loads(ended.stdout)
        return answer

    def seen(self, job_id: str, status: str, celery_status: str, *, not_before: tuple[str, ...] = ()) -> Answer:
        """The first answer of this status; one of ``not_before`` must not come first."""
        answers: list[Answer] = []

        def asked() -> bool:
            answers.append(self(STATUS, job_id=job_id))
            assert answers[-1]["status"] not in not_before, answers[-1]
            return (answers[-1]["status"], answers[-1]["celery_status"]) == (status, celery_status)

        until(asked, f"the job is {status} and Celery would say {celery_status}")
        return answers[-1]


@contextmanager
def held(server: subprocess.Popen[str]) -> Iterator[None]:
    """The processes that do the work stand still: whatever they are given is surely running for so long."""
    workers = psutil.Process(server.pid).children()
    assert workers, "no process works: nothing would be held"
    for one in workers:
        one.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for one in workers:
            if one.is_running():
                one.send_signal(signal.SIGCONT)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Twenty photos, and a copy of the first."""
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(20):
        small = Image.new("L", (8, 8))
        small.putdata([(number * 53 + at * (5 + number * 6)) % 256 for at in range(64)])
        small.resize((64, 48), Image.Resampling.BICUBIC).convert("RGB").save(folder / f"{number}.jpg")
    (folder / "copy.jpg").write_bytes((folder / "0.jpg").read_bytes())
    return folder


def test_the_seeds_own_commands(real_terminal: Terminal, photos: Path) -> None:
    real_terminal.environment |= {"PENSTOCK_APP": "penstock.applications:app", "PENSTOCK_CATALOG_ROOTS": str(photos)}
    wanted = {"name": "Holidays", "source_directories": [str(photos)]}
    (real_terminal.directory / "catalog.json").write_text(json.dumps(wanted))
    with real_terminal.running("serve", "--port", 0) as server:
        address = next_line(server).split()[2].rstrip(";")
        curl = Curl(real_terminal, address, real_terminal.run("token", "--user", "alice").out.strip())
        catalog = curl(CREATE)["id"]
        for before in (SCAN, START):  # the second for its processes: they are then there to be held
            curl.seen(curl(before, id=catalog)["job_id"], "completed", "SUCCESS", not_before=("failed", "killed"))
        _started_and_completed(curl, catalog, server)
        _started_and_killed(curl, catalog, server)


def _started_and_completed(curl: Curl, catalog: str, server: subprocess.Popen[str]) -> None:
    """Start a job; check status while running; after completion."""
    with held(server):
        started = curl(START, id=catalog)
        assert started["status"] in ("queued", "running")
        job_id = started["job_id"]
        running = curl.seen(job_id, "running", "SUCCESS", not_before=("completed", "failed", "killed"))
        assert running["progress"]["percent"] < 100
        assert running["progress"]["current"] < running["progress"]["total"]
    completed = curl.seen(job_id, "completed", "SUCCESS", not_before=("failed", "killed"))
    assert (completed["progress"]["percent"], completed["result"]["photos"]) == (100, 21)
    assert completed["result"]["exact_groups"] == 1


def _started_and_killed(curl: Curl, catalog: str, server: subprocess.Popen[str]) -> None:
    """Kill a running job; check killed job status."""
    with held(server):
        job_id = curl(START, id=catalog)["job_id"]
        curl.seen(job_id, "running", "SUCCESS", not_before=("completed", "failed", "killed"))
        killed = curl(KILL, job_id=job_id)
    for answer in (killed, curl(STATUS, job_id=job_id)):
        assert (answer["status"], answer["killed_by"], answer["killed_reason"]) == (
            "killed", "user", "User requested cancellation",
        )  # fmt: skip
        assert answer["killed_at"]
        assert answer["progress_at_kill"]["processed"] < answer["progress_at_kill"]["total"]
    assert killed["message"] == "Job cancelled"
