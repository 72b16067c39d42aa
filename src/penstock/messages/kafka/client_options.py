"""The settings as the Kafka client knows them; what is incomplete, or contradicts itself, is refused in words."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeAlias

from penstock.errors import ConfigurationError
from penstock.settings import Settings

Options: TypeAlias = dict[str, str | int | bool]
_CODE = "KAFKA_MISCONFIGURED"
_RECONNECT_MS = 2_000


def client_options(settings: Settings) -> Options:
    """What producers, consumers and the administration of topics have in common."""
    if not settings.kafka_servers:
        raise _refusal("PENSTOCK_KAFKA_SERVERS names no broker; write host:port, several separated by commas")
    for server in settings.kafka_servers:
        _require_port(server)
    return {
        "bootstrap.servers": ",".join(settings.kafka_servers),
        "client.id": "penstock",
        # A broker that is back is found within seconds.
        "reconnect.backoff.max.ms": _RECONNECT_MS,
        "log.connection.close": False,
        "security.protocol": settings.kafka_security_protocol,
        **_tls_options(settings),
        **_sasl_options(settings),
    }


def _require_port(server: str) -> None:
    host, colon, port = server.rpartition(":")
    if not (host and colon and port.isascii() and port.isdigit() and 0 < int(port) < 65_536):
        raise _refusal(f"PENSTOCK_KAFKA_SERVERS has {server!r}; write host:port")


def _tls_options(settings: Settings) -> Options:
    files = {
        "PENSTOCK_KAFKA_CA_FILE": ("ssl.ca.location", settings.kafka_ca_file),
        "PENSTOCK_KAFKA_CERTIFICATE_FILE": ("ssl.certificate.location", settings.kafka_certificate_file),
        "PENSTOCK_KAFKA_KEY_FILE": ("ssl.key.location", settings.kafka_key_file),
    }
    tls_files = {variable: (option, path) for variable, (option, path) in files.items() if path is not None}
    protocol = settings.kafka_security_protocol
    if not protocol.endswith("SSL"):
        if tls_files:
            raise _refusal(
                f"{min(tls_files)} is set, and PENSTOCK_KAFKA_SECURITY_PROTOCOL is {protocol}, which has no TLS; "
                "make it SSL or SASL_SSL"
            )
        return {}
    if (settings.kafka_certificate_file is None) != (settings.kafka_key_file is None):
        raise _refusal(
            "PENSTOCK_KAFKA_CERTIFICATE_FILE and PENSTOCK_KAFKA_KEY_FILE belong together; one of them is not set"
        )
    for variable, (_, path) in tls_files.items():
        _require_readable(variable, path)
    options: Options = {option: str(path) for option, path in tls_files.values()}
    return options | {"ssl.endpoint.identification.algorithm": "https"}


def _require_readable(variable: str, path: Path) -> None:
    if not (path.is_file() and os.access(path, os.R_OK)):
        raise _refusal(f"{variable} is {str(path)!r}, which is no file that can be read")


def _sasl_options(settings: Settings) -> Options:
    protocol, password = settings.kafka_security_protocol, settings.kafka_password.get_secret_value()
    credentials = {"PENSTOCK_KAFKA_USERNAME": settings.kafka_username, "PENSTOCK_KAFKA_PASSWORD": password}
    if not protocol.startswith("SASL"):
        for variable, value in credentials.items():
            if value:
                raise _refusal(
                    f"{variable} is set, and PENSTOCK_KAFKA_SECURITY_PROTOCOL is {protocol}, which does not use it; "
                    "make it SASL_SSL"
                )
        return {}
    for variable, value in credentials.items():
        if not value:
            raise _refusal(f"PENSTOCK_KAFKA_SECURITY_PROTOCOL is {protocol}, and {variable} is not set")
    if not protocol.endswith("SSL") and settings.kafka_sasl_mechanism == "PLAIN":
        raise _refusal(
            "PENSTOCK_KAFKA_SASL_MECHANISM is PLAIN, which would send the password unencrypted over SASL_PLAINTEXT; "
            "use SASL_SSL, or SCRAM-SHA-512"
        )
    return {
        "sasl.mechanism": settings.kafka_sasl_mechanism,
        "sasl.username": settings.kafka_username,
        "sasl.password": password,
    }


def _refusal(message: str) -> ConfigurationError:
    return ConfigurationError(message, code=_CODE)
