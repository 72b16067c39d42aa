"""Who may have pages read now: every site, every user and every guest has a share of the places, and no more.

A worker reads some tens of pages at once, and nearly all of that time is spent waiting for sites. One that is slow, or
somebody who asks for many slow ones, would have all places in the end. So a page whose share is in use goes back to the
queue without a try, for about as long as those before it take, and the place it would have had is for somebody else.
"""

from __future__ import annotations

import hashlib
import ipaddress
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from penstock_apps.recipes.failures import PageFailure
from penstock_apps.recipes.photos.failures import PictureFailure

PLACES = 32
"""Pages that one worker reads at once."""
OF_GUESTS = 16
"""All guests together: the other places are for people who are signed in."""
OF_A_USER = 8
OF_A_GUEST = 4
OF_A_HOST = 4
_GUEST = "guest-"
_GUEST_BITS = 16
_SHORTEST_WAIT = 0.25
_LONGEST_WAIT = 15.0
_FIRST_SECONDS = 1.0
_MEMORY = 0.2


def share_of(user: str | None, ip_address: str | None) -> str:
    """Whose share a page counts to. It names nobody: guests of an address are one of some thousands of groups."""
    if user is not None:
        return f"user-{hashlib.sha256(user.encode()).hexdigest()[:16]}"
    digest = hashlib.sha256(_network(ip_address or "").encode()).digest()
    return f"{_GUEST}{int.from_bytes(digest[: _GUEST_BITS // 8]):04x}"


def is_guests_share(share: str) -> bool:
    """Is it one of those that guests have?"""
    return share.startswith(_GUEST)


def _network(ip_address: str) -> str:
    """Of IPv6 the half that a household or a machine is given: the other one is theirs to choose."""
    try:
        address = ipaddress.ip_address(ip_address.partition("%")[0])
    except ValueError:
        return ip_address
    if address.version == 6:
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)


@dataclass(slots=True)
class _Share:
    """The places one of them has, how long each is held, and when those who were sent away come back."""

    size: int
    failure: PageFailure | PictureFailure
    in_use: int = 0
    seconds: float = _FIRST_SECONDS
    returns: deque[float] = field(default_factory=deque)

    def wait(self, now: float) -> float:
        """How long one more has to wait, behind those who wait already; they come back one by one."""
        while self.returns and self.returns[0] <= now:
            self.returns.popleft()
        ahead = (len(self.returns) + 1) / self.size * self.seconds
        wait = min(max(ahead, _SHORTEST_WAIT), _LONGEST_WAIT)
        self.returns.append(max(now + wait, self.returns[-1] if self.returns else 0.0))
        return wait

    def give_back(self, seconds: float) -> None:
        self.in_use -= 1
        self.seconds += _MEMORY * (seconds - self.seconds)

    def is_idle(self, now: float) -> bool:
        return not self.in_use and (not self.returns or self.returns[-1] <= now)


class FetchShares:
    """The places of one worker's process; it is asked from event loops, so nobody waits here."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._shares: dict[str, _Share] = {}

    @contextmanager
    def take_place(self, share: str, host: str | None, *, pictures: int | None = None) -> Iterator[None]:
        """A place for one page, for the length of a ``with`` block; ``Postponed`` where its share is in use.

        Photos of recipes share as many places as there are processes for ``pictures``.
        """
        with self._lock:
            begun_at = self._now()
            shares = self._shares_of(share, host, pictures)
            for candidate in shares:
                if candidate.in_use >= candidate.size:
                    raise candidate.failure.postponement(candidate.wait(begun_at))
            for candidate in shares:
                candidate.in_use += 1
        try:
            yield
        finally:
            with self._lock:
                now = self._now()
                for candidate in shares:
                    candidate.give_back(now - begun_at)
                self._shares = {name: each for name, each in self._shares.items() if not each.is_idle(now)}

    def _shares_of(self, share: str, host: str | None, pictures: int | None) -> list[_Share]:
        is_guest = is_guests_share(share)
        shares: list[tuple[str, int, PageFailure | PictureFailure]] = [
            (share, OF_A_GUEST if is_guest else OF_A_USER, PageFailure.SHARE_IN_USE)
        ]
        if is_guest:
            shares.append(("guests", OF_GUESTS, PageFailure.SHARE_IN_USE))
        if host:
            shares.append((f"host {host}", OF_A_HOST, PageFailure.HOST_IN_USE))
        if pictures:
            shares.append(("pictures", pictures, PictureFailure.IN_LINE))
        return [self._shares.setdefault(name, _Share(size, failure)) for name, size, failure in shares]
