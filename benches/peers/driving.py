"""One peer at work: its client, its worker, and what its handlers report."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import psutil

from benches.peers.adapters.speaking import RECORD, REPORTS
from benches.peers.environments import ROOT, python_of
from benches.peers.roster import Peer

SECONDS_TO_ANSWER = 600.0


class PeerFailed(Exception):
    """The peer did not do what was asked; the text is what it said."""


class NotOffered(Exception):
    """The peer has no such thing."""


class Client:
    """The process that enqueues and asks."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._answer()

    def ask(self, name: str, first: int = 0, count: int = 0) -> dict[str, Any]:
        """Call a method of the adapter's client."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{name} {first} {count}\n")
        self._process.stdin.flush()
        return self._answer()

    def seconds(self, name: str, first: int = 0, count: int = 0) -> float:
        """How long a method took, by the client's own watch."""
        answer = self.ask(name, first, count)
        return float(answer["ended"] - answer["begun"]) / 1e9

    def _answer(self) -> dict[str, Any]:
        pipe = self._process.stdout
        assert pipe is not None
        ready = _is_readable(pipe.fileno(), SECONDS_TO_ANSWER)
        line = pipe.readline() if ready else ""
        if not line:
            raise PeerFailed(
                f"the client gave no answer in {SECONDS_TO_ANSWER:g} s" if not ready else "the client died"
            )
        answer: dict[str, Any] = json.loads(line)
        if "failed" in answer:
            raise PeerFailed(answer["failed"])
        if "not_offered" in answer:
            raise NotOffered(answer["not_offered"])
        return answer


def _is_readable(descriptor: int, seconds: float) -> bool:
    """Does something come within so many seconds? ``select`` would know the first 1,024 descriptors only."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


class Reports:
    """What the handlers tell: which job started, and when."""

    def __init__(self, pipe: Path) -> None:
        # Opened for both, so that it neither waits for the first worker nor ends with the last.
        self._pipe = os.open(pipe, os.O_RDWR)
        self._changed = threading.Condition()
        self._seen: list[tuple[int, int]] = []
        self._closed = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        left = b""
        while not self._closed.is_set():
            if not _is_readable(self._pipe, 0.2):
                continue
            data = left + os.read(self._pipe, 1 << 16)
            whole = len(data) // RECORD.size * RECORD.size
            left = data[whole:]
            with self._changed:
                self._seen.extend(RECORD.iter_unpack(data[:whole]))
                self._changed.notify_all()

    def close(self) -> None:
        """Stop reading."""
        self._closed.set()
        self._reader.join()
        os.close(self._pipe)

    def wait_for(self, count: int, timeout: float) -> list[tuple[int, int]]:
        """The reports so far, once there are so many; fewer when that took too long."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._seen) >= count, timeout)
            return list(self._seen)


class Worker:
    """The process that works, and whatever it starts."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._family = psutil.Process(process.pid)
        self._watched = threading.Event()
        self.peak_bytes = 0
        self._watch = threading.Thread(target=self._weigh, daemon=True)
        self._watch.start()

    def _weigh(self) -> None:
        while not self._watched.wait(0.1):
            with suppress(psutil.Error):
                family = [self._family, *self._family.children(recursive=True)]
                self.peak_bytes = max(self.peak_bytes, sum(_own_bytes(one) for one in family))

    def alive(self) -> bool:
        """Does it still run?"""
        return self._process.poll() is None

    def kill(self) -> None:
        """SIGKILL, for it and its children."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """SIGTERM, and SIGKILL for what does not heed it."""
        self._watched.set()
        if self.alive():
            self._process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(20)
        self.kill()


def _own_bytes(process: psutil.Process) -> int:
    """What is the process's own, plus its part of what it shares."""
    return int(process.memory_full_info().pss)


class Running:
    """A peer on a fresh database."""

    def __init__(self, peer: Peer, url: str, directory: Path) -> None:
        self.peer = peer
        self.url = url
        self._pipe = directory / "reports"
        os.mkfifo(self._pipe)
        self._log: IO[bytes] = (directory / "worker.log").open("wb+")
        # The adapters are found in this tree; whatever else they import is in their own environment.
        self._environment = {**os.environ, REPORTS: str(self._pipe), "PYTHONPATH": str(ROOT)}
        self.reports = Reports(self._pipe)
        self._client_process = subprocess.Popen(
            self._command("client"), env=self._environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            stderr=self._log, cwd=directory,
        )  # fmt: skip
        self._directory = directory
        try:
            self.client = Client(self._client_process)
            self.client.ask("prepare")
        except BaseException:
            self.close()
            raise

    @contextmanager
    def worker(self) -> Iterator[Worker]:
        """A worker for the length of a ``with`` block; one that was killed may be followed by another."""
        process = subprocess.Popen(
            self._command("work"), env=self._environment, start_new_session=True, stdin=subprocess.DEVNULL,
            stdout=self._log, stderr=self._log, cwd=self._directory,
        )  # fmt: skip
        worker = Worker(process)
        try:
            yield worker
        finally:
            worker.stop()

    def wait_until_nothing_is_left(self, seconds: float) -> int:
        """The moment, by CLOCK_MONOTONIC, at which the peer itself says that no job is open."""
        give_up = time.monotonic() + seconds
        while self.client.ask("left")["answer"]:
            if time.monotonic() > give_up:
                raise PeerFailed(f"jobs are left after {seconds:g} s; the worker said:\n{self.last_words()}")
            time.sleep(0.01)
        return time.monotonic_ns()

    def last_words(self) -> str:
        """The end of what client and worker wrote."""
        self._log.flush()
        return Path(self._log.name).read_text(errors="replace")[-2000:]

    def close(self) -> None:
        """End everything."""
        self._client_process.kill()
        self._client_process.communicate()
        self.reports.close()
        self._log.close()

    def _command(self, role: str) -> list[str]:
        python = str(python_of(self.peer.environment))
        return [python, "-m", f"benches.peers.adapters.{self.peer.adapter}", role, self.url]


@contextmanager
def running(peer: Peer, url: str) -> Iterator[Running]:
    """A peer for the length of a ``with`` block."""
    with tempfile.TemporaryDirectory(prefix="penstock-peer-") as directory:
        one = Running(peer, url, Path(directory))
        try:
            yield one
        finally:
            one.close()
