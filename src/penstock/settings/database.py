"""Where jobs are kept, and how the database is spoken to."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from pydantic_settings import BaseSettings


class DatabaseSettings(BaseSettings):
    """Where jobs are kept, and how the database is spoken to."""

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
            pattern=r"^postgres(ql(\+psycopg)?)?://",
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
