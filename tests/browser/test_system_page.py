"""The system page: what it says of workers, lanes, providers and the outbox, and what it says when it cannot."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Literal

import pytest
from playwright.sync_api import Page, Route, expect

from penstock.app import Schedule
from penstock.operations.schedules import declare
from tests.browser.accessibility import no_problems
from tests.browser.artifacts import screenshot
from tests.browser.conftest import PageOf
from tests.browser.served import WholeServer
from tests.browser.trouble import Trouble

ADMIN = "an-admin"
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
LONG_AGO = (NOON - timedelta(hours=3)).isoformat()
_REPORTED_MS = 45_000
"""Workers say what they hold every few seconds, which the server keeps for some more."""
CLICK = "<img src=x onerror=\"document.title='taken'\">"


def lane(kind: str, worker: str, **figures: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {
        "kind": kind, "worker": worker, "at": LONG_AGO, "claim_size": 64, "concurrency": 16, "ingest_rows": 4096,
        "lease_seconds": 30.0, "items_sec": 118.2, "rows_sec": 0.0, "error_rate": 0.0125, "not_found_rate": 0.05,
        "retry_rate": 0.0, "db_latency_ewma": 2.31, "pool_wait_ms": 0.1, "held": 12,
    }  # fmt: skip
    return usual | figures


def system(**changes: Any) -> dict[str, Any]:
    """An answer with something in every part."""
    worker = {"started_at": LONG_AGO, "kinds": ["csv", "recipe"]}
    seen, gone = (NOON + timedelta(seconds=80)).isoformat(), (NOON - timedelta(minutes=20)).isoformat()
    provider = {"kind": "csv", "worker": "mill:1", "throttle_rate": 0.0, "figures": {"delay_seconds": 0.001}}
    usual: dict[str, Any] = {
        "version": "9.8.7",
        "started_at": LONG_AGO,
        "database": {"dialect": "postgresql", "latency_ms": 1.84, "pool_wait_ms": 0.25},
        "queue_depth": {"csv": 1_234_567, "recipe": 3},
        "jobs": {"running": 2, "succeeded": 1400, "committed": 12, "failed": 7},
        "totals": {"items_sec": 1182.4, "error_rate": 0.0125, "not_found_rate": 0.05},
        "lanes": [lane("csv", "mill:1"), lane("recipe", "mill:1", items_sec=1.4, held=0, error_rate=None)],
        "workers": [
            {**worker, "name": "mill:2", "alive": False, "seen_at": gone, "held": {}},
            {**worker, "name": "mill:1", "alive": True, "seen_at": seen, "held": {"csv": 12, "recipe": 0}},
        ],
        "providers": [
            {**provider, "name": "calm-shop"},
            {**provider, "name": "busy-shop", "throttle_rate": 0.4, "figures": {"delay_seconds": 2.5}},
        ],
        "outbox": {
            "waiting": 42,
            "oldest_seconds": 75.0,
            "failing": 1,
            "last_error": "no broker",
            "unsubscribed": 17,
            "unsubscribed_seconds": 65.0,
        },
        "transport": {"name": "in-process", "reachable": None, "lag": {}, "last_error": None},
    }
    return usual | changes


def answers(page: Page, *bodies: dict[str, Any]) -> list[Route]:
    """One after the other, the last for ever, instead of the server's."""
    asked: list[Route] = []

    def answer(route: Route) -> None:
        asked.append(route)
        route.fulfill(json=bodies[min(len(asked), len(bodies)) - 1])

    page.route("**/api/system", answer)
    return asked


def figure(page: Page, name: str) -> Any:
    return page.locator("#figures > div").filter(has=page.get_by_text(name, exact=True))


def row(page: Page, table: str, name: str) -> Any:
    return page.get_by_role("table", name=table, exact=True).get_by_role("row").filter(has_text=name)


def test_others_are_told_that_it_is_for_administrators(server: WholeServer, page_of: PageOf, trouble: Trouble) -> None:
    page = page_of(server.somebody())
    trouble.expect("403")
    answer = page.goto("/ui/system")
    assert answer is not None
    assert answer.status == 403
    expect(page.get_by_role("heading", level=1)).to_have_text("That page is for administrators")
    expect(page.get_by_role("navigation").get_by_role("link", name="System")).to_have_count(0)


def test_it_shows_what_a_worker_holds(server: WholeServer, page_of: PageOf) -> None:
    held = server.hold(server.somebody(), items=3)
    page = page_of(ADMIN, admin=True)
    page.goto("/ui/system")
    expect(page.get_by_role("table", name="Workers")).to_contain_text("3 items of hold", timeout=_REPORTED_MS)
    expect(figure(page, "Workers alive")).to_contain_text("1 of 1")
    expect(page.get_by_text("Alive", exact=True)).to_be_visible()
    held.let_go()


def test_every_figure_is_there(page_of: PageOf) -> None:
    page = page_of(ADMIN, admin=True)
    answers(page, system())
    page.goto("/ui/system")
    expect(page.get_by_text("Version 9.8.7, postgresql")).to_be_visible()
    for name, words in {
        "Queue depth": "1,234,570",
        "Speed": "1,182 items/s",
        "Error rate": "1.3 %",
        "Not found": "5 %",
        "Workers alive": "1 of 2hold 12 items",
        "Database latency": "1.8 ms0.3 ms for a connection",
        "Outbox": "42 waitinglag 1 min 15 s",
    }.items():
        expect(figure(page, name)).to_contain_text(words)
    expect(row(page, "Workers", "mill:1")).to_contain_text("Alive12 items of csv")
    expect(row(page, "Workers", "mill:2")).to_contain_text("Gone")
    expect(row(page, "Worker queues", "csv").get_by_role("cell")).to_have_text(
        ["mill:1", "12", "118", "1.3 %", "5 %", "0 %", "16", "64", "4,096", "0", "30 s", "2.3 ms", re.compile("ago")]
    )
    expect(row(page, "Worker queues", "recipe")).to_contain_text("–")
    expect(row(page, "Queue", "csv")).to_contain_text("1,234,567")
    expect(row(page, "Jobs", "Completed")).to_contain_text("1,400")
    expect(row(page, "Jobs", "Committed")).to_contain_text("12")
    expect(row(page, "Providers", "calm-shop")).to_contain_text("Answers0 %1 ms")
    expect(row(page, "Providers", "busy-shop")).to_contain_text("Throttled40 %2.5 s")
    expect(page.locator("#outbox")).to_contain_text("1 min 15 s")
    expect(page.locator("#outbox")).to_contain_text("Without a subscriber17the oldest for 1 min 5 s")
    expect(page.locator("#outbox-error")).to_contain_text("no broker")
    expect(page.locator("#outbox")).not_to_contain_text("Broker")
    expect(page.get_by_role("figure")).to_have_count(4)
    expect(page.get_by_role("img", name=re.compile("^Queue depth: 1,234,570 items now"))).to_be_visible()


def test_rows_change_in_place(page_of: PageOf) -> None:
    page = page_of(ADMIN, admin=True)
    page.clock.install()
    more = system(lanes=[lane("audio", "mill:1"), lane("csv", "mill:1", held=99)], providers=[], queue_depth={})
    answers(page, system(), more)
    page.goto("/ui/system")
    expect(row(page, "Worker queues", "csv")).to_be_visible()
    before = row(page, "Worker queues", "csv").element_handle()
    page.clock.run_for(2_100)
    expect(row(page, "Worker queues", "audio")).to_be_visible()
    expect(row(page, "Worker queues", "csv")).to_contain_text("99")
    expect(row(page, "Worker queues", "recipe")).to_have_count(0)
    assert before.is_visible(), "the row is the same element"
    expect(page.get_by_text("Nothing waits.")).to_be_visible()
    expect(page.get_by_text("No application uses a provider now.")).to_be_visible()


def test_messages_that_nobody_subscribes_to_are_no_lag(page_of: PageOf) -> None:
    page = page_of(ADMIN, admin=True)
    alone = {"waiting": 3, "oldest_seconds": None, "unsubscribed": 3, "unsubscribed_seconds": 65.0}
    answers(page, system(outbox=alone | {"failing": 0, "last_error": None}))
    page.goto("/ui/system")
    expect(figure(page, "Outbox")).to_contain_text("3 waiting3 without a subscriber")


def test_a_broker_is_shown_with_what_waits_in_it(page_of: PageOf) -> None:
    page = page_of(ADMIN, admin=True)
    page.clock.install()
    kafka = {"name": "kafka", "reachable": True, "lag": {"payments": 1_200, "orders": 0}, "last_error": None}
    quiet = {"waiting": 0, "oldest_seconds": None, "unsubscribed": 0, "failing": 0, "last_error": None}
    away = kafka | {"reachable": False, "last_error": "broker.example:9092: connection refused"}
    answers(page, system(transport=kafka, outbox=quiet), system(transport=away, outbox=quiet))
    page.goto("/ui/system")
    expect(page.locator("#outbox")).to_contain_text("BrokerReachablekafka")
    expect(page.locator("#outbox")).to_contain_text("To be read1,2001,200 of payments")
    expect(page.locator("#outbox-error")).to_be_hidden()
    page.clock.run_for(2_100)
    expect(page.locator("#outbox")).to_contain_text("BrokerNot reachable")
    expect(page.locator("#outbox-error")).to_contain_text("connection refused")


def test_texts_from_elsewhere_stay_texts(page_of: PageOf) -> None:
    page = page_of(ADMIN, admin=True)
    hostile = system(
        lanes=[lane(CLICK, CLICK)],
        queue_depth={CLICK: 1},
        outbox={"waiting": 1, "oldest_seconds": 1.0, "failing": 1, "last_error": CLICK * 50},
    )
    answers(page, hostile)
    page.goto("/ui/system")
    expect(page.locator("#outbox-error pre")).to_have_text(CLICK * 50)
    expect(page.get_by_role("rowheader", name=CLICK)).to_have_count(2)
    expect(page.locator("main img")).to_have_count(0)
    expect(page).to_have_title("System · Penstock")


def test_it_keeps_what_it_knows_while_it_cannot_ask(page_of: PageOf, trouble: Trouble) -> None:
    page = page_of(ADMIN, admin=True)
    page.clock.install()
    answers(page, system())
    page.goto("/ui/system")
    expect(figure(page, "Speed")).to_contain_text("1,182")
    page.unroute("**/api/system")
    trouble.expect("503")
    page.route(
        "**/api/system",
        lambda route: route.fulfill(status=503, json={"code": "STORE_UNAVAILABLE", "message": "no answer"}),
    )
    page.clock.run_for(2_100)
    expect(page.get_by_role("alert")).to_contain_text("The figures cannot be read: no answer. These are of")
    expect(page.locator("#system")).to_have_class("old")
    expect(figure(page, "Speed")).to_contain_text("1,182")
    page.unroute("**/api/system")
    answers(page, system())
    page.clock.run_for(2_100)
    expect(page.locator("#stale")).to_be_hidden()
    expect(page.locator("#system")).not_to_have_class("old")


def test_a_first_look_that_fails_can_be_tried_again(page_of: PageOf, trouble: Trouble) -> None:
    page = page_of(ADMIN, admin=True)
    page.clock.install()
    trouble.expect("503")
    page.route("**/api/system", lambda route: route.fulfill(status=503, json={"message": "no answer"}))
    page.goto("/ui/system")
    state = page.get_by_role("alert").filter(has_text="no answer")
    expect(state).to_be_visible()
    page.unroute("**/api/system")
    answers(page, system())
    state.get_by_role("button", name="Try again").click()
    expect(figure(page, "Speed")).to_contain_text("1,182")
    expect(state).to_have_count(0)


def test_it_asks_nothing_while_nobody_looks(page_of: PageOf) -> None:
    page = page_of(ADMIN, admin=True)
    page.clock.install()
    asked = answers(page, system())
    page.add_init_script(
        "Object.defineProperty(document, 'hidden', {get: () => document.documentElement.dataset.away === 'yes'})"
    )

    def look(*, away: bool) -> None:
        page.evaluate(
            "away => { document.documentElement.dataset.away = away ? 'yes' : 'no';"
            " document.dispatchEvent(new Event('visibilitychange')); }",
            away,
        )

    page.goto("/ui/system")
    expect(figure(page, "Speed")).to_contain_text("1,182")
    look(away=True)
    before = len(asked)
    page.clock.run_for(60_000)
    assert len(asked) == before
    with page.expect_response("**/api/system"):
        look(away=False)
    assert len(asked) == before + 1


def over_time() -> list[dict[str, Any]]:
    """Answers as a queue is worked off."""
    bodies = []
    for step in range(40):
        speed = 900.0 + 60 * (step % 7) - 25 * (step % 5)
        bodies.append(
            system(
                version="1.0.0",
                started_at=(NOON - timedelta(days=2)).isoformat(),
                queue_depth={"csv": 182_400 - 2_100 * step, "recipe": 3},
                totals={"items_sec": speed, "error_rate": 0.01 + 0.002 * (step % 6), "not_found_rate": 0.05},
                database={"dialect": "postgresql", "latency_ms": 1.5 + 0.2 * (step % 4), "pool_wait_ms": 0.25},
            )
        )
    return bodies


@pytest.mark.screenshots
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_people_can_use_it_in_any_light(page_of: PageOf, scheme: Literal["light", "dark"]) -> None:
    page = page_of(ADMIN, admin=True, color_scheme=scheme)
    page.clock.install(time=NOON)
    bodies = over_time() if scheme == "light" else over_time()[-2:]
    answers(page, *bodies)
    page.goto("/ui/system")
    expect(row(page, "Worker queues", "csv")).to_be_visible()
    for _ in bodies[1:]:
        with page.expect_response("**/api/system"):
            page.clock.run_for(2_000)
    expect(figure(page, "Queue depth")).to_contain_text("100,503")
    no_problems(page)
    if scheme == "light":
        screenshot(page, "system")


def test_it_fits_a_small_screen(page_of: PageOf) -> None:
    page = page_of(ADMIN, admin=True, viewport={"width": 360, "height": 640})
    answers(page, system())
    page.goto("/ui/system")
    expect(row(page, "Worker queues", "csv")).to_be_visible()
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360


def test_a_schedule_is_paused_run_and_resumed(server: WholeServer, page_of: PageOf) -> None:
    nightly = Schedule("nightly <b>", "0 3 * * *", "many", zone="Europe/Berlin")
    server.app.store.write(partial(declare, schedules=[nightly], max_bytes=1_000))
    page = page_of(ADMIN, admin=True)
    page.goto("/ui/system")
    row = page.locator("#schedules tbody tr")
    expect(row).to_contain_text("nightly <b>")
    expect(row).to_contain_text("0 3 * * * Europe/Berlin")
    row.get_by_role("button", name="Pause").click()
    expect(row).to_contain_text("Paused")
    row.get_by_role("button", name="Run now").click()
    expect(page.get_by_text("A job of nightly <b> was submitted.")).to_be_visible()
    expect(row.get_by_role("link")).to_have_attribute("href", re.compile("/ui/jobs/"))
    row.get_by_role("button", name="Resume").click()
    expect(row.get_by_role("button", name="Pause")).to_be_visible()
    no_problems(page)
    server.app.schedules.remove("nightly <b>")
