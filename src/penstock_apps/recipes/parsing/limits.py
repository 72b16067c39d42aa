"""What fetching a page may take: apart from how it is done, which takes a while to load."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """What a page may take."""

    seconds: float = 20.0
    bytes: int = 5 * 1024**2
    redirects: int = 5
    allowed_hosts: tuple[str, ...] = ()
