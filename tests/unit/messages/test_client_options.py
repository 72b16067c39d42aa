"""Settings of Kafka that are incomplete, or contradict themselves, are refused in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from penstock.errors import ConfigurationError
from penstock.messages.kafka.client_options import client_options
from penstock.settings import load_settings

SASL = {"kafka_security_protocol": "SASL_SSL", "kafka_username": "ada", "kafka_password": SecretStr("secret")}


def options(**settings: Any) -> dict[str, Any]:
    return client_options(load_settings(**{"kafka_servers": ("broker.example:9092",), **settings}))


def test_what_is_complete_is_taken() -> None:
    assert options()["bootstrap.servers"] == "broker.example:9092"
    found = options(**SASL)
    assert (found["sasl.mechanism"], found["sasl.username"], found["sasl.password"]) == (
        "SCRAM-SHA-512",
        "ada",
        "secret",
    )
    assert found["ssl.endpoint.identification.algorithm"] == "https"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kafka_servers": ()}, "PENSTOCK_KAFKA_SERVERS names no broker"),
        ({"kafka_servers": ("broker.example",)}, "write host:port"),
        ({"kafka_servers": ("broker.example:99999",)}, "write host:port"),
        ({**SASL, "kafka_password": SecretStr("")}, "PENSTOCK_KAFKA_PASSWORD is not set"),
        ({**SASL, "kafka_username": ""}, "PENSTOCK_KAFKA_USERNAME is not set"),
        ({**SASL, "kafka_security_protocol": "PLAINTEXT"}, "make it SASL_SSL"),
        ({**SASL, "kafka_security_protocol": "SSL"}, "make it SASL_SSL"),
        (
            {**SASL, "kafka_security_protocol": "SASL_PLAINTEXT", "kafka_sasl_mechanism": "PLAIN"},
            "would send the password unencrypted",
        ),
        ({"kafka_ca_file": Path("ca.pem")}, "which has no TLS"),
        ({"kafka_security_protocol": "SSL", "kafka_certificate_file": Path("c.pem")}, "belong together"),
        ({"kafka_security_protocol": "SSL", "kafka_ca_file": Path("nowhere.pem")}, "no file that can be read"),
    ],
)
def test_what_is_not_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words) as refused:
        options(**settings)
    assert refused.value.code == "KAFKA_MISCONFIGURED"
    assert "secret" not in str(refused.value)
