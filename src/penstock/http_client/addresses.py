"""Which addresses are of the public internet: plain global unicast, and nothing that leads elsewhere.

An IPv6 address is refused unless it is in the one block that global unicast comes from. Both families lose what the
IANA keeps for a purpose, also where it says that such addresses are reachable from everywhere: nobody has a page there,
and a tunnel or a translator ends somewhere that cannot be looked at. The lists are ours because those of
:mod:`ipaddress` differ from one version of Python to the next.
"""

from __future__ import annotations

import ipaddress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")
_SPECIAL = tuple(
    ipaddress.ip_network(network)
    for network in (
        # IANA IPv4 Special-Purpose Address Registry
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private use
        "100.64.0.0/10",  # shared by carriers' customers
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link local, and where clouds keep their metadata
        "172.16.0.0/12",  # private use
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # multicast tunnels (AMT)
        "192.88.99.0/24",  # relays of 6to4
        "192.168.0.0/16",  # private use
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
        # In no registry: the address at which Azure answers its own machines.
        "168.63.129.16/32",
        # IANA IPv6 Special-Purpose Address Registry, as far as it is inside of global unicast
        "2001::/23",  # protocol assignments: Teredo, ORCHID, benchmarks and others
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4
        "2620:4f:8000::/48",  # AS112
        "3ffe::/16",  # what the 6bone had
        "3fff::/20",  # documentation
    )
)


def is_public(address: Address) -> bool:
    """Is an address one of a host on the public internet?

    >>> is_public(ipaddress.ip_address("93.184.216.34")), is_public(ipaddress.ip_address("::ffff:93.184.216.34"))
    (True, False)
    """
    if address.version == 6 and address not in _GLOBAL_UNICAST:
        return False
    return not any(address.version == network.version and address in network for network in _SPECIAL)
