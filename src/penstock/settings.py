"""Every setting: its environment variable, its default and what it means. Read once, never at import."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, Field, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from penstock.errors import ConfigurationError

__all__ = ["Settings", "load_settings", "read_settings"]

AnySettings = TypeVar("AnySettings", bound=BaseSettings)


@dataclass(frozen=True, slots=True)
class WrittenAs:
    """How the value of a setting is written in the environment: a mark on its type."""

    text: Callable[[Any], str]


def _split(value: object) -> object:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split), WrittenAs(",".join)]
"""A setting that is a list: separated by commas in the environment."""


def _split_paths(value: object) -> object:
    return tuple(part.strip() for part in value.split(os.pathsep) if part.strip()) if isinstance(value, str) else value


Folders = Annotated[
    tuple[Path, ...],
    NoDecode,
    BeforeValidator(_split_paths),
    WrittenAs(lambda folders: os.pathsep.join(map(str, folders))),
]
"""A setting that is a list of folders: separated as in PATH."""


class Settings(BaseSettings):
    """The configuration of one Penstock process, from the environment."""

    model_config = SettingsConfigDict(frozen=True, populate_by_name=True, extra="ignore")

    database_url: Annotated[
        str,
        Field(
            validation_alias="PENSTOCK_DATABASE_URL",
            description="Where everything is kept: sqlite:///file.db or postgresql+psycopg://user@host/name.",
        ),
    ] = "sqlite:///penstock.db"
    database_schema: Annotated[
        str,
        Field(
            validation_alias="PENSTOCK_DATABASE_SCHEMA",
            pattern="^[a-z_][a-z0-9_]{0,47}$",
            description="The schema of a server's database that our tables are in; two of them are two Penstocks. "
            "A SQLite file has none.",
        ),
    ] = "penstock"
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
    pool_size: Annotated[
        int,
        Field(
            validation_alias="PENSTOCK_POOL_SIZE",
            ge=1,
            le=1000,
            description="Database connections one process keeps, besides the one a worker listens on.",
        ),
    ] = 10
    database_timeout_seconds: Annotated[
        float,
        Field(
            validation_alias="PENSTOCK_DATABASE_TIMEOUT_SECONDS",
            gt=0,
            description="How long a database server may take to answer one statement; migrations may take longer.",
        ),
    ] = 30.0
    listen_url: Annotated[
        str | None,
        Field(
            validation_alias="PENSTOCK_LISTEN_URL",
            pattern=r"^postgresql(\+psycopg)?://",
            description="A direct way to the same PostgreSQL, where PENSTOCK_DATABASE_URL leads through a pooler.",
        ),
    ] = None
    prepared_statements: Annotated[
        str,
        Field(
            validation_alias="PENSTOCK_PREPARED_STATEMENTS",
            pattern="^(auto|on|off)$",
            description="Whether PostgreSQL prepares statements: auto if reached directly, on if a pooler keeps them.",
        ),
    ] = "auto"
    sqlite_synchronous: Annotated[
        str,
        Field(
            validation_alias="PENSTOCK_SQLITE_SYNCHRONOUS",
            pattern="^(NORMAL|FULL|EXTRA)$",
            description="NORMAL survives a crash of the program; FULL also a power cut, at one fsync a commit.",
        ),
    ] = "NORMAL"
    target_slice_ms: Annotated[
        int,
        Field(
            validation_alias="WORKER_TARGET_SLICE_MS",
            ge=10,
            le=600_000,
            description="How much work a worker claims at once, in milliseconds of it.",
        ),
    ] = 5000
    claim_min: Annotated[
        int, Field(validation_alias="CLAIM_MIN", ge=1, description="The fewest items a worker asks for at once.")
    ] = 1
    claim_max: Annotated[
        int,
        Field(validation_alias="CLAIM_MAX", ge=1, le=10_000, description="The most items a worker asks for at once."),
    ] = 500
    safety_factor: Annotated[
        float,
        Field(
            validation_alias="SAFETY_FACTOR",
            gt=0,
            le=1,
            description="The share of a slice that claimed work is meant to fill.",
        ),
    ] = 0.7
    lock_floor_ms: Annotated[
        int, Field(validation_alias="LOCK_FLOOR_MS", ge=100, description="The shortest lease on a claimed item.")
    ] = 30_000
    lock_cap_ms: Annotated[
        int, Field(validation_alias="LOCK_CAP_MS", ge=100, description="The longest lease on a claimed item.")
    ] = 600_000
    ingest_min_rows: Annotated[
        int, Field(validation_alias="INGEST_MIN_ROWS", ge=1, description="The fewest planned items written at once.")
    ] = 64
    ingest_max_rows: Annotated[
        int,
        Field(
            validation_alias="INGEST_MAX_ROWS", ge=1, le=100_000, description="The most planned items written at once."
        ),
    ] = 5000
    ingest_max_batch_bytes: Annotated[
        int,
        Field(
            validation_alias="INGEST_MAX_BATCH_BYTES",
            ge=1024,
            description="The most bytes of planned items written at once.",
        ),
    ] = 8 * 1024 * 1024
    db_p50_ms: Annotated[
        float,
        Field(
            validation_alias="DB_P50_MS",
            gt=0,
            description="Batches of planned items grow while the database takes less than this for one.",
        ),
    ] = 250.0
    db_p95_ms: Annotated[
        float,
        Field(
            validation_alias="DB_P95_MS",
            gt=0,
            description="They are halved when it takes more than this for one.",
        ),
    ] = 1000.0
    ingest_max_file_bytes: Annotated[
        int,
        Field(validation_alias="INGEST_MAX_FILE_BYTES", ge=1, description="The largest file taken in as a job."),
    ] = 1024 * 1024 * 1024
    ingest_max_file_rows: Annotated[
        int,
        Field(validation_alias="INGEST_MAX_FILE_ROWS", ge=1, le=2_000_000_000, description="The most rows of a table."),
    ] = 5_000_000
    ingest_max_columns: Annotated[
        int, Field(validation_alias="INGEST_MAX_COLUMNS", ge=1, le=16_384, description="The most columns of a table.")
    ] = 500
    ingest_max_cell_characters: Annotated[
        int,
        Field(
            validation_alias="INGEST_MAX_CELL_CHARACTERS",
            ge=1,
            le=1_000_000,
            description="The longest cell of a table; a row with a longer one ends in an error.",
        ),
    ] = 32_767
    ingest_max_decompressed_bytes: Annotated[
        int,
        Field(
            validation_alias="INGEST_MAX_DECOMPRESSED_BYTES",
            ge=1,
            description="The most bytes an uploaded XLSX or ZIP may unfold to.",
        ),
    ] = 2 * 1024**3
    ingest_roots: Annotated[
        Folders,
        Field(
            validation_alias="PENSTOCK_INGEST_ROOTS",
            description="Folders below which files may be taken in by path, separated by ':'; none unless set.",
        ),
    ] = ()
    ingest_settle_seconds: Annotated[
        float,
        Field(
            validation_alias="PENSTOCK_INGEST_SETTLE_SECONDS",
            ge=0,
            description="A file that changed less long ago than this may still be written to, and is left alone.",
        ),
    ] = 2.0
    db_ingest_enabled: Annotated[
        bool,
        Field(
            validation_alias="DB_INGEST_ENABLED",
            description="Whether uploads are taken in; without, everything else goes on.",
        ),
    ] = True
    pending_dashboard_enabled: Annotated[
        bool,
        Field(
            validation_alias="PENDING_DASHBOARD_ENABLED",
            description="Whether there is a list of what waits in all jobs, besides that of each job.",
        ),
    ] = False
    slow_query_ms: Annotated[
        float,
        Field(
            validation_alias="PENSTOCK_SLOW_QUERY_MS", gt=0, description="Pages that take longer than this are logged."
        ),
    ] = 500.0
    heartbeat_seconds: Annotated[
        float,
        Field(
            validation_alias="PENSTOCK_HEARTBEAT_SECONDS",
            gt=0,
            description="How often a worker extends its leases and learns of stopped jobs.",
        ),
    ] = 1.0
    flush_ms: Annotated[
        int,
        Field(
            validation_alias="PENSTOCK_FLUSH_MS",
            ge=1,
            description="The longest a finished item waits in a worker before its outcome is written.",
        ),
    ] = 500
    poll_seconds: Annotated[
        float,
        Field(
            validation_alias="PENSTOCK_POLL_SECONDS",
            gt=0,
            description="How often an idle worker looks for work nobody told it of.",
        ),
    ] = 5.0
    sweep_seconds: Annotated[
        float,
        Field(
            validation_alias="PENSTOCK_SWEEP_SECONDS",
            gt=0,
            description="How often a worker makes a maintenance pass.",
        ),
    ] = 5.0
    stop_grace_seconds: Annotated[
        float,
        Field(
            validation_alias="PENSTOCK_STOP_GRACE_SECONDS",
            ge=0,
            description="How long running handlers may go on after SIGTERM before they are stopped and handed back.",
        ),
    ] = 25.0
    timeout_grace_seconds: Annotated[
        float,
        Field(
            validation_alias="PENSTOCK_TIMEOUT_GRACE_SECONDS",
            gt=0,
            description=(
                "How long after its kind's timeout an item that did not end is waited for before the watchdog ends it; "
                "also how long a kind's classify may take."
            ),
        ),
    ] = 10.0
    most_abandoned_threads: Annotated[
        int,
        Field(
            validation_alias="PENSTOCK_MOST_ABANDONED_THREADS",
            ge=0,
            description="How many threads of a kind that were given up may still run before none is replaced any more.",
        ),
    ] = 64
    suspect_deaths: Annotated[
        int,
        Field(
            validation_alias="PENSTOCK_SUSPECT_DEATHS",
            ge=1,
            description="An item held in so many deaths of workers is a suspect: it is run alone before it is blamed.",
        ),
    ] = 5
    stale_minutes: Annotated[
        float,
        Field(
            validation_alias="PENSTOCK_STALE_MINUTES",
            gt=0,
            description="A running job without a sign of life for this long is looked into and put right.",
        ),
    ] = 15.0
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
    jwt_secret: Annotated[
        SecretStr | None,
        Field(
            validation_alias="PENSTOCK_JWT_SECRET",
            min_length=32,
            description="Signs and checks tokens (HS256). Without it, one is made and kept beside the SQLite file.",
        ),
    ] = None
    jwks_url: Annotated[
        str | None,
        Field(
            validation_alias="PENSTOCK_JWKS_URL",
            description="Where your identity provider publishes its keys; tokens are then RS256 or ES256, not ours.",
        ),
    ] = None
    jwt_issuer: Annotated[
        str | None, Field(validation_alias="PENSTOCK_JWT_ISSUER", description="The only issuer whose tokens are good.")
    ] = None
    jwt_audience: Annotated[
        str | None,
        Field(validation_alias="PENSTOCK_JWT_AUDIENCE", description="The audience a token must be made for."),
    ] = None
    admin_claim: Annotated[
        str,
        Field(
            validation_alias="PENSTOCK_ADMIN_CLAIM",
            min_length=1,
            description="The claim that makes a token an admin's, when it is true.",
        ),
    ] = "admin"
    system_claim: Annotated[
        str,
        Field(
            validation_alias="PENSTOCK_SYSTEM_CLAIM",
            min_length=1,
            description="The claim that makes a token one of an operator's program, when it is true: it may what an "
            "admin may, and a job that it stops was killed by `system`.",
        ),
    ] = "system"
    submissions_per_minute: Annotated[
        int,
        Field(
            validation_alias="PENSTOCK_SUBMISSIONS_PER_MINUTE",
            ge=1,
            description="How many jobs one user may submit over HTTP in a minute.",
        ),
    ] = 600
    guest_requests_per_minute: Annotated[
        int,
        Field(
            validation_alias="PENSTOCK_GUEST_REQUESTS_PER_MINUTE",
            ge=1,
            description="How many requests one address may make in a minute without a token.",
        ),
    ] = 60
    max_body_bytes: Annotated[
        int,
        Field(
            validation_alias="PENSTOCK_MAX_BODY_BYTES",
            ge=1024,
            description="The largest request body the server takes.",
        ),
    ] = 1024 * 1024 * 1024
    log_level: Annotated[
        str,
        Field(
            validation_alias="PENSTOCK_LOG_LEVEL",
            pattern="(?i)^(DEBUG|INFO|WARNING|ERROR)$",
            description="The least serious log lines shown: DEBUG, INFO, WARNING or ERROR.",
        ),
    ] = "INFO"


@dataclass(frozen=True, slots=True)
class SettingShown:
    """One line of ``penstock config``."""

    variable: str
    value: str
    source: str
    meaning: str


def read_settings(settings: type[AnySettings], **overrides: Any) -> AnySettings:
    """Settings from the environment, of the engine or of an application, checked one by one; ``overrides`` win."""
    try:
        return settings(**overrides)
    except ValidationError as error:
        lines = [_describe_problem(settings, problem) for problem in error.errors()]
        raise ConfigurationError("the settings are wrong: " + "; ".join(lines)) from error


def _describe_problem(settings: type[BaseSettings], problem: Any) -> str:
    """Which variable is wrong, and how; a secret is not repeated."""
    place = ".".join(map(str, problem["loc"]))
    message = str(problem["msg"]).removeprefix("Value error, ")
    fields = {str(field.validation_alias): field for field in settings.model_fields.values()}
    field = settings.model_fields.get(place) or fields.get(place)
    if field is None:
        return message
    is_secret = "SecretStr" in str(field.annotation)
    value_text = "" if is_secret or repr(problem["input"]) in message else f" (got {problem['input']!r})"
    return f"{field.validation_alias}: {message}{value_text}"


def load_settings(**overrides: object) -> Settings:
    """The settings from the environment, checked; ``overrides`` win."""
    settings = read_settings(Settings, **overrides)
    if settings.claim_min > settings.claim_max:
        raise ConfigurationError(f"CLAIM_MIN is {settings.claim_min}, above CLAIM_MAX, which is {settings.claim_max}")
    if settings.jwt_secret is not None and settings.jwks_url is not None:
        raise ConfigurationError("PENSTOCK_JWT_SECRET and PENSTOCK_JWKS_URL are both set; tokens come from one of them")
    if settings.ingest_min_rows > settings.ingest_max_rows:
        raise ConfigurationError(
            f"INGEST_MIN_ROWS is {settings.ingest_min_rows}, above INGEST_MAX_ROWS, which is {settings.ingest_max_rows}"
        )
    if settings.db_p50_ms >= settings.db_p95_ms:
        raise ConfigurationError(
            f"DB_P50_MS is {settings.db_p50_ms:g}, not below DB_P95_MS, which is {settings.db_p95_ms:g}"
        )
    if settings.lock_floor_ms > settings.lock_cap_ms:
        raise ConfigurationError(
            f"LOCK_FLOOR_MS is {settings.lock_floor_ms}, above LOCK_CAP_MS, which is {settings.lock_cap_ms}"
        )
    return settings


def show_settings(settings: BaseSettings) -> list[SettingShown]:
    """Each setting with its value, where it comes from and what it means; passwords are not shown."""
    shown_settings = []
    for name, field in type(settings).model_fields.items():
        variable, value = str(field.validation_alias), getattr(settings, name)
        if value == field.default:
            source = "default"
        else:
            source = "environment" if os.environ.get(variable) is not None else "program"
        text = _without_password(environment_text(field, value))
        shown_settings.append(SettingShown(variable, text, source, field.description or ""))
    return shown_settings


def environment_text(field: FieldInfo, value: Any) -> str:
    """A value of a setting as it would be written in the environment."""
    return next((mark.text(value) for mark in field.metadata if isinstance(mark, WrittenAs)), str(value))


def _without_password(value: str) -> str:
    scheme, separator, rest = value.partition("://")
    credentials, at, host = rest.rpartition("@")
    if not (separator and at and ":" in credentials):
        return value
    return f"{scheme}://{credentials.partition(':')[0]}:***@{host}"
