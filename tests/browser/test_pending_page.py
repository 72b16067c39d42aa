"""The page of all that waits: its columns, its filters, and what can be done there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from playwright.sync_api import Locator, Page, expect

from penstock import ItemStatus, JobState, Penstock, load_settings, owner
from penstock.http.sessions import SESSION_COOKIE
from tests.browser.accessibility import no_problems
from tests.browser.artifacts import screenshot
from tests.browser.conftest import PageOf
from tests.browser.kinds import goods
from tests.browser.served import WholeServer
from tests.browser.trouble import Trouble
from tests.http.conftest import SECRET, Served, serving
from tests.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

COLUMNS = [
    "Selected", "Item ID", "Job ID", "Title / Brand", "Status", "Attempts", "Deaths", "Locked by", "Updated",
    "Job type", "Job's progress",
]  # fmt: skip


def rows(page: Page) -> Locator:
    """Those that are loaded."""
    return page.locator(".grid-row:not(.waiting)")


def items_of(server: WholeServer, job_id: UUID) -> list[str]:
    """The ids of its items that wait or are in hand."""
    found = server.app.items.page(job_id, statuses=[ItemStatus.PENDING, ItemStatus.PROCESSING], limit=100)
    return [str(one.id) for one in found]


def test_what_waits_in_all_of_ones_jobs_is_listed(server: WholeServer, page_of: PageOf) -> None:
    user, other = server.somebody(), server.somebody()
    theirs, mine = server.hold(other, items=3), server.hold(user, items=6)
    page = page_of(user)
    page.goto("/ui/pending")
    refresh_until(page, rows(page), 6)
    assert page.get_by_role("columnheader").all_text_contents() == COLUMNS
    expect(page.get_by_role("navigation").get_by_role("link", name="Pending")).to_have_attribute("aria-current", "page")
    expect(rows(page).filter(has_text="Processing").first).to_be_visible()
    expect(rows(page).first.locator("[data-column='title']")).to_have_text(re.compile(r"^.+ \d+ · (Weir|Sluice)$"))
    expect(rows(page).first.locator("[data-column='progress']")).to_contain_text("0 %")
    shown = set(page.locator(".grid-row [data-column='id']").all_text_contents())
    assert shown == set(items_of(server, mine.id))
    assert not shown & set(items_of(server, theirs.id))
    expect(page.get_by_role("button", name=re.compile("^hold ?6$"))).to_be_visible()
    expect(page.locator("#counted", has_text="counted")).to_be_visible()
    no_problems(page)
    link = page.get_by_role("link", name=f"Go to job {str(mine.id)[-8:]}").first
    link.click()
    expect(page).to_have_url(re.compile(f"/ui/jobs/{mine.id}$"))


def wait_for_ever(server: WholeServer, user: str, items: Iterable[Any]) -> UUID:
    """A job nobody works on, until the test cancels it: the worker began before its kind was there."""
    if "waiting" not in server.app.kinds:
        server.app.kind("waiting", retries=0)(lambda item: None)
    return server.app.acting_as(owner(user)).submit("waiting", items=items).job.id


def refresh_until(page: Page, found: Locator, count: int) -> None:
    """Press the button until a job has planned its items and as many are listed."""

    def refresh() -> bool:
        with page.expect_response(lambda answer: "/api/pending" in answer.url or "/items" in answer.url):
            page.get_by_role("button", name="Refresh").click()
        return found.count() == count

    eventually(refresh, 60.0)


def test_filters_stand_in_the_address(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    # The first leaves the kind a slot, so that the second is planned however late it comes.
    one, two = server.hold(user, items=3), server.hold(user, items=8)
    page = page_of(user)
    page.goto("/ui/pending")
    refresh_until(page, rows(page), 11)
    page.get_by_label("Processing").uncheck()
    expect(page).to_have_url(re.compile(r"/ui/pending\?statuses=PENDING$"))
    expect(page.locator(".grid-row [data-status='PROCESSING']")).to_have_count(0)
    page.go_back()
    expect(rows(page)).to_have_count(11)
    expect(page.get_by_label("Processing")).to_be_checked()
    page.get_by_label("Job ID").fill(str(two.id))
    page.keyboard.press("Enter")
    expect(rows(page)).to_have_count(8)
    expect(page).to_have_url(re.compile(rf"jobId={two.id}$"))
    page.reload()
    expect(rows(page)).to_have_count(8)
    expect(page.get_by_label("Job ID")).to_have_value(str(two.id))
    page.get_by_label("Job ID").fill("no id")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert").filter(has_text="not a whole job id")).to_be_visible()
    page.get_by_role("button", name="Clear", exact=True).click()
    expect(rows(page)).to_have_count(11)
    page.get_by_label("Job type", exact=True).select_option("many")
    expect(page.get_by_role("heading", name="Nothing waits")).to_be_visible()
    page.get_by_label("Job type", exact=True).select_option("hold")
    expect(rows(page)).to_have_count(11)
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M")
    page.get_by_label("Changed from").fill(tomorrow)
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("heading", name="Nothing waits")).to_be_visible()
    expect(page).to_have_url(re.compile(r"jobType=hold&from=20"))
    no_problems(page)
    assert one.id != two.id


def test_only_admins_see_what_waits_for_everybody(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    job = server.hold(user, items=2)
    page = page_of(server.somebody(), admin=True)
    page.goto("/ui/pending")
    expect(page.get_by_role("heading", name="Nothing waits")).to_be_visible()
    page.get_by_label("Job type", exact=True).select_option("hold")
    page.get_by_label("Whose").select_option("all")
    expect(page).to_have_url(re.compile("userId=all"))
    refresh_until(page, rows(page).filter(has_text=str(job.id)[-8:]), 2)
    nosy = page_of(server.somebody())
    nosy.goto("/ui/pending?userId=all")
    expect(nosy.get_by_role("heading", name="Nothing waits")).to_be_visible()
    expect(nosy.get_by_label("Whose")).to_have_count(0)


def test_what_waits_is_not_reprocessed_and_the_page_says_why(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    server.hold(user, items=3)
    page = page_of(user)
    page.goto("/ui/pending")
    refresh_until(page, rows(page), 3)
    again = page.get_by_role("button", name="Reprocess selected")
    expect(again).to_be_disabled()
    page.get_by_role("button", name="Select loaded").click()
    expect(page.get_by_text("3 selected")).to_be_visible()
    expect(again).to_be_disabled()
    expect(page.get_by_text("runs already")).to_be_visible()
    for name in ("Error", "Not found"):
        expect(page.get_by_label(name)).to_be_disabled()
    no_problems(page)
    page.get_by_role("button", name="Clear selection").click()
    expect(page.get_by_text("runs already")).to_be_hidden()


def test_failed_items_of_a_job_run_again(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    job = server.fail_some(user, items=15)
    assert server.ended(job.id).state is JobState.SUCCEEDED
    job.mend()
    page = page_of(user)
    page.goto(f"/ui/pending?statuses=ERROR,NOT_FOUND&jobId={job.id}")
    expect(rows(page)).to_have_count(7)
    rows(page).nth(0).get_by_role("checkbox").check()
    rows(page).nth(1).get_by_role("checkbox").check()
    page.get_by_role("button", name="Reprocess selected").click()
    dialog = page.get_by_role("dialog", name="Run 2 items again?")
    no_problems(page)
    dialog.get_by_label("Why?").fill("the shop is open")
    dialog.get_by_role("button", name="Reprocess").click()
    expect(page.get_by_text("2 items run again.")).to_be_visible()
    ended = server.ended(job.id)
    assert (ended.run, ended.progress.failed) == (2, 5)
    refresh_until(page, rows(page), 5)


def test_a_job_that_cannot_be_reprocessed_now_says_so(server: WholeServer, page_of: PageOf, trouble: Trouble) -> None:
    user = server.somebody()
    job = server.fail_some(user, items=15)
    server.ended(job.id)
    page = page_of(user)
    page.goto(f"/ui/pending?statuses=ERROR&jobId={job.id}")
    expect(rows(page)).to_have_count(7)
    page.get_by_role("button", name="Select loaded").click()
    server.app.acting_as(owner(user)).jobs.commit(job.id)
    trouble.expect("409")
    page.get_by_role("button", name="Reprocess selected").click()
    page.get_by_role("dialog").get_by_role("button", name="Reprocess").click()
    expect(page.get_by_role("alert").filter(has_text="only a succeeded or failed job is reprocessed")).to_be_visible()
    expect(page.get_by_text("7 selected")).to_be_visible()


def test_the_list_is_read_again_by_itself(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    page = page_of(user)
    page.clock.install()
    page.goto("/ui/pending")
    expect(page.get_by_role("heading", name="Nothing waits")).to_be_visible()
    server.hold(user, items=3)

    def wait_for_a_reading() -> bool:
        with page.expect_response("**/api/pending?*"):
            page.clock.run_for(10_000)
        return rows(page).count() == 3

    eventually(wait_for_a_reading, 60.0)


def test_many_that_wait_are_a_window_of_few(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    job_id = wait_for_ever(server, user, range(450))
    page = page_of(user)
    page.goto("/ui/pending")
    expect(page.get_by_text("100+ rows")).to_be_visible()
    rows(page).first.locator("[data-column='status']").click()
    for loaded in ("200+ rows", "300+ rows", "400+ rows", "The end: 450 rows"):
        page.keyboard.press("Control+End")
        expect(page.get_by_text(loaded)).to_be_visible()
    assert page.locator(".grid-row").count() < 120
    page.get_by_role("button", name="Refresh").click()
    expect(page.get_by_text("The end: 450 rows")).to_be_visible()
    server.app.jobs.cancel(job_id)


@pytest.fixture
def without(tmp_path: Path) -> Iterator[Served]:
    """A server whose operator has not switched the list on."""
    settings = load_settings(
        database_url=f"sqlite:///{tmp_path}/penstock.db", files_directory=tmp_path / "files", jwt_secret=SECRET
    )
    app = Penstock(settings=settings)
    app.system.migrate()
    try:
        with serving(app, worker=False) as one:
            yield one
    finally:
        app.close()


def test_where_it_is_switched_off_there_is_no_such_page(browser: Browser, without: Served) -> None:
    context = browser.new_context(base_url=without.url)
    token = without.server.config.app.state.penstock.tokens.issue("somebody", is_admin=False)  # type: ignore[union-attr]
    context.add_cookies([{"name": SESSION_COOKIE, "value": token, "url": without.url}])
    page = context.new_page()
    answer = page.goto("/ui/jobs")
    assert answer is not None
    assert answer.status == 200
    expect(page.get_by_role("navigation").get_by_role("link", name="Jobs")).to_be_visible()
    expect(page.get_by_role("navigation").get_by_role("link", name="Pending")).to_have_count(0)
    refused = page.goto("/ui/pending")
    assert refused is not None
    assert refused.status == 404
    expect(page.get_by_text("PENDING_DASHBOARD_DISABLED")).to_be_visible()
    context.close()


@pytest.mark.screenshots
def test_the_page_is_good_to_look_at(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    first = server.hold(user, items=9)
    first.let(4)
    before = page_of(user)
    before.goto("/ui/pending")
    refresh_until(before, rows(before), 5)
    before.close()
    waiting = wait_for_ever(server, user, [goods(number) for number in range(12)])
    for scheme in ("light", "dark"):
        page = page_of(user, color_scheme=scheme, still=True)
        page.goto("/ui/pending")
        refresh_until(page, rows(page), 17)
        expect(rows(page).first.locator("progress")).to_be_visible()
        no_problems(page)
        screenshot(page, "pending" if scheme == "light" else f"pending-{scheme}")
    phone = page_of(user, viewport={"width": 360, "height": 740})
    phone.goto("/ui/pending")
    expect(rows(phone)).to_have_count(17)
    assert phone.evaluate("() => document.documentElement.scrollWidth") == 360
    no_problems(phone)
    screenshot(phone, "pending-phone")
    server.app.jobs.cancel(waiting)
