"""What carries messages: functions of the workers, or Kafka."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings

from penstock.settings.types import Names


class TransportSettings(BaseSettings):
    """What carries messages: functions of the workers, or Kafka."""

    unsubscribed_message_days: Annotated[
        float,
        Field(
            validation_alias="PENSTOCK_UNSUBSCRIBED_MESSAGE_DAYS",
            gt=0,
            description="A message of a topic that no running worker subscribes to is dropped when it is this old.",
        ),
    ] = 30.0
    transport: Annotated[
        str,
        Field(
            validation_alias="PENSTOCK_TRANSPORT",
            pattern="^(in-process|kafka)$",
            description="What carries messages: in-process (functions of the workers) or kafka.",
        ),
    ] = "in-process"
    kafka_servers: Annotated[
        Names,
        Field(
            validation_alias="PENSTOCK_KAFKA_SERVERS",
            description="The brokers that are asked first, as host:port, separated by commas.",
        ),
    ] = ()
    kafka_group: Annotated[
        str,
        Field(
            validation_alias="PENSTOCK_KAFKA_GROUP",
            pattern="^[A-Za-z0-9._-]{1,200}$",
            description="The consumer group that the workers of one database are in.",
        ),
    ] = "penstock"
    kafka_max_message_bytes: Annotated[
        int,
        Field(
            validation_alias="PENSTOCK_KAFKA_MAX_MESSAGE_BYTES",
            ge=1024,
            le=900_000_000,
            description="The largest message that is sent or read, as JSON; the broker has a bound of its own.",
        ),
    ] = 1_000_000
    kafka_security_protocol: Annotated[
        str,
        Field(
            validation_alias="PENSTOCK_KAFKA_SECURITY_PROTOCOL",
            pattern="^(PLAINTEXT|SSL|SASL_PLAINTEXT|SASL_SSL)$",
            description="How brokers are spoken to: PLAINTEXT, SSL (TLS), SASL_PLAINTEXT or SASL_SSL (SASL over TLS).",
        ),
    ] = "PLAINTEXT"
    kafka_sasl_mechanism: Annotated[
        str,
        Field(
            validation_alias="PENSTOCK_KAFKA_SASL_MECHANISM",
            pattern="^(PLAIN|SCRAM-SHA-256|SCRAM-SHA-512)$",
            description="How SASL proves who we are: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.",
        ),
    ] = "SCRAM-SHA-512"
    kafka_username: Annotated[
        str, Field(validation_alias="PENSTOCK_KAFKA_USERNAME", description="Who we are to SASL.")
    ] = ""
    kafka_password: Annotated[
        SecretStr, Field(validation_alias="PENSTOCK_KAFKA_PASSWORD", description="The password to it.")
    ] = SecretStr("")
    kafka_ca_file: Annotated[
        Path | None,
        Field(
            validation_alias="PENSTOCK_KAFKA_CA_FILE",
            description="The authorities that brokers' certificates are checked by (PEM); the system's unless set.",
        ),
    ] = None
    kafka_certificate_file: Annotated[
        Path | None,
        Field(
            validation_alias="PENSTOCK_KAFKA_CERTIFICATE_FILE",
            description="Our own certificate (PEM), for brokers that ask for one.",
        ),
    ] = None
    kafka_key_file: Annotated[
        Path | None,
        Field(validation_alias="PENSTOCK_KAFKA_KEY_FILE", description="The key of our own certificate (PEM)."),
    ] = None
