"""Workers of the tracked application, as processes of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil

from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0


class TrackedWorker:
    """``celery worker``, until it is ended."""

    def __init__(
        self,
        folder: Path,
        options: dict[str, Any],
        *,
        name: str = "worker",
        concurrency: int = 3,
        pool: str = "prefork",
    ) -> None:
        self.log = folder / f"{name}.log"
        environment = {**os.environ, "TRACKED_APP": json.dumps(options), "PYTHONPATH": str(ROOT)}
        command = [
            sys.executable, "-m", "celery", "-A", "tests.celery.tracked_app:celery", "worker", "--loglevel", "INFO",
            "--concurrency", str(concurrency), "-n", f"{name}-{options['queue']}@test", "--without-gossip",
            "--without-mingle", "--pool", pool,
        ]  # fmt: skip
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip

    def wait_until_ready(self) -> TrackedWorker:
        eventually(self._is_ready, PATIENCE)
        return self

    def _is_ready(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        return " ready." in self.log.read_text()

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def kill(self) -> None:
        """All its processes, as a power cut would."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)

    def stop(self) -> None:
        """Ask it to finish what it has."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.kill()
