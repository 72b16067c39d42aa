"""Which addresses are public: plain global unicast, and nothing that the IANA keeps for a purpose."""

from __future__ import annotations

import ipaddress

import pytest

from penstock.http_client import is_public

PUBLIC = [
    "1.1.1.1", "8.8.8.8", "93.184.216.34", "168.63.129.15", "168.63.129.17", "100.63.255.255", "100.128.0.0",
    "172.15.255.255", "172.32.0.0", "192.0.1.0", "198.17.255.255", "198.20.0.0", "223.255.255.255",
    "2001:200::1", "2001:4860:4860::8888", "2003::1", "2606:2800:220:1:248:1893:25c8:1946", "2a00:1450::1",
    "3fff:1000::1",
]  # fmt: skip
REFUSED = [
    # IPv4, first and last of each network of the special-purpose registry
    "0.0.0.0", "0.255.255.255", "10.0.0.0", "10.255.255.255", "100.64.0.0", "100.127.255.255", "127.0.0.1",
    "127.255.255.255", "169.254.0.0", "169.254.169.254", "169.254.255.255", "172.16.0.0", "172.31.255.255",
    "192.0.0.0", "192.0.0.8", "192.0.0.9", "192.0.0.10", "192.0.0.170", "192.0.0.192", "192.0.0.255", "192.0.2.1",
    "192.31.196.1", "192.52.193.1", "192.88.99.1", "192.168.0.0", "192.168.255.255", "192.175.48.1", "198.18.0.0",
    "198.19.255.255", "198.51.100.1", "203.0.113.255", "224.0.0.1", "239.255.255.255", "240.0.0.1",
    "255.255.255.255",
    # what clouds answer their own machines at
    "168.63.129.16", "100.100.100.200", "fd00:ec2::254", "fd20:ce::254",
    # IPv6: what is not global unicast
    "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:93.184.216.34", "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1", "64:ff9b::5db8:d822", "64:ff9b:1::1", "100::1", "100:0:0:1::1", "fc00::1", "fdff::1",
    "fe80::1", "febf::1", "fec0::1", "feff::1", "ff02::1", "ff0e::1", "4000::1", "5f00::1", "8000::1",
    # IPv6: what is inside of it, and kept for a purpose
    "2001::1", "2001:0:7f00:1::", "2001:1::1", "2001:2::1", "2001:3::1", "2001:4:112::1", "2001:10::1",
    "2001:20::1", "2001:30::1", "2001:1ff:ffff::", "2001:db8::1", "2002:7f00:1::1", "2002:5db8:d822::1",
    "2620:4f:8000::1", "3ffe::1", "3fff::1", "3fff:fff:ffff::",
]  # fmt: skip


@pytest.mark.parametrize("address", PUBLIC)
def test_an_address_of_the_public_internet(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", REFUSED)
def test_an_address_that_leads_elsewhere(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


def test_what_python_knows_to_be_special_is_refused() -> None:
    """Both ends of each of its networks: a newer list than ours fails here."""
    networks = [
        *ipaddress._IPv4Constants._private_networks, *ipaddress._IPv6Constants._private_networks,  # type: ignore[attr-defined]
        ipaddress._IPv4Constants._multicast_network, ipaddress._IPv6Constants._multicast_network,  # type: ignore[attr-defined]
        ipaddress._IPv6Constants._sitelocal_network, *ipaddress._IPv6Constants._reserved_networks,  # type: ignore[attr-defined]
    ]  # fmt: skip
    for network in networks:
        for address in (network[0], network[-1]):
            assert not is_public(address), f"{address} of {network}"
