"""Limits of fetching a page, apart from the code that fetches, which takes a while to load."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """How long, how large and how far away a page may be."""

    seconds: float = 20.0
    bytes: int = 5 * 1024**2
    redirects: int = 5
    allowed_hosts: tuple[str, ...] = ()
