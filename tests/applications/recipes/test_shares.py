"""Every site, every user and every guest has a share of the places; what does not fit waits, and costs no try."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from penstock.errors import Postponed
from penstock_apps.recipes.fetch_shares import (
    OF_A_GUEST,
    OF_A_HOST,
    OF_A_USER,
    OF_GUESTS,
    PLACES,
    FetchShares,
    is_guests_share,
    share_of,
)


class Clock:
    """A clock that the test holds."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def take(shares: FetchShares, stack: ExitStack, share: str, count: int, host: str = "") -> int:
    """How many of so many pages got a place."""
    placed = 0
    for number in range(count):
        try:
            stack.enter_context(shares.take_place(share, host or f"{share}-{number}.example"))
        except Postponed:
            continue
        placed += 1
    return placed


def test_nobody_has_all_places() -> None:
    shares, user = FetchShares(Clock()), share_of("ada", None)
    with ExitStack() as stack:
        assert take(shares, stack, user, 50) == OF_A_USER
        assert take(shares, stack, share_of("bob", None), 50) == OF_A_USER
        assert take(shares, stack, share_of(None, "192.0.2.1"), 50) == OF_A_GUEST
        guests = [share_of(None, f"192.0.2.{number}") for number in range(2, 40)]
        assert sum(take(shares, stack, guest, 50) for guest in guests) == OF_GUESTS - OF_A_GUEST
        assert take(shares, stack, share_of("cleo", None), 50) == OF_A_USER, "guests leave places to users"
    assert OF_A_USER < PLACES > OF_GUESTS > OF_A_GUEST
    with ExitStack() as stack:
        assert take(shares, stack, user, 50) == OF_A_USER, "what was given back is free"


def test_a_host_holds_back_only_itself() -> None:
    shares = FetchShares(Clock())
    with ExitStack() as stack:
        placed = sum(take(shares, stack, share_of(user, None), 5, "slow.example") for user in ("ada", "bob", "cleo"))
        assert placed == OF_A_HOST
        assert take(shares, stack, share_of("ada", None), 1, "quick.example") == 1


def test_pictures_share_the_processes_that_read_them() -> None:
    shares = FetchShares(Clock())
    with shares.take_place(share_of("ada", None), None, pictures=1):
        with pytest.raises(Postponed) as put_off, shares.take_place(share_of("bob", None), None, pictures=1):
            pass
        assert (put_off.value.code, put_off.value.retry_after) == ("PICTURES_IN_LINE", 1.0)
        with shares.take_place(share_of("bob", None), "quick.example"):
            pass  # pages do not wait behind pictures
    with shares.take_place(share_of("bob", None), None, pictures=1):
        pass


def test_who_waits_comes_back_one_after_the_other() -> None:
    clock = Clock()
    shares, share = FetchShares(clock), share_of("ada", None)
    waits: list[float] = []
    with ExitStack() as stack:
        take(shares, stack, share, OF_A_USER)
        for _ in range(1_000):
            with pytest.raises(Postponed) as put_off, shares.take_place(share, "a.example"):
                pass
            waits.append(put_off.value.retry_after)
            assert put_off.value.code == "SHARE_IN_USE"
        assert waits == sorted(waits)
        assert 0.0 < waits[0] < 1.0
        assert waits[-1] == 15.0
        clock.now += 60.0
    with shares.take_place(share, "a.example"):
        pass
    assert not shares._shares, "nobody is remembered for ever"


def test_a_share_names_nobody() -> None:
    assert "ada" not in share_of("ada", "192.0.2.1")
    assert share_of("ada", "192.0.2.1") == share_of("ada", None) != share_of("bob", None)
    assert share_of(None, "2001:db8::1") == share_of(None, "2001:db8::ffff") != share_of(None, "2001:db8:0:1::1")
    groups = {share_of(None, f"10.{high}.{low}.1") for high in range(64) for low in range(256)}
    assert all(map(is_guests_share, groups))
    assert len(groups) < 16_384, "several addresses are one group, so none can be found out"
    assert share_of(None, None) == share_of(None, "")
    assert share_of(None, "testclient") != share_of(None, None)
