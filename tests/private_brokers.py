"""Private brokers on 127.0.0.1, whatever they are brokers of: gone without a trace.

Each keeps what it holds in a fresh directory, has ports of its own, and can be killed and started again on the same
ports and with the same data. One that the processes of a run share is started by the first of them that asks. A shell
beside each broker ends it, and removes its directory, once none of its users is left: they let go, or died, however
suddenly.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar, TypeVar

from tests.waiting import eventually

HOST = "127.0.0.1"
SECONDS_TO_START = 120.0
_PORTS = range(12_000, 32_000)
"""Below those that the system gives to connections: a broker that is away finds its own again."""
# $1 is the directory: its folder users has a file for each process that uses the broker, its folder pids one for each
# process group of the broker, all named by their numbers. It goes on in the background: nobody waits for it.
_WATCHDOG = """
(
    while sleep 0.5; do
        used=
        for user in "$1"/users/*; do
            kill -0 "${user##*/}" && used=1
        done
        [ -n "$used" ] || break
    done
    for group in "$1"/pids/*; do
        kill -KILL "-${group##*/}"
    done
    rm -rf "$1"
) </dev/null >/dev/null 2>&1 &
"""


class BrokerUnavailable(Exception):
    """There is no such broker on this machine, or it does not start."""


class PrivateBroker:
    """One broker: where it is, and its processes while it runs."""

    name: ClassVar[str]
    port_names: ClassVar[tuple[str, ...]]

    def __init__(self, home: Path, ports: dict[str, int]) -> None:
        self.home = home
        self.ports = ports
        self._processes: list[subprocess.Popen[bytes]] = []

    def prepare(self) -> None:
        """What is done once, before the first start."""

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self.launch()
        eventually(self._is_ready, SECONDS_TO_START)

    def _is_ready(self) -> bool:
        if any(process.poll() is not None for process in self._processes):
            raise BrokerUnavailable(f"{self.name} ended: {(self.home / 'log').read_text(errors='replace')[-2000:]}")
        return self.answers()

    def launch(self) -> None:
        """Start its processes, by :meth:`run`."""
        raise NotImplementedError

    def answers(self) -> bool:
        """Does it serve clients?"""
        raise NotImplementedError

    def kill(self) -> None:
        """End it as a power cut would."""
        for process in self._processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            (self.home / "pids" / str(process.pid)).unlink(missing_ok=True)
        self._processes.clear()

    def disown(self) -> None:
        """Leave its end to the watchdog: other processes use it too."""
        for process in self._processes:
            process.returncode = 0  # nobody here waits for it, and nobody is to be warned of that
        self._processes.clear()

    def run(self, command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> None:
        """A process of the broker, which ends with it."""
        with (self.home / "log").open("ab") as log:
            process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=self.home,
            )
        self._processes.append(process)
        (self.home / "pids" / str(process.pid)).touch()


SomeBroker = TypeVar("SomeBroker", bound=PrivateBroker)


@contextmanager
def private_broker(broker_type: type[SomeBroker]) -> Iterator[SomeBroker]:
    """Run a broker for as long as the context lasts: one that a test may kill."""
    broker = _make(broker_type)
    try:
        broker.prepare()
        broker.start()
        yield broker
    finally:
        broker.kill()
        _let_go(broker)


@contextmanager
def shared_broker(broker_type: type[SomeBroker], folder: Path) -> Iterator[SomeBroker]:
    """The broker of all processes that name this folder: started by the first, ended after the last."""
    with (folder / f"{broker_type.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        note = folder / f"{broker_type.name}.json"
        broker = _join(broker_type, note)
        if broker is None:
            broker = _make(broker_type)
            try:
                broker.prepare()
                broker.start()
            except BaseException:
                broker.kill()
                _let_go(broker)
                raise
            broker.disown()
            note.write_text(json.dumps({"home": str(broker.home), "ports": broker.ports}))
    try:
        yield broker
    finally:
        _let_go(broker)


def free_ports(count: int) -> list[int]:
    """Ports that nobody has now, all different."""
    ports: list[int] = []
    while len(ports) < count:
        port = random.choice(_PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind((HOST, port))
            if port not in ports:
                ports.append(port)
    return ports


def _make(broker_type: type[SomeBroker]) -> SomeBroker:
    home = Path(tempfile.mkdtemp(prefix=f"penstock-{broker_type.name}-"))
    (home / "users").mkdir()
    (home / "pids").mkdir()
    names = broker_type.port_names
    broker = broker_type(home, dict(zip(names, free_ports(len(names)), strict=True)))
    (home / "users" / str(os.getpid())).touch()
    subprocess.run(["/bin/sh", "-c", _WATCHDOG, "watchdog", home], check=True, start_new_session=True)
    return broker


def _join(broker_type: type[SomeBroker], note: Path) -> SomeBroker | None:
    """The broker that another process has started; None where there is none any more."""
    if not note.exists():
        return None
    found = json.loads(note.read_text())
    broker = broker_type(Path(found["home"]), found["ports"])
    try:
        (broker.home / "users" / str(os.getpid())).touch()
    except OSError:
        return None
    return broker if broker.answers() else None


def _let_go(broker: PrivateBroker) -> None:
    with suppress(FileNotFoundError):
        (broker.home / "users" / str(os.getpid())).unlink()
