"""What may be fetched from elsewhere, and with which keys: said by the operator, never by who asks."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from penstock.settings.types import Names, Owners


class SourceSettings(BaseSettings):
    """The buckets and servers that files may be fetched from."""

    model_config = SettingsConfigDict(
        frozen=True, populate_by_name=True, extra="ignore", env_ignore_empty=True, hide_input_in_errors=True
    )

    buckets: Annotated[
        Names,
        Field(
            validation_alias="PENSTOCK_INGEST_BUCKETS",
            description="Buckets files may be taken in from, separated by commas.",
        ),
    ] = ()
    ftp_hosts: Annotated[
        Names,
        Field(
            validation_alias="PENSTOCK_INGEST_FTP_HOSTS",
            description="FTP servers likewise, host or host:port, separated by commas.",
        ),
    ] = ()
    owners: Annotated[
        Owners,
        Field(
            validation_alias="PENSTOCK_INGEST_OWNERS",
            description="Who but admins may take files in, as JSON: each root, s3://bucket or ftp://host with a list "
            'of users, or of "*" for everybody who is signed in.',
        ),
    ] = {}
    ftp_user: Annotated[
        str, Field(validation_alias="PENSTOCK_INGEST_FTP_USER", description="The account on those servers.")
    ] = "anonymous"
    ftp_password: Annotated[
        SecretStr, Field(validation_alias="PENSTOCK_INGEST_FTP_PASSWORD", description="Its password.")
    ] = SecretStr("")
    access_key_id: Annotated[
        str, Field(validation_alias="AWS_ACCESS_KEY_ID", description="The access key of the buckets.")
    ] = ""
    secret_access_key: Annotated[
        SecretStr, Field(validation_alias="AWS_SECRET_ACCESS_KEY", description="Its other half.")
    ] = SecretStr("")
    session_token: Annotated[
        SecretStr,
        Field(validation_alias="AWS_SESSION_TOKEN", description="Session token of temporary credentials."),
    ] = SecretStr("")
    region: Annotated[str, Field(validation_alias="AWS_REGION", description="Where the buckets are.")] = "us-east-1"
    endpoint_url: Annotated[
        str, Field(validation_alias="AWS_ENDPOINT_URL", description="Who serves them, if not Amazon.")
    ] = ""
