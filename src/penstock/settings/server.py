"""Who is let in over HTTP, and what pages show."""

from __future__ import annotations

from ipaddress import ip_network
from typing import Annotated

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings

from penstock.settings.types import Names, Networks


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
            pattern="^https?://[^/]",
            description="The http or https address where your identity provider publishes its keys; tokens are then "
            "RS256 or ES256, not ours.",
        ),
    ] = None
    jwt_issuer: Annotated[
        str | None, Field(validation_alias="PENSTOCK_JWT_ISSUER", description="The only issuer whose tokens are good.")
    ] = None
    jwt_audience: Annotated[
        str | None,
        Field(validation_alias="PENSTOCK_JWT_AUDIENCE", description="The audience a token must be made for."),
    ] = None
    jwt_any_audience: Annotated[
        bool,
        Field(
            validation_alias="PENSTOCK_JWT_ANY_AUDIENCE",
            description="Whether tokens that the identity provider made for other applications are good here, too.",
        ),
    ] = False
    user_claim: Annotated[
        str,
        Field(
            validation_alias="PENSTOCK_USER_CLAIM",
            min_length=1,
            description="The claim of a token that names its user; one that users cannot choose themselves.",
        ),
    ] = "sub"
    admin_claim: Annotated[
        str,
        Field(
            validation_alias="PENSTOCK_ADMIN_CLAIM",
            pattern="^[^=]+(=.+)?$",
            description="The claim that makes a token an admin's: NAME when it is true, NAME=VALUE when it is this "
            "text or a list with it, such as roles=operator.",
        ),
    ] = "admin"
    system_claim: Annotated[
        str,
        Field(
            validation_alias="PENSTOCK_SYSTEM_CLAIM",
            pattern="^[^=]+(=.+)?$",
            description="The claim that makes a token one of an operator's program, in the same way: it may what an "
            "admin may, and a job that it stops was killed by `system`.",
        ),
    ] = "system"
    session_check_seconds: Annotated[
        float,
        Field(
            validation_alias="PENSTOCK_SESSION_CHECK_SECONDS",
            gt=0,
            le=3600,
            description="How often a server asks the database which sessions were ended: so late it may notice one.",
        ),
    ] = 5.0
    trusted_proxies: Annotated[
        Networks,
        Field(
            validation_alias="PENSTOCK_TRUSTED_PROXIES",
            description="Addresses and networks of proxies, separated by commas: what X-Forwarded-For and "
            "X-Forwarded-Proto of `penstock serve`'s requests say is believed from these alone.",
        ),
    ] = ()
    allowed_hosts: Annotated[
        Names,
        Field(
            validation_alias="PENSTOCK_ALLOWED_HOSTS",
            description="Names the server is reached by besides localhost, separated by commas; `.example.org` is all "
            "below it, `*` any. Unless set, `penstock serve` answers to addresses in digits where others can reach it.",
        ),
    ] = ()
    metrics_networks: Annotated[
        Networks,
        Field(
            validation_alias="PENSTOCK_METRICS_NETWORKS",
            description="From where /metrics is read without a token, separated by commas; `*` is everywhere. "
            "From elsewhere it takes an admin's token.",
        ),
    ] = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
    reference_access: Annotated[
        str,
        Field(
            validation_alias="PENSTOCK_REFERENCE_ACCESS",
            pattern="^(everybody|users|nobody)$",
            description="Who may read the API's reference, /docs and /openapi.json: everybody, users or nobody.",
        ),
    ] = "everybody"
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
