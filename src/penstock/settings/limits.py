"""How much one client may take of the server: bodies, heads, time, connections, and how often."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from pydantic_settings import BaseSettings


class LimitSettings(BaseSettings):
    """How much one client may take of the server."""

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
            description="How many requests for work one address may make in a minute without a token.",
        ),
    ] = 60
    guest_reads_per_minute: Annotated[
        int,
        Field(
            validation_alias="PENSTOCK_GUEST_READS_PER_MINUTE",
            ge=1,
            description="How often one address may look how a request stands in a minute, without a token.",
        ),
    ] = 1200
    streams_per_user: Annotated[
        int,
        Field(
            validation_alias="PENSTOCK_STREAMS_PER_USER",
            ge=1,
            description="How many live streams one user may have open.",
        ),
    ] = 32
    max_body_bytes: Annotated[
        int,
        Field(
            validation_alias="PENSTOCK_MAX_BODY_BYTES",
            ge=1024,
            description="The largest request body with files that the server takes.",
        ),
    ] = 1024 * 1024 * 1024
    max_json_bytes: Annotated[
        int,
        Field(
            validation_alias="PENSTOCK_MAX_JSON_BYTES",
            ge=1024,
            description="The largest request body of other addresses, unless one says otherwise.",
        ),
    ] = 1024 * 1024
    body_memory_bytes: Annotated[
        int,
        Field(
            validation_alias="PENSTOCK_BODY_MEMORY_BYTES",
            ge=1024 * 1024,
            description="The most bytes of bodies held in memory at a time; one caller may hold a quarter of it.",
        ),
    ] = 64 * 1024 * 1024
    max_head_bytes: Annotated[
        int,
        Field(
            validation_alias="PENSTOCK_MAX_HEAD_BYTES",
            ge=4096,
            description="The largest head of a request: its first line and its headers.",
        ),
    ] = 32 * 1024
    head_seconds: Annotated[
        float,
        Field(
            validation_alias="PENSTOCK_HEAD_SECONDS",
            gt=0,
            description="How long the head of a request may take to come.",
        ),
    ] = 10.0
    stall_seconds: Annotated[
        float,
        Field(
            validation_alias="PENSTOCK_STALL_SECONDS",
            gt=0,
            description="How long a client may take for the next 16 KiB of a body, or read nothing of an answer.",
        ),
    ] = 30.0
    max_connections: Annotated[
        int,
        Field(
            validation_alias="PENSTOCK_MAX_CONNECTIONS",
            ge=1,
            description="How many connections the server keeps open.",
        ),
    ] = 500
    connections_per_address: Annotated[
        int,
        Field(
            validation_alias="PENSTOCK_CONNECTIONS_PER_ADDRESS",
            ge=1,
            description="How many of them one address may have; this machine's and trusted proxies' are not counted.",
        ),
    ] = 100
