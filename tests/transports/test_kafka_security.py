"""TLS and SASL with a broker that insists on them: who is known sends and reads, who is not is told why."""

from __future__ import annotations

from queue import SimpleQueue
from typing import Any

import pytest
from pydantic import SecretStr

from penstock import Penstock
from penstock.errors import BrokerUnavailable
from tests.transports.broker import PASSWORD, USER, Broker
from tests.transports.conftest import OpenApp, kafka_settings
from tests.waiting import eventually

PATIENCE = 60.0


def with_password(broker: Broker, **changes: Any) -> dict[str, Any]:
    """The settings of who has the password."""
    return kafka_settings(broker) | {
        "kafka_servers": (broker.password_address,),
        "kafka_security_protocol": "SASL_SSL",
        "kafka_username": USER,
        "kafka_password": SecretStr(PASSWORD),
        "kafka_ca_file": broker.certificates.authority,
        **changes,
    }


def with_certificate(broker: Broker, **changes: Any) -> dict[str, Any]:
    """The settings of who has a certificate."""
    return kafka_settings(broker) | {
        "kafka_servers": (broker.certificate_address,),
        "kafka_security_protocol": "SSL",
        "kafka_ca_file": broker.certificates.authority,
        "kafka_certificate_file": broker.certificates.client,
        "kafka_key_file": broker.certificates.client_key,
        **changes,
    }


def refusal(app: Penstock) -> str:
    """Why the broker is not reached, as far as that is known after some seconds."""
    with pytest.raises(BrokerUnavailable) as raised:
        app.messages.check_transport()
    return raised.value.message


@pytest.mark.parametrize("identity", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "certificate"])
def test_who_is_known_sends_and_reads(kafka_broker: Broker, open_app: OpenApp, topic: str, identity: str) -> None:
    kafka_broker.create_topics(topic)
    if identity == "certificate":
        settings = with_certificate(kafka_broker)
    else:
        settings = with_password(kafka_broker, kafka_sasl_mechanism=identity)
    app = open_app(**settings)
    heard: SimpleQueue[Any] = SimpleQueue()
    app.messages.subscribe(topic)(lambda message: heard.put(message.payload))
    app.messages.publish(topic, "secret")
    with app.working():
        assert heard.get(timeout=PATIENCE) == "secret"


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"kafka_password": SecretStr("another"), "kafka_sasl_mechanism": "PLAIN"}, "uthentication"),
        ({"kafka_password": SecretStr("another")}, "uthentication"),
        ({"kafka_username": "nobody"}, "uthentication"),
        ({"kafka_ca_file": None}, "certificate"),
    ],
)
def test_who_has_no_password_is_told_why(
    kafka_broker: Broker, open_app: OpenApp, wrong: dict[str, Any], words: str
) -> None:
    app = open_app(**with_password(kafka_broker, **wrong))
    eventually(lambda: words in refusal(app), PATIENCE)
    assert PASSWORD not in refusal(app)


@pytest.mark.usefixtures("impatient")
def test_who_has_no_certificate_is_told_why(kafka_broker: Broker, open_app: OpenApp) -> None:
    app = open_app(**with_certificate(kafka_broker, kafka_certificate_file=None, kafka_key_file=None))
    eventually(lambda: "certificate required" in refusal(app), PATIENCE)
