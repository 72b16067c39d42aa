"""Event streams end with the session that opened them: what happens later is not for whoever has its address."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, Request

from penstock.errors import NotAllowed, NotSignedIn, StoreUnavailable
from penstock.http.auth import AService, SignedIn
from penstock.http.service import Service
from penstock.http.tokens import Identity

_LEAST_SECONDS = 0.25


class StreamAccess:
    """Whether somebody may go on listening, asked before each event: anew every few seconds at most."""

    def __init__(
        self, request: Request, who: Identity, service: Service, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.who = who
        self._request = request
        self._authentication = service.authentication
        self._every = service.app.settings.session_check_seconds
        self._now = now
        self._due = now() + self._every

    @property
    def seconds_to_check(self) -> float:
        """In how many seconds it has to be asked again, also when nothing happens: a stream ends with its token."""
        seconds = self._due - self._now()
        if self.who.expires_at is not None:
            seconds = min(seconds, self.who.expires_at - time.time())
        return max(seconds, _LEAST_SECONDS)

    async def holds(self) -> bool:
        """Would the request that opened the stream still be let in, as the same person with the same rights?"""
        if self.who.expires_at is not None and time.time() >= self.who.expires_at:
            return False
        if self._now() < self._due:
            return True
        try:
            again = await self._authentication.identify(self._request)
        except (NotSignedIn, NotAllowed):
            return False
        except StoreUnavailable:
            return True  # nothing new is known; it is asked again soon
        self._due = self._now() + self._every
        return again == self.who


async def listening(request: Request, who: SignedIn, service: AService) -> StreamAccess:
    """A user who follows something."""
    return StreamAccess(request, who, service)


Listening = Annotated[StreamAccess, Depends(listening)]
