"""A large job on its page: counters that follow, by one connection and not by a request for each row."""

from __future__ import annotations

from collections import Counter
from urllib.parse import urlsplit

from playwright.sync_api import Request, expect

from tests.browser.conftest import PageOf
from tests.browser.served import WholeServer
from tests.sizes import size

ITEMS = size(20_000, 100_000)


def test_a_large_job_is_followed_by_one_connection(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    page = page_of(user)
    asked: Counter[str] = Counter()

    def count(request: Request) -> None:
        path = urlsplit(request.url).path
        if path.startswith("/api/"):
            asked[path.rpartition("/")[2]] += 1

    page.on("request", count)
    job = server.many(user, items=ITEMS)
    page.goto(f"/ui/jobs/{job}")
    waiting = page.locator(".counters dd").last
    expect(waiting).to_have_text(f"{ITEMS:,}", timeout=60_000)
    expect(page.locator("main .badge").first).to_have_text("Completed", timeout=100_000)
    expect(page.locator(".counters dd").first).to_have_text(f"{ITEMS:,}")
    assert asked["events"] == 1
    assert asked["items"] == 0, "nobody has opened the grid"
    assert sum(asked.values()) < 40, f"what goes out now and then is bounded by time, not by rows: {asked}"
    assert page.evaluate("() => document.querySelectorAll('*').length") < 2_000
