"""What fetching a page may take: apart from how it is done, which takes a while to load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.lifecycle import seconds, size_in_bytes


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """What a page may take."""

    seconds: float = 20.0
    bytes: int = 5 * 1024**2
    redirects: int = 5
    allowed_hosts: tuple[str, ...] = ()


def limits_from(environment: Mapping[str, str]) -> FetchLimits:
    """Read ``PENSTOCK_FETCH_TIMEOUT``, ``_MAX_BYTES`` and ``_ALLOW_HOSTS``."""
    defaults = FetchLimits()
    hosts = environment.get("PENSTOCK_FETCH_ALLOW_HOSTS", "")
    return FetchLimits(
        seconds=seconds(environment.get("PENSTOCK_FETCH_TIMEOUT", f"{defaults.seconds}s")),
        bytes=size_in_bytes(environment.get("PENSTOCK_FETCH_MAX_BYTES", f"{defaults.bytes}B")),
        allowed_hosts=tuple(one.strip() for one in hosts.split(",") if one.strip()),
    )
