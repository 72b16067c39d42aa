"""The list of jobs: it lives, it is filtered, searched and paged, and it shows whatever jobs are called."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from penstock import owner
from penstock.http import written_cursor
from tests.browser import kinds
from tests.browser.accessibility import no_problems
from tests.browser.artifacts import screenshot
from tests.browser.conftest import PageOf
from tests.browser.served import WholeServer
from tests.browser.trouble import Trouble

PHONE = {"width": 390, "height": 844}
HOSTILE = "<img src=x onerror=\"document.title='taken'\"> & <script>document.title='taken'</script>"
LIVE = re.compile(r"/api/jobs/live")


def waiting(server: WholeServer, user: str, *titles: str | None, kind: str = kinds.MANY) -> list[UUID]:
    """Jobs that are recorded and do not begin."""
    params = {"gate": 0, "items": 2}
    return [server.app.acting_as(owner(user)).submit(kind, params, title=title, hold=True).job.id for title in titles]


def rows(page: Page) -> Locator:
    return page.locator("#jobs tbody tr")


def row(page: Page, job_id: UUID) -> Locator:
    return page.locator(f'tr[data-job="{job_id}"]')


def titles(page: Page) -> Locator:
    return page.locator("#jobs .job-title")


def stream(route: Route, body: dict[str, object]) -> None:
    """One event, instead of the server's."""
    text = f"event: jobs\ndata: {json.dumps(body)}\n\n"
    route.fulfill(status=200, headers={"Content-Type": "text/event-stream"}, body=text)


def test_a_job_moves_without_a_reload_and_its_row_stays_the_same(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    held = server.hold(user, items=4)
    page = page_of(user)
    page.goto("/ui/jobs")
    shown = row(page, held.id)
    expect(shown.locator(".badge")).to_have_text("Running")
    expect(shown.locator(".job-counts")).to_have_text("0 of 4")
    link = shown.get_by_role("link")
    expect(link).to_have_attribute("href", f"/ui/jobs/{held.id}")
    link.focus()
    shown.evaluate("row => { row.theSame = true; }")
    held.let(2)
    expect(shown.locator(".job-counts")).to_have_text("2 of 4")
    expect(shown.get_by_role("progressbar")).to_have_attribute("value", "50")
    expect(shown.locator(".job-message")).to_have_text(re.compile("Processing"))
    held.let_go()
    expect(shown.locator(".badge")).to_have_text("Completed")
    expect(shown.locator(".job-message")).to_have_text("Completed successfully")
    expect(shown.get_by_role("progressbar")).to_be_hidden()
    assert shown.evaluate("row => row.theSame")
    expect(link).to_be_focused()


def test_a_new_job_comes_in_at_the_top(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    waiting(server, user, "first")
    page = page_of(user)
    page.goto("/ui/jobs")
    expect(titles(page)).to_have_text(["first"])
    waiting(server, user, "second")
    expect(titles(page)).to_have_text(["second", "first"])


def test_one_connection_does_it(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    job = server.many(user, items=3)
    page = page_of(user)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/api/" in request.url else None)
    page.goto("/ui/jobs")
    expect(row(page, job).locator(".badge")).to_have_text("Completed")
    assert [LIVE.search(one) is not None for one in asked] == [True]


def test_failures_are_counted_and_named(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    failing = server.fail_some(user)
    server.ended(failing.id)
    page = page_of(user)
    page.goto("/ui/jobs")
    expect(row(page, failing.id).locator(".job-message")).to_have_text("Completed, 7 failed")
    expect(row(page, failing.id).locator(".chip")).to_have_text("fail-some")


def test_an_admin_sees_whose_jobs_they_are_and_others_see_their_own(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    (job,) = waiting(server, user, "for its owner")
    page = page_of(server.somebody(), admin=True)
    page.goto("/ui/jobs?q=for+its+owner")
    expect(row(page, job).locator(".job-owner")).to_have_text(user)
    own = page_of(user)
    own.goto("/ui/jobs")
    expect(row(own, job)).to_be_visible()
    expect(own.get_by_role("columnheader", name="Owner")).to_have_count(0)


def test_filters_are_in_the_address_and_back_takes_them_back(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    done = server.many(user, items=1)
    server.ended(done)
    (created,) = waiting(server, user, "held back", kind=kinds.HOLD)
    page = page_of(user)
    page.goto("/ui/jobs")
    expect(rows(page)).to_have_count(2)
    page.get_by_label("Status").select_option("Completed")
    expect(rows(page)).to_have_count(1)
    expect(row(page, done)).to_be_visible()
    expect(page).to_have_url(re.compile(r"/ui/jobs\?status=completed$"))
    page.get_by_label("Kind").select_option(kinds.HOLD)
    expect(page.get_by_role("heading", name="Nothing matches")).to_be_visible()
    page.go_back()
    expect(row(page, done)).to_be_visible()
    expect(page.get_by_label("Kind")).to_have_value("")
    page.go_back()
    expect(rows(page)).to_have_count(2)
    page.go_forward()
    expect(rows(page)).to_have_count(1)
    page.reload()
    expect(rows(page)).to_have_count(1)
    expect(page.get_by_label("Status")).to_have_value("completed")
    page.get_by_role("button", name="Clear filters").click()
    expect(row(page, created)).to_be_visible()
    expect(page).to_have_url(re.compile(r"/ui/jobs$"))


def test_paused_is_a_filter_of_its_own(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    held = server.hold(user)
    server.hold(user)
    server.app.acting_as(owner(user)).jobs.pause(held.id)
    page = page_of(user)
    page.goto("/ui/jobs")
    expect(rows(page)).to_have_count(2)
    page.get_by_label("Status").select_option("Paused")
    expect(rows(page)).to_have_count(1)
    expect(row(page, held.id).locator(".badge")).to_have_text("Paused")


def test_the_last_day_is_meant_with_all_of_it(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    waiting(server, user, "of today")
    page = page_of(user)
    page.goto("/ui/jobs")
    expect(titles(page)).to_have_text(["of today"])
    today = datetime.now(UTC).date()
    page.get_by_label("Created to").fill(str(today - timedelta(days=1)))
    expect(page.get_by_role("heading", name="Nothing matches")).to_be_visible()
    page.get_by_label("Created to").fill(str(today + timedelta(days=1)))
    page.get_by_label("Created from").fill(str(today - timedelta(days=1)))
    expect(titles(page)).to_have_text(["of today"])
    with page.expect_request(LIVE) as asked:
        page.get_by_label("Created to").fill("2031-05-31")
    assert "to=2031-06-01T00%3A00%3A00.000Z" in asked.value.url


def test_searching_is_one_step_back(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    waiting(server, user, "kettles.csv", "hoses.csv", "100% & more")
    page = page_of(user)
    page.goto("/ui/jobs")
    expect(rows(page)).to_have_count(3)
    page.keyboard.press("/")
    expect(page.get_by_label("Search")).to_be_focused()
    page.keyboard.type("kett")
    expect(titles(page)).to_have_text(["kettles.csv"])
    page.keyboard.type("les/")
    expect(page.get_by_role("heading", name="Nothing matches")).to_be_visible()
    expect(page.get_by_label("Search")).to_have_value("kettles/")
    page.get_by_label("Search").fill("100% &")
    expect(titles(page)).to_have_text(["100% & more"])
    expect(page).to_have_url(re.compile(r"\?q=100%25\+%26$"))
    page.go_back()
    expect(rows(page)).to_have_count(3)
    expect(page.get_by_label("Search")).to_have_value("")


def test_older_jobs_are_a_page_away(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    waiting(server, user, *(f"job {number}" for number in range(1, 61)))
    page = page_of(user)
    page.goto("/ui/jobs")
    expect(rows(page)).to_have_count(50)
    expect(titles(page).first).to_have_text("job 60")
    expect(page.get_by_role("button", name="Newest")).to_be_hidden()
    page.get_by_role("button", name="Older").click()
    expect(rows(page)).to_have_count(10)
    expect(titles(page).first).to_have_text("job 10")
    expect(page.get_by_role("button", name="Older")).to_be_hidden()
    expect(page).to_have_url(re.compile(r"\?cursor="))
    page.reload()
    expect(titles(page).first).to_have_text("job 10")
    page.get_by_role("button", name="Newest").click()
    expect(titles(page).first).to_have_text("job 60")
    page.go_back()
    expect(titles(page).first).to_have_text("job 10")


def test_a_search_that_came_to_its_bound_goes_on_when_it_is_asked_to(server: WholeServer, page_of: PageOf) -> None:
    page = page_of(server.somebody())
    far = written_cursor(datetime.now(UTC), UUID(int=7))

    def nothing(route: Route) -> None:
        stream(route, {"order": [], "jobs": [], "next": None if "cursor" in route.request.url else far})

    page.route(LIVE, nothing)
    page.goto("/ui/jobs?q=needle")
    expect(page.get_by_role("heading", name="No match among those")).to_be_visible()
    page.get_by_role("button", name="Look further").click()
    expect(page).to_have_url(re.compile(r"\?q=needle&cursor="))
    expect(page.get_by_role("heading", name="That was all")).to_be_visible()


def test_hostile_and_long_titles_are_text(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    long = "a very long name of a file " * 8
    hostile, endless = waiting(server, user, HOSTILE, long)
    page = page_of(user)
    page.goto("/ui/jobs")
    expect(row(page, hostile).get_by_role("link")).to_have_text(HOSTILE)
    expect(page.locator("#jobs img, #jobs script")).to_have_count(0)
    link = row(page, endless).get_by_role("link")
    kept = server.app.jobs.get(endless).title
    assert kept is not None
    expect(link).to_have_attribute("title", kept)
    assert link.evaluate("link => link.scrollWidth > link.clientWidth"), "a long title is cut"
    expect(page).to_have_title("Jobs · Penstock")
    for width in (1280, 360):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), f"it fits in {width} pixels"


def test_somebody_without_jobs_is_invited_to_start_one(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    page = page_of(user)
    page.goto("/ui/jobs")
    expect(page.get_by_role("heading", name="No jobs yet")).to_be_visible()
    expect(page.get_by_role("heading", name="Look products up")).to_be_visible()
    no_problems(page)
    waiting(server, user, "the first")
    expect(titles(page)).to_have_text(["the first"])
    expect(page.get_by_role("heading", name="No jobs yet")).to_have_count(0)


def test_what_cannot_be_asked_for_is_said_and_can_be_left(
    server: WholeServer, page_of: PageOf, trouble: Trouble
) -> None:
    user = server.somebody()
    waiting(server, user, "still there")
    page = page_of(user)
    trouble.expect("console error: .* 422 ")
    page.goto("/ui/jobs?cursor=nonsense")
    expect(page.get_by_role("heading", name="This could not be loaded")).to_be_visible()
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    page.get_by_role("button", name="Show all jobs").click()
    expect(titles(page)).to_have_text(["still there"])


def test_a_lost_connection_is_said_and_comes_back(server: WholeServer, page_of: PageOf, trouble: Trouble) -> None:
    user = server.somebody()
    waiting(server, user, "before")
    page = page_of(user)
    trouble.allow("console error: Failed to load resource")
    trouble.allow("no answer: GET .*/api/jobs")
    page.route("**/api/jobs**", lambda route: route.abort("connectionrefused"))
    page.goto("/ui/jobs")
    expect(page.get_by_role("heading", name="No connection")).to_be_visible()
    page.unroute("**/api/jobs**")
    expect(titles(page)).to_have_text(["before"])
    expect(page.locator("#connection")).to_be_hidden()


@pytest.mark.screenshots
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_people_who_see_little_can_use_it(server: WholeServer, page_of: PageOf, scheme: str) -> None:
    user = server.somebody()
    server.ended(server.fail_some(user).id)
    waiting(server, user, "autumn-catalogue.csv", "labels.zip")
    gate = kinds.Gate()
    params = {"gate": gate.number, "items": 1_000}
    held = kinds.Held(
        server.app.acting_as(owner(user)).submit(kinds.HOLD, params, title="spring-catalogue.xlsx").job.id, gate
    )
    held.let(412)
    for place, window in (("jobs", {"width": 1280, "height": 800}), ("jobs-phone", PHONE)):
        page = page_of(user, still=True, color_scheme=scheme, viewport=window)
        page.goto("/ui/jobs")
        expect(row(page, held.id).locator(".job-counts")).to_have_text("412 of 1,000")
        no_problems(page)
        if scheme == "light":
            screenshot(page, place)
        page.get_by_text("Start a job").click()
        page.get_by_role("heading", name="Look products up").click()
        no_problems(page)
