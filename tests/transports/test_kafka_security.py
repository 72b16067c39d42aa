"""TLS and SASL with a broker that insists on both."""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from pydantic import SecretStr

from tests.conftest import unavailable
from tests.transports.broker import HOST, Broker, KafkaUnavailable, private_kafka
from tests.transports.conftest import OpenApp, kafka_settings
from tests.waiting import eventually

PATIENCE = 60.0
USER, PASSWORD = "penstock", "a password of the tests"


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that signs itself, and a file with its key before it, as Kafka reads them."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a broker of the tests")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    text = certificate.public_bytes(serialization.Encoding.PEM)
    authority, both = folder / "authority.pem", folder / "broker.pem"
    authority.write_bytes(text)
    key_text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    both.write_bytes(key_text + text)
    return authority, both


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, dict[str, Any]]]:
    """A broker behind TLS and a password, and the settings that lead to it."""
    authority, both = make_certificate(tmp_path_factory.mktemp("certificates"))
    login = "org.apache.kafka.common.security.plain.PlainLoginModule"
    options = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(both),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority),
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": (
            f'{login} required username="{USER}" password="{PASSWORD}" user_{USER}="{PASSWORD}";'
        ),
        # Nobody is logged in to create them.
        "auto.create.topics.enable": "true",
    }
    with ExitStack() as stack:
        try:
            broker = stack.enter_context(private_kafka(options, listener="SASL_SSL"))
        except KafkaUnavailable as error:
            unavailable(str(error))
        yield (
            broker,
            {
                "kafka_security_protocol": "SASL_SSL",
                "kafka_sasl_mechanism": "PLAIN",
                "kafka_username": USER,
                "kafka_password": SecretStr(PASSWORD),
                "kafka_ca_file": authority,
            },
        )


def test_who_has_the_password_sends_and_reads(
    guarded: tuple[Broker, dict[str, Any]], open_app: OpenApp, topic: str
) -> None:
    broker, settings = guarded
    app = open_app(**kafka_settings(broker, **settings))
    heard: SimpleQueue[Any] = SimpleQueue()
    app.messages.subscribe(topic)(lambda message: heard.put(message.payload))
    app.messages.publish(topic, "secret")
    with app.working():
        assert heard.get(timeout=PATIENCE) == "secret"


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"kafka_password": SecretStr("another")}, "uthentication"),
        ({"kafka_ca_file": None}, "certificate"),
    ],
)
def test_who_has_not_is_told_why(
    guarded: tuple[Broker, dict[str, Any]], open_app: OpenApp, topic: str, wrong: dict[str, Any], words: str
) -> None:
    broker, settings = guarded
    app = open_app(**kafka_settings(broker, **{**settings, **wrong}))
    app.messages.publish(topic, "secret")
    with app.working():
        eventually(lambda: app.messages.backlog().last_error, PATIENCE)
        error = app.messages.backlog().last_error or ""
    assert words in error
    assert PASSWORD not in error
