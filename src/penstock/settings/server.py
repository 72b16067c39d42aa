"""Who is let in over HTTP, and what pages show."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings


class ServerSettings(BaseSettings):
    """Who is let in over HTTP, and what pages show."""

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
