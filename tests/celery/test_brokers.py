"""The brokers of these tests are shared by the processes of a run, and none outlives its users."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.celery.brokers import Broker, answers
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
PROGRAM = """
import pathlib, sys
from tests.celery.brokers import Valkey
from tests.private_brokers import shared_broker
with shared_broker(Valkey, pathlib.Path(sys.argv[1])) as broker:
    print(broker.home, broker.url, flush=True)
    sys.stdin.read()
"""


def test_a_shared_broker_ends_after_its_last_user_was_killed(tmp_path: Path, redis_broker: Broker) -> None:
    users = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(tmp_path)],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    told = []
    for user in users:
        assert user.stdout is not None
        told.append(user.stdout.readline().split())
    assert told[0] == told[1], "they share one"
    home, url = told[0]
    assert url != redis_broker.url
    users[0].kill()
    users[0].communicate()
    assert answers(url)
    processes = [path.name for path in (Path(home) / "pids").iterdir()]
    assert processes
    users[1].kill()
    users[1].communicate()
    eventually(lambda: not Path(home).exists() and not any(Path(f"/proc/{process}").exists() for process in processes))
