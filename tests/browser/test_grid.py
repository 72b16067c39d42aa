"""The grid: exactly what the export has, however many rows there are."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from uuid import UUID

import httpx2
import pytest
from playwright.sync_api import Locator, Page, Route, expect

from penstock import Permanent, owner
from penstock.web.answers import HEADERS
from penstock.web.lifecycle_table import lifecycle_script
from tests.browser.accessibility import no_problems
from tests.browser.artifacts import screenshot
from tests.browser.conftest import PageOf
from tests.browser.served import WholeServer
from tests.browser.trouble import Trouble

if TYPE_CHECKING:
    from penstock import ItemContext

ROW = 36
LARGE = 100_000
HUGE = 10_000_000
MOST_IN_THE_PAGE = 120
_waiting: list[UUID] = []
ODD_VALUES: list[Any] = [
    None,
    "=SUM(A1:A9)",
    "<img src=x onerror=alert(1)>",
    " blanks  at both ends ",
    "two\nlines",
    True,
    False,
    0,
    -17,
    12345678901234567890,
    1.0,
    -0.0,
    0.1,
    12.50,
    1e16,
    1.5e-7,
    0.00001,
    123456789.125,
    {"price": 3, "tags": ["a", "b"], "large": 9007199254740993, "whole": 2.0},
    [1, [2, None]],
    [],
    "ä€😀",
    "",
]


class Odd:
    """Results of every kind, and some that fail."""

    columns = ("value", "status", "long")

    def process(self, item: ItemContext) -> dict[str, Any]:
        """Its input comes back."""
        number = item.input["number"]
        if number % 7 == 6:
            raise Permanent(f"<b>the shop</b> is closed, =1+{number}", code="SHOP_CLOSED")
        return {"value": item.input["value"], "status": f"own {number}", "long": "words " * 20}


class Counted:
    """Nobody works on these."""

    columns = ("name",)

    def process(self, item: ItemContext) -> None:
        """Never called."""


@pytest.fixture
def odd_job(server: WholeServer) -> tuple[str, UUID]:
    """A job with values of every kind, and whose it is."""
    if "odd" not in server.app.kinds:
        server.app.kind("odd", retries=0, reprocess=True)(Odd)
    user = server.somebody()
    items = [{"number": number, "value": value} for number, value in enumerate(ODD_VALUES)]
    job = server.app.acting_as(owner(user)).submit("odd", items=items).job
    return user, server.app.jobs.kickoff(job.id, duration=30).id


def counted(server: WholeServer, user: str, items: int) -> UUID:
    """A job whose items wait for ever: the worker began before its kind was there."""
    if "counted" not in server.app.kinds:
        server.app.kind("counted", retries=0)(Counted)
    job_id = server.app.acting_as(owner(user)).submit("counted", items=range(items)).job.id
    _waiting.append(job_id)
    return job_id


@pytest.fixture(autouse=True)
def _nothing_waits_for_ever(server: WholeServer) -> Iterator[None]:
    """Other tests look at all that waits on the same server."""
    yield
    while _waiting:
        server.app.jobs.cancel(_waiting.pop())


def show(page: Page, job_id: object, **options: Any) -> Locator:
    """A page with nothing but a grid, under the policy of the real ones; the answer is the grid."""
    given = json.dumps({"jobId": str(job_id), **options})
    module = f"""
        import {{ Grid }} from "./static/test/components/grid.js";
        const place = document.querySelector("#place");
        window.grid = new Grid(place, {{ ...{given}, onSelection: (ids) => (window.chosen = ids) }});
    """
    body = """<!doctype html><html lang="en" data-root="" data-user="x" data-admin="false"><head><title>Grid</title>
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <link rel="icon" href="/ui/static/test/core/mark.svg">
        <link rel="stylesheet" href="/ui/static/test/core/base.css">
        <link rel="stylesheet" href="/ui/static/test/components/grid.css">
        <script type="application/json" id="lifecycle-table">TABLE</script>
        <script type="module" src="/ui/of-the-test.js"></script></head>
        <body><main><h1>Grid</h1><div id="place"></div></main></body></html>""".replace("TABLE", lifecycle_script())
    page.route("**/ui/of-the-test", lambda route: route.fulfill(body=body, headers=HEADERS, content_type="text/html"))
    page.route("**/ui/of-the-test.js", lambda route: route.fulfill(body=module, content_type="text/javascript"))
    page.goto("/ui/of-the-test")
    return page.get_by_role("grid")


def pretend(page: Page, total: int) -> list[int]:
    """Answer for a job with so many rows; the list has the numbers of the pages that were asked for."""
    asked: list[int] = []

    def answer(route: Route) -> None:
        number = int(re.search(r"page=(\d+)", route.request.url).group(1))  # type: ignore[union-attr]
        asked.append(number)
        items = [item(position) for position in range((number - 1) * 100 + 1, min(number * 100, total) + 1)]
        route.fulfill(json={"items": items, "columns": ["name"], "total": total, "next": None})

    page.route("**/api/jobs/pretended/items?*", answer)
    return asked


def item(position: int, status: str = "DONE") -> dict[str, Any]:
    """One that the API might answer."""
    return {
        "id": str(position), "jobId": "pretended", "jobType": "pretended", "position": position, "status": status,
        "attempts": 1, "deaths": 0, "lastError": None, "errorCode": None, "cells": {"name": f"name {position}"},
    }  # fmt: skip


def positions(grid: Locator) -> list[int]:
    """The rows that are in the page, by their numbers; none is waited for."""
    return [int(text) for text in grid.locator(".grid-row:not(.waiting) .row").all_text_contents()]


def row(grid: Locator, position: int) -> Locator:
    """The row of this number, once it is loaded."""
    return grid.locator(f".grid-row:not(.waiting)[data-index='{position - 1}']")


def seen(grid: Locator) -> list[int]:
    """The numbers of the rows that can be seen at all, from the places where they are drawn."""
    numbers: list[int] = grid.evaluate("""grid => {
        const {top, bottom} = grid.getBoundingClientRect();
        const head = grid.querySelector('.grid-head').getBoundingClientRect().bottom;
        return [...grid.querySelectorAll('.grid-row')].filter(row => {
            const place = row.getBoundingClientRect();
            return place.bottom > head + 1 && place.top < bottom - 1;
        }).map(row => Number(row.dataset.index) + 1);
    }""")
    return numbers


def step(grid: Locator, pixels: int) -> None:
    """Scroll by so much, as a wheel does; over when the browser has drawn."""
    grid.evaluate(
        """async (grid, pixels) => {
            grid.scrollTop += pixels;
            for (let frame = 0; frame < 2; frame += 1) await new Promise(requestAnimationFrame);
        }""",
        pixels,
    )


def go_to(page: Page, number: int) -> None:
    """By the field in the toolbar."""
    page.get_by_label("Go to row").fill(str(number))
    page.get_by_role("button", name="Go", exact=True).click()


def exported(server: WholeServer, user: str, job_id: UUID) -> Iterator[list[str]]:
    """The lines of the CSV export, its header first."""
    headers = {"Authorization": f"Bearer {server.token(user)}"}
    answer = httpx2.post(f"{server.url}/api/jobs/{job_id}/export?format=csv", headers=headers)
    assert answer.status_code == 200
    yield from csv.reader(io.StringIO(answer.content.decode("utf-8-sig"), newline=""))


def test_every_cell_is_that_of_the_export(server: WholeServer, odd_job: tuple[str, UUID], page_of: PageOf) -> None:
    user, job_id = odd_job
    page = page_of(user, viewport={"width": 1280, "height": 1600})
    grid = show(page, job_id)
    expect(grid.locator(".grid-row:not(.waiting)")).to_have_count(len(ODD_VALUES))
    header, *lines = exported(server, user, job_id)
    assert grid.get_by_role("columnheader").all_text_contents() == ["Selected", *header]
    for number, line in enumerate(lines, 1):
        cells = row(grid, number).locator(".grid-cell[data-column]")
        shown = cells.all_text_contents()
        shown[1] = cells.locator("[data-status]").get_attribute("data-status") or ""
        # In CSV an apostrophe keeps a spreadsheet from running a text; it is no part of the value.
        assert shown == [value[1:] if value[:2] == "'=" else value for value in line], number
    assert len(lines) == len(ODD_VALUES)


def test_text_that_looks_like_a_page_stays_text_and_the_whole_of_it_is_at_hand(
    odd_job: tuple[str, UUID], page_of: PageOf
) -> None:
    user, job_id = odd_job
    page = page_of(user)
    grid = show(page, job_id)
    row(grid, 3).get_by_text("<img").click()
    expect(page.locator(".grid-detail")).to_contain_text("row 3 · value<img src=x onerror=alert(1)>")
    assert page.locator("img").count() == 0
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".grid-detail")).to_contain_text("words " * 20)


def test_a_hundred_thousand_rows_are_a_window_of_few(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    job_id = counted(server, user, LARGE)
    page = page_of(user)
    grid = show(page, job_id)
    expect(page.get_by_text("100,000 rows")).to_be_visible()
    expect(grid).to_have_attribute("aria-rowcount", str(LARGE + 1))
    expect(row(grid, 1)).to_be_visible()
    nodes = page.evaluate("() => document.querySelectorAll('*').length")
    for place in (LARGE, LARGE // 2, 3, 77_777):
        go_to(page, place)
        expect(row(grid, place)).to_be_visible()
        expect(row(grid, place).locator(".row")).to_have_text(str(place))
        assert place in seen(grid)
        assert grid.locator(".grid-row").count() < MOST_IN_THE_PAGE
    grid.evaluate("grid => { grid.scrollTop = 0; }")
    for _ in range(40):
        step(grid, LARGE * ROW // 45)
        step(grid, 500)
    expect(grid.locator(".grid-row.waiting")).to_have_count(0)
    numbers = positions(grid)
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert set(seen(grid)) <= set(numbers)
    assert len(numbers) < MOST_IN_THE_PAGE
    assert page.evaluate("() => document.querySelectorAll('*').length") < nodes + 40 * 12
    assert page.evaluate("() => window.grid.table.source.pages.size") <= 50
    assert page.evaluate("() => performance.memory.usedJSHeapSize") < 60_000_000


def test_ten_million_rows_are_reached_by_number_wheel_and_scrollbar(page_of: PageOf) -> None:
    page = page_of("somebody")
    asked = pretend(page, HUGE)
    grid = show(page, "pretended")
    expect(page.get_by_text("10,000,000 rows")).to_be_visible()
    assert grid.evaluate("grid => grid.scrollHeight") < 8_100_000
    go_to(page, HUGE)
    expect(row(grid, HUGE)).to_be_in_viewport()
    assert max(seen(grid)) == HUGE
    go_to(page, 5_000_000)
    expect(row(grid, 5_000_000)).to_be_in_viewport()
    first = min(seen(grid))
    for _ in range(5):
        step(grid, 2 * ROW)
    assert min(seen(grid)) == first + 10
    page.evaluate("() => window.grid.table.rows.anchor()")  # what a scrollbar at rest does
    assert min(seen(grid)) == first + 10
    # A scrollbar comes to rest while somebody scrolls: before the browser has told of it.
    grid.evaluate("(grid, pixels) => { grid.scrollTop += pixels; window.grid.table.rows.anchor(); }", -10 * ROW)
    assert min(seen(grid)) == first
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator(":focus")).to_have_attribute("aria-colindex", "2")
    expect(page.locator(".grid-row:focus-within")).to_have_attribute("data-index", str(5_000_000 + 1))
    grid.evaluate("grid => { grid.scrollTop = grid.scrollHeight / 2; }")
    expect(grid.locator(".grid-row.waiting")).to_have_count(0)
    assert abs(min(seen(grid)) - HUGE / 2) < HUGE / 100
    grid.evaluate("grid => { grid.scrollTop = 0; }")
    expect(row(grid, 1)).to_be_in_viewport()
    assert min(seen(grid)) == 1
    assert len(asked) < 40
    assert grid.locator(".grid-row").count() < MOST_IN_THE_PAGE


def test_filtered_rows_come_page_behind_page_and_the_end_says_so(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    page = page_of(user)
    grid = show(page, counted(server, user, 250))
    page.get_by_label("Done").check()
    expect(page.get_by_role("heading", name="No rows of these statuses")).to_be_visible()
    no_problems(page)
    page.get_by_role("button", name="Show all statuses").click()
    expect(page.get_by_text("250 rows")).to_be_visible()
    page.get_by_label("Pending").check()
    expect(page.get_by_text("100+ rows")).to_be_visible()
    expect(grid).to_have_attribute("aria-rowcount", "-1")
    expect(page.get_by_label("Go to row")).to_be_hidden()
    row(grid, 1).locator(".row").click()
    for _ in range(3):
        page.keyboard.press("Control+End")
        expect(page.get_by_text("200 rows so far").or_(page.get_by_text("The end: 250 rows"))).to_be_visible()
    expect(page.get_by_text("The end: 250 rows")).to_be_visible()
    page.keyboard.press("Control+End")
    expect(row(grid, 250)).to_be_in_viewport()
    expect(grid).to_have_attribute("aria-rowcount", "251")
    assert grid.locator(".grid-row").count() < MOST_IN_THE_PAGE


def test_rows_are_selected_by_mouse_and_keyboard_and_stay_so(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    page = page_of(user)
    grid = show(page, counted(server, user, 1_000))
    row(grid, 2).get_by_role("checkbox", name="Select row 2").click()
    row(grid, 5).locator(".row").click(modifiers=["Shift"])
    expect(page.get_by_text("4 rows selected")).to_be_attached()
    expect(page.get_by_text("4 selected")).to_be_visible()
    expect(row(grid, 5)).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    expect(page.get_by_text("6 selected")).to_be_visible()
    go_to(page, 900)
    expect(row(grid, 900)).to_be_visible()
    page.evaluate("() => window.grid.refresh()")
    page.keyboard.press("Control+Home")
    expect(row(grid, 7)).to_have_attribute("aria-selected", "true")
    expect(row(grid, 8)).to_have_attribute("aria-selected", "false")
    ids = page.evaluate("() => window.grid.selected()")
    assert ids == page.evaluate("() => window.chosen")
    assert len(set(ids)) == 6
    assert all(one.isdigit() for one in ids)
    page.evaluate("() => window.grid.clearSelection()")
    expect(row(grid, 7)).to_have_attribute("aria-selected", "false")
    page.get_by_role("button", name="Select loaded").click()
    count = page.evaluate("() => window.grid.selected().length")
    assert 100 <= count <= 1_000
    assert count % 100 == 0


def test_no_more_are_selected_than_may_be_sent(page_of: PageOf) -> None:
    page = page_of("somebody")
    pretend(page, 10)
    show(page, "pretended")
    expect(page.get_by_text("10 rows")).to_be_visible()
    page.evaluate("""() => window.grid.table.selection.add(
        Array.from({length: 10_500}, (_, place) => ({id: String(place)})))""")
    expect(page.get_by_text("10,000 selected")).to_be_visible()
    assert page.evaluate("() => window.grid.selected().length") == 10_000


def test_the_keyboard_goes_everywhere(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    page = page_of(user)
    grid = show(page, counted(server, user, 300))
    row(grid, 1).locator(".row").click()
    focused = page.locator(".grid-row:focus-within")
    for key, index in (
        ("ArrowDown", 1), ("ArrowUp", 0), ("ArrowUp", 0), ("Control+End", 299), ("ArrowDown", 299), ("Control+Home", 0),
    ):  # fmt: skip
        page.keyboard.press(key)
        expect(focused).to_have_attribute("data-index", str(index))
    expect(grid.get_by_role("checkbox", name="Select row 1", exact=True)).to_be_focused()
    page.keyboard.press("PageDown")
    assert int(focused.get_attribute("data-index") or 0) > 5
    page.keyboard.press("PageUp")
    page.keyboard.press("End")
    expect(page.locator(":focus")).to_have_attribute("data-column", "error")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    expect(page.locator(":focus")).to_have_attribute("data-column", "row")
    assert grid.locator("[tabindex='0']").count() == 1
    step(grid, 5_000)
    expect(grid).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(focused).to_have_attribute("data-index", "1")


def test_columns_are_chosen_and_the_choice_is_kept_by_kind(
    server: WholeServer, odd_job: tuple[str, UUID], page_of: PageOf
) -> None:
    user, job_id = odd_job
    page = page_of(user)
    grid = show(page, job_id)
    expect(row(grid, 1)).to_be_visible()
    page.locator("summary", has_text="Columns").click()
    menu = page.locator(".grid-menu-body")
    assert [text.strip() for text in menu.locator("label").all_text_contents()] == [
        "row", "status", "value", "status", "long", "attempts", "error_code", "error",
    ]  # fmt: skip
    menu.get_by_label("long").uncheck()
    expect(grid.get_by_role("columnheader", name="long")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    page.reload()
    expect(grid.get_by_role("columnheader", name="value")).to_be_visible()
    expect(grid.get_by_role("columnheader", name="long")).to_have_count(0)
    expect(grid).to_have_attribute("aria-colcount", "8")
    for broken in ("{", '{"a": 1}', "[1, null]"):
        page.evaluate("text => localStorage.setItem('penstock.grid.hidden.odd', text)", broken)
        page.reload()
        expect(grid.get_by_role("columnheader", name="long")).to_be_visible()


def test_a_refresh_changes_rows_in_place(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    job = server.hold(user, items=60)
    page = page_of(user)
    grid = show(page, job.id)
    expect(page.get_by_text("60 rows")).to_be_visible()
    go_to(page, 60)
    expect(row(grid, 60).locator(".row")).to_be_focused()
    place = grid.evaluate("grid => grid.scrollTop")
    grid.evaluate("grid => { window.kept = grid.querySelector('.grid-row[data-index=\"59\"]'); }")
    job.let_go()
    server.ended(job.id)
    page.evaluate("() => { for (let time = 0; time < 9; time += 1) window.grid.refresh(); }")
    expect(row(grid, 60).get_by_text("Done")).to_be_visible()
    expect(row(grid, 60).locator("[data-column='cell:price']")).to_have_text(re.compile(r"^\d+\.50$"))
    assert grid.evaluate("grid => grid.scrollTop") == place
    assert page.evaluate("() => window.kept.dataset.index") == "59"
    expect(row(grid, 60).locator(".row")).to_be_focused()


@pytest.mark.parametrize("pending", [False, True], ids=["by number", "page behind page"])
def test_a_refresh_that_comes_while_an_answer_is_under_way_is_remembered(page_of: PageOf, pending: bool) -> None:
    """The answer may have been written before the change: the end of a job, after which nothing comes any more."""
    page = page_of("reader")
    held: list[Route] = []
    is_slow = False

    def answer(route: Route, status: str) -> None:
        entry = {**item(1, status), "lockedBy": None, "updatedAt": "2026-01-01T00:00:00Z", "inputSummary": {}}
        route.fulfill(json={"items": [entry], "columns": ["name"], "total": 1, "next": None})

    def take(route: Route) -> None:
        if is_slow and not held:
            held.append(route)
        else:
            answer(route, "DONE" if held else "PENDING")

    page.route("**/api/jobs/pretended/items?*", take)
    grid = show(page, "pretended", pending=pending)
    expect(row(grid, 1).get_by_text("Pending")).to_be_visible()
    is_slow = True
    with page.expect_request("**/api/jobs/pretended/items?*"):
        page.evaluate("window.grid.table.source.refresh()")
    page.evaluate("window.grid.table.source.refresh()")
    answer(held[0], "PENDING")
    expect(row(grid, 1).get_by_text("Done")).to_be_visible()


def test_a_long_list_that_changed_is_read_again_when_somebody_asks(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    page = page_of(user)
    grid = show(page, counted(server, user, 800), pending=True)
    row(grid, 1).click()
    reload = page.get_by_role("button", name="List changed: reload")
    for loaded in (200, 300, 400, 500, 600):
        page.keyboard.press("Control+End")
        expect(page.get_by_text(f"{loaded}+ rows")).to_be_visible()
    expect(reload).to_be_hidden()
    page.evaluate("() => window.grid.refresh()")
    reload.click()
    expect(page.get_by_text("100+ rows")).to_be_visible()
    expect(reload).to_be_hidden()
    expect(row(grid, 1)).to_be_in_viewport()


def test_a_job_without_rows_says_so(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    job_id = server.many(user, items=0)
    server.ended(job_id)
    page = page_of(user)
    show(page, job_id)
    expect(page.get_by_role("heading", name="No rows yet")).to_be_visible()
    no_problems(page)


def test_what_fails_can_be_tried_again(page_of: PageOf, trouble: Trouble) -> None:
    page = page_of("somebody")
    pretend(page, 500)
    fails = {"now": True}
    failures = []

    def broken(route: Route) -> None:
        if fails["now"]:
            failures.append(route.request.url)
            route.fulfill(status=503, json={"code": "DATABASE_DOWN", "message": "the database does not answer"})
        else:
            route.fallback()

    page.route("**/items?*", broken)
    trouble.expect("503")
    grid = show(page, "pretended")
    expect(page.get_by_text("DATABASE_DOWN")).to_be_visible()
    no_problems(page)
    fails["now"] = False
    page.get_by_role("button", name="Try again").click()
    expect(row(grid, 1)).to_be_visible()
    fails["now"] = True
    go_to(page, 450)
    expect(page.get_by_text("Some rows could not be loaded")).to_be_visible()
    assert grid.locator(".grid-row.waiting").count() > 0
    assert len(failures) <= 3, "a failure is no reason to ask again and again"
    fails["now"] = False
    page.get_by_role("button", name="Try again").click()
    expect(row(grid, 450)).to_be_visible()
    expect(page.get_by_text("Some rows could not be loaded")).to_be_hidden()


@pytest.mark.screenshots
def test_a_grid_is_good_to_look_at_and_to_use(server: WholeServer, odd_job: tuple[str, UUID], page_of: PageOf) -> None:
    user, _ = odd_job
    failing = server.fail_some(user, items=300)
    server.ended(failing.id)
    for scheme in ("light", "dark"):
        page = page_of(user, color_scheme=scheme, still=True)
        grid = show(page, failing.id)
        row(grid, 3).locator(".row").click()
        page.keyboard.press("End")
        row(grid, 5).get_by_role("checkbox").check()
        no_problems(page)
        screenshot(page, "grid" if scheme == "light" else f"grid-{scheme}")
    phone = page_of(user, viewport={"width": 360, "height": 740})
    grid = show(phone, failing.id)
    expect(row(grid, 1)).to_be_visible()
    assert phone.evaluate("() => document.documentElement.scrollWidth") == 360
    row(grid, 3).locator(".row").click()
    phone.keyboard.press("End")
    expect(row(grid, 3).locator("[data-column='error']")).to_be_in_viewport()
    expect(row(grid, 3).locator(".row")).to_be_in_viewport()
    no_problems(phone)
    screenshot(phone, "grid-phone")
