"""All settings of the engine as one value, checked against each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from penstock.errors import ConfigurationError
from penstock.settings.database import DatabaseSettings
from penstock.settings.environment import read_settings
from penstock.settings.ingest import IngestSettings
from penstock.settings.limits import LimitSettings
from penstock.settings.retention import RetentionSettings
from penstock.settings.server import ServerSettings
from penstock.settings.transport import TransportSettings
from penstock.settings.worker import WorkerSettings


class Settings(
    LimitSettings,
    ServerSettings,
    TransportSettings,
    IngestSettings,
    RetentionSettings,
    WorkerSettings,
    DatabaseSettings,
):
    """The configuration of one Penstock process, from the environment."""

    # Fields come in the order of the bases from the last to the first: so the reference begins with the database.

    model_config = SettingsConfigDict(frozen=True, populate_by_name=True, extra="ignore", hide_input_in_errors=True)

    files_directory: Annotated[
        Path,
        Field(
            validation_alias="PENSTOCK_FILES_DIRECTORY",
            description="The folder that keeps uploaded files; share it between machines when workers run on several.",
        ),
    ] = Path("penstock-files")
    app: Annotated[
        str,
        Field(
            validation_alias="PENSTOCK_APP",
            description="module:attribute of the Penstock object whose kinds the command line and the workers use.",
        ),
    ] = "penstock.applications:app"
    applications: Annotated[
        str,
        Field(
            validation_alias="PENSTOCK_APPLICATIONS",
            description="The applications to bring in, by their names and separated by commas; all that are installed, "
            "or none.",
        ),
    ] = "all"
    max_payload_bytes: Annotated[
        int,
        Field(
            validation_alias="PENSTOCK_MAX_PAYLOAD_BYTES",
            ge=1024,
            description="The largest params, input or result kept, as JSON.",
        ),
    ] = 32 * 1024 * 1024
    log_level: Annotated[
        str,
        Field(
            validation_alias="PENSTOCK_LOG_LEVEL",
            pattern="(?i)^(DEBUG|INFO|WARNING|ERROR)$",
            description="The least serious log lines shown: DEBUG, INFO, WARNING or ERROR.",
        ),
    ] = "INFO"


def load_settings(**overrides: object) -> Settings:
    """The settings from the environment, checked; ``overrides`` win."""
    settings = read_settings(Settings, **overrides)
    if settings.claim_min > settings.claim_max:
        raise ConfigurationError(f"CLAIM_MIN is {settings.claim_min}, above CLAIM_MAX, which is {settings.claim_max}")
    if settings.jwt_secret is not None and settings.jwks_url is not None:
        raise ConfigurationError("PENSTOCK_JWT_SECRET and PENSTOCK_JWKS_URL are both set; tokens come from one of them")
    if settings.jwks_url is not None and settings.jwt_audience is None and not settings.jwt_any_audience:
        raise ConfigurationError(
            "PENSTOCK_JWKS_URL is set without PENSTOCK_JWT_AUDIENCE: a token that the identity provider made for any "
            "other application would be good here; set it, or PENSTOCK_JWT_ANY_AUDIENCE=true if that is meant",
            code="JWT_AUDIENCE_MISSING",
        )
    if settings.ingest_min_rows > settings.ingest_max_rows:
        raise ConfigurationError(
            f"INGEST_MIN_ROWS is {settings.ingest_min_rows}, above INGEST_MAX_ROWS, which is {settings.ingest_max_rows}"
        )
    if settings.db_p50_ms >= settings.db_p95_ms:
        raise ConfigurationError(
            f"DB_P50_MS is {settings.db_p50_ms:g}, not below DB_P95_MS, which is {settings.db_p95_ms:g}"
        )
    if settings.max_json_bytes * 4 > settings.body_memory_bytes:
        raise ConfigurationError(
            f"PENSTOCK_MAX_JSON_BYTES is {settings.max_json_bytes}, more than a quarter of PENSTOCK_BODY_MEMORY_BYTES, "
            f"which is {settings.body_memory_bytes} and of which one caller may hold a quarter"
        )
    if settings.lock_floor_ms > settings.lock_cap_ms:
        raise ConfigurationError(
            f"LOCK_FLOOR_MS is {settings.lock_floor_ms}, above LOCK_CAP_MS, which is {settings.lock_cap_ms}"
        )
    return settings
