"""Slow sites, and one guest's many pages: everybody else's pages go on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler

import pytest

from penstock import JobState
from penstock_apps.recipes.fetch_shares import OF_A_GUEST, OF_A_HOST, PLACES
from penstock_apps.recipes.settings import RecipeSettings
from tests.applications.recipes.conftest import Kitchen
from tests.applications.recipes.pages import SOUP, script
from tests.applications.recipes.site import Site, open_site
from tests.http.conftest import on_sqlite
from tests.waiting import eventually

PATIENCE = 60.0


@dataclass
class SlowSites:
    """Sites with pages that do not come until somebody lets them."""

    sites: list[Site]
    over: threading.Event

    @property
    def asked_count(self) -> int:
        """How many pages were asked for."""
        return sum(sum(slow.asked.values()) for slow in self.sites)


@pytest.fixture
def slow(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowSites]:
    """Three of them, which may be fetched from."""
    over = threading.Event()

    def hang(_: BaseHTTPRequestHandler) -> None:
        over.wait(PATIENCE)

    with ExitStack() as stack:
        sites = [stack.enter_context(open_site()) for _ in range(3)]
        for one in sites:
            one.pages.update({f"/{number}": hang for number in range(PLACES)})
        hosts = ",".join(one.host for one in (site, *sites))
        monkeypatch.setenv("PENSTOCK_FETCH_ALLOW_HOSTS", hosts)
        yield SlowSites(sites, over)


@pytest.fixture
def recipe_settings(slow: SlowSites) -> RecipeSettings:
    """What the environment says, once the slow sites are in it."""
    return RecipeSettings()


@pytest.fixture
def kitchen(kitchen: Kitchen, slow: SlowSites) -> Iterator[Kitchen]:
    """The usual one; pages that hang are let go before its worker stops."""
    yield kitchen
    slow.over.set()


@on_sqlite
def test_a_good_page_does_not_wait_behind_slow_ones(kitchen: Kitchen, slow: SlowSites) -> None:
    """One host has its places and no more, whoever asks; a page of another is there at once."""
    for number in range(PLACES):
        kitchen.recipes.ask(slow.sites[0].url(f"/{number}"), user=f"user {number}")
    eventually(lambda: slow.asked_count == OF_A_HOST, PATIENCE)
    kitchen.site.page("/soup", script(SOUP))
    job = kitchen.recipes.ask(kitchen.site.url("/soup"), user="ada").job
    assert kitchen.app.jobs.wait(job.id, timeout=PATIENCE).state is JobState.SUCCEEDED
    assert slow.asked_count == OF_A_HOST, "none of the slow ones has ended meanwhile, and no other was asked for"


@on_sqlite
def test_a_guest_s_slow_pages_hold_back_that_guest_alone(kitchen: Kitchen, slow: SlowSites) -> None:
    """Pages of many hosts by one guest; a page that another guest asks for is there at once."""
    for number in range(PLACES // 3):
        for one in slow.sites:
            kitchen.recipes.ask(one.url(f"/{number}"), user=None, ip_address="192.0.2.1")
    eventually(lambda: slow.asked_count == OF_A_GUEST, PATIENCE)
    kitchen.site.page("/soup", script(SOUP))
    job = kitchen.recipes.ask(kitchen.site.url("/soup"), user=None, ip_address="192.0.2.7").job
    assert kitchen.app.jobs.wait(job.id, timeout=PATIENCE).state is JobState.SUCCEEDED
    assert slow.asked_count == OF_A_GUEST


@on_sqlite
def test_pages_that_are_canceled_leave_their_places_to_others(kitchen: Kitchen, slow: SlowSites) -> None:
    site = slow.sites[0]
    jobs = [kitchen.recipes.ask(site.url(f"/{number}"), user="ada").job.id for number in range(OF_A_HOST + 4)]
    eventually(lambda: slow.asked_count == OF_A_HOST, PATIENCE)
    for job in jobs:
        kitchen.app.jobs.cancel(job)
    assert {kitchen.app.jobs.wait(job, timeout=PATIENCE).state for job in jobs} == {JobState.CANCELED}
    site.page("/soup", script(SOUP))
    soup = kitchen.recipes.ask(site.url("/soup"), user="ada").job
    assert kitchen.app.jobs.wait(soup.id, timeout=PATIENCE).state is JobState.SUCCEEDED
