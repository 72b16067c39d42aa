"""How many live streams one user has open at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator

from penstock.http.auth import AService, SignedIn


async def one_more_stream(who: SignedIn, service: AService) -> AsyncIterator[None]:
    """A place for a stream until it ends; refused before the answer begins where the user has all of theirs."""
    with service.streams.take(who.user or ""):
        yield
