"""Who may read what is no user's: the figures at ``/metrics``, and the reference at ``/docs`` and ``/openapi.json``.

Figures name kinds, users' load and the database's troubles: they are for this machine, or for the networks that
PENSTOCK_METRICS_NETWORKS lists, and for admins. What a proxy hands on comes from elsewhere, whatever address the proxy
has: such a request counts as near only where PENSTOCK_TRUSTED_PROXIES says whose word is taken for the address.
"""

from __future__ import annotations

import ipaddress

from fastapi import Request
from starlette.exceptions import HTTPException

from penstock.errors import NotAllowed
from penstock.http.auth import AService, Credentials, signed_in
from penstock.http.service import Service
from penstock.settings.types import Network

_OF_PROXIES = ("x-forwarded-for", "forwarded", "x-real-ip", "via")


async def may_read_metrics(request: Request, credentials: Credentials, service: AService) -> None:
    """Somebody near, or an admin."""
    if _is_near(request, service):
        return
    who = await signed_in(request, credentials, service)
    if not who.admin:
        raise NotAllowed("figures are for admins, and for PENSTOCK_METRICS_NETWORKS", code="ADMINS_ONLY")


async def may_read_reference(request: Request, credentials: Credentials, service: AService) -> None:
    """Whom PENSTOCK_REFERENCE_ACCESS names."""
    access = service.app.settings.reference_access
    if access == "nobody":
        raise HTTPException(404)
    if access == "users":
        await signed_in(request, credentials, service)


def _is_near(request: Request, service: Service) -> bool:
    settings = service.app.settings
    if request.client is None:
        return False
    if not settings.trusted_proxies and any(name in request.headers for name in _OF_PROXIES):
        return False
    return is_within(request.client.host, settings.metrics_networks)


def is_within(host: str, networks: tuple[Network, ...]) -> bool:
    """Is the address of a client in one of these networks?"""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    ipv4 = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return any((ipv4 or address) in network for network in networks)
