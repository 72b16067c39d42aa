"""Which hosts may be fetched from: those of the public internet, whatever their names say.

A name is resolved here, and the connection is made to the address that was looked at: a name that answers differently
the second time does not get around it. Every redirect is a new connection, and comes through here again.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable

import httpcore2

from penstock_apps.recipes.failures import PageFailure

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_NAT64 = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48"))
_6TO4_RELAYS = ipaddress.ip_network("192.88.99.0/24")


def is_public(address: Address) -> bool:
    """Does an address lead to the public internet, and not through a tunnel to somewhere else?

    >>> is_public(ipaddress.ip_address("93.184.216.34")), is_public(ipaddress.ip_address("::ffff:127.0.0.1"))
    (True, False)
    """
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if inner is not None:
            return address.ipv4_mapped is not None and is_public(inner)
        if any(address in network for network in _NAT64):
            return False
    elif address in _6TO4_RELAYS:
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


class PublicHosts(httpcore2.SyncBackend):
    """Connects to public addresses alone; ``allowed_hosts`` names others, as ``host`` or ``host:port``."""

    def __init__(self, allowed_hosts: Iterable[str] = ()) -> None:
        super().__init__()
        self._allowed_hosts = frozenset(host.lower() for host in allowed_hosts)

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.NetworkStream:
        """Connect to an address that was looked at, not to a name."""
        last: Exception | None = None
        for address in self._addresses(host, port):
            try:
                return super().connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                last = error
        assert last is not None
        raise last

    def _addresses(self, host: str, port: int) -> list[str]:
        try:
            infos = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
        except socket.gaierror as error:
            if error.errno == socket.EAI_AGAIN:
                raise PageFailure.FAILED.error(f"the name {host} cannot be looked up just now") from error
            raise PageFailure.HOST_UNKNOWN.error(host) from error
        except UnicodeError as error:
            raise PageFailure.HOST_UNKNOWN.error(host) from error
        addresses = list(dict.fromkeys(str(info[4][0]) for info in infos))
        is_trusted = not self._allowed_hosts.isdisjoint({host.lower(), f"{host.lower()}:{port}"})
        # A single one that is not public is enough: a name that answers with both hopes to be tried until it works.
        if not is_trusted and not all(
            is_public(ipaddress.ip_address(address.partition("%")[0])) for address in addresses
        ):
            raise PageFailure.HOST_REFUSED.error(host)
        return addresses
