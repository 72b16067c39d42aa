"""The page of one job: what it shows while the job goes on, and what its buttons do and leave in the history."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID, uuid4

import pytest
from playwright.sync_api import expect
from sqlalchemy import update

from penstock import owner
from penstock.lifecycle.states import TrackingEngine
from penstock.lifecycle.tracked_tasks import FailurePolicy, TaskSighting, TaskStatus
from penstock.operations.request import Request
from penstock.operations.tracking import record_sightings, record_tracked_job
from penstock.store.tables import jobs
from tests.browser.accessibility import SCREENS, no_problems
from tests.browser.artifacts import screenshot
from tests.browser.kinds import HOLD, Gate

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from tests.browser.conftest import PageOf
    from tests.browser.served import WholeServer
    from tests.browser.trouble import Trouble

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"


def history(page: Page) -> Locator:
    """The lines of the history."""
    return page.get_by_role("list").and_(page.locator("#history")).get_by_role("listitem")


def button(page: Page, name: str) -> Locator:
    """A button of the page by its whole name."""
    return page.get_by_role("button", name=name, exact=True)


def tab(page: Page, name: str) -> Locator:
    """A tab."""
    return page.get_by_role("tab", name=name)


def opened(page: Page, job_id: UUID, part: str = "") -> Page:
    """The job's page, once it has been filled."""
    page.goto(f"/ui/jobs/{job_id}{part}")
    expect(page.locator("#job")).to_have_attribute("data-status", re.compile("."))
    return page


def badge(page: Page) -> Locator:
    """The job's status."""
    return page.locator("#job [data-part=badge]")


def recipe(server: WholeServer, user: str, name: str) -> UUID:
    """A job of one step that has read a page of the site, or failed to."""
    with server.served.client(user) as client:
        answer = client.post("/recipes/parse-url/async", json={"url": f"http://{server.site}/{name}"})
    job = UUID(answer.json()["id"])
    server.ended(job)
    return job


def test_counters_follow_the_job_to_its_end(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    held = server.hold(user, items=5)
    page = opened(page_of(user), held.id)
    expect(page.get_by_role("heading", level=1)).to_have_text("hold")
    expect(badge(page)).to_have_text("Running")
    expect(page.locator("[data-part=total]")).to_have_text("5")
    page.locator("#job-title").focus()
    held.let(2)
    expect(page.locator("[data-part=done]")).to_have_text("2")
    expect(page.locator("[data-part=waiting]")).to_have_text("3")
    expect(page.locator("[data-phase=processing]")).to_have_attribute("aria-current", "step")
    expect(page.get_by_role("img", name="The job's states so far: queued → running")).to_be_visible()
    held.let_go()
    expect(badge(page)).to_have_text("Completed")
    expect(page.locator("[data-part=done]")).to_have_text("5")
    expect(page.locator("[data-part=message]")).to_have_text("Completed successfully")
    expect(page.get_by_role("img", name="queued → running → succeeded")).to_be_visible()
    expect(page.locator(".node.current")).to_have_text("succeeded")
    expect(page.locator("[data-way='running>succeeded']")).to_have_class("way taken")
    expect(page.locator("[data-way='running>failed']")).to_have_class("way")
    expect(page.locator("#job-title")).to_be_focused()
    expect(history(page)).to_have_count(3)
    expect(button(page, "Cancel")).to_be_hidden()


@pytest.mark.parametrize("hours", [-1, 1])
def test_how_long_ago_is_counted_by_the_servers_clock(server: WholeServer, page_of: PageOf, hours: int) -> None:
    user = server.somebody()
    held = server.hold(user)
    page = page_of(user)
    page.clock.install(time=datetime.now(UTC) + timedelta(hours=hours))
    opened(page, held.id)
    expect(page.locator("[data-part=created]")).to_have_text(re.compile(r"^(just now|\d+ s ago)$"))


def test_a_cancelled_job_says_who_and_why(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    held = server.hold(user, items=4)
    held.let(1)
    page = opened(page_of(user), held.id)
    expect(page.locator("[data-part=done]")).to_have_text("1")
    button(page, "Cancel").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Running items are stopped; what is done stays.")
    dialog.get_by_role("button", name="Cancel the job").click()
    expect(dialog).to_be_visible()  # without a reason it is not done
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(badge(page)).to_have_text("Running")

    button(page, "Cancel").click()
    dialog.get_by_label("Why?").fill("the wrong file")
    dialog.get_by_role("button", name="Cancel the job").click()
    expect(badge(page)).to_have_text("Canceled")
    expect(history(page).last).to_contain_text("running → canceled")
    expect(history(page).last).to_contain_text(f"{user} (owner)")
    expect(history(page).last).to_contain_text("the wrong file")
    box = page.locator("[data-part=trouble]")
    expect(box).to_contain_text("Canceled by user")
    expect(box).to_contain_text(f"{user} (owner)")
    expect(box).to_contain_text("the wrong file")
    expect(box).to_contain_text("of 4 items")
    expect(page.locator("#job-title")).to_be_focused()
    expect(page.get_by_role("status").filter(has_text="The job is canceled.")).to_be_visible()
    assert server.app.jobs.history(held.id)[-1].reason == "the wrong file"


def test_a_job_is_paused_and_goes_on(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    held = server.hold(user, items=30)
    page = opened(page_of(user), held.id)
    expect(badge(page)).to_have_text("Running")
    button(page, "Pause").click()
    page.get_by_role("dialog").get_by_label("Why?").fill("the shop is closed")
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(badge(page)).to_have_text("Paused")
    expect(history(page).last).to_contain_text("running → paused")
    expect(history(page).last).to_contain_text("the shop is closed")
    expect(button(page, "Pause")).to_be_hidden()
    expect(page.locator("[data-part=paused]")).to_be_visible()
    long_ago = {"waiting_seconds": 0.0, "active_seconds": 600.0, "paused_seconds": 3600.0}  # as if that had passed
    with server.app.store.write_lock, server.app.store.engine.begin() as connection:
        connection.execute(update(jobs).where(jobs.c.id == held.id).values(long_ago))
    button(page, "Resume").click()
    expect(history(page).filter(has_text="paused → queued")).to_contain_text(f"{user} (owner)")
    held.let_go()
    expect(badge(page)).to_have_text("Completed")
    expect(page.locator("[data-part=elapsed]")).to_have_text(re.compile(r"^1 h 1\d min$"))
    expect(page.locator("[data-part=active]")).to_have_text(re.compile(r"^1\d min"))
    expect(page.locator("[data-part=paused]")).to_have_text(re.compile(r"^1 h \d min$"))
    expect(page.locator("[data-figure=eta]")).to_be_hidden()


def test_the_failed_tasks_of_a_celery_job_are_named(server: WholeServer, page_of: PageOf) -> None:
    user, job_id = server.somebody(), uuid4()
    root = TaskSighting(job_id, "root", TaskStatus.PUBLISHING, name="tasks.root", is_root=True)
    part = TaskSighting(job_id, "part", TaskStatus.FAILED, name=HOSTILE, error="it broke", worker="a@host")
    app = server.app
    app.store.write(
        lambda transaction: record_tracked_job(
            transaction, TrackingEngine.CELERY, "thumbs", job_id, [root], {}, Request(owner=user), max_bytes=1000
        )
    )
    ended = replace(root, status=TaskStatus.SUCCEEDED)
    app.store.write(lambda transaction: record_sightings(transaction, [part, ended], FailurePolicy.COUNT))
    page = opened(page_of(user), job_id)
    tasks = page.locator("[data-part=tasks]")
    tasks.get_by_text("Failed tasks").click()
    expect(tasks.get_by_role("listitem")).to_have_text(f"{HOSTILE}: it broke part, a@host")
    no_problems(page)


def test_a_kickoff_works_on_a_job(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    held = server.hold(user, items=2)
    page = opened(page_of(user), held.id)
    expect(badge(page)).to_have_text("Running")
    button(page, "Run for 5 s").click()
    expect(button(page, "Running…")).to_have_attribute("aria-busy", "true")
    held.let_go()
    expect(page.get_by_role("status").filter(has_text="It ran for some seconds.")).to_be_visible()
    expect(badge(page)).to_have_text("Completed")
    expect(page.locator("#job-title")).to_be_focused()


@pytest.mark.screenshots
def test_errors_of_one_code_run_again(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    failing = server.fail_some(user, items=15)
    server.ended(failing.id)
    page = opened(page_of(user), failing.id)
    page.locator("[data-part=failed]").get_by_role("link", name="7").click()
    expect(tab(page, "Errors")).to_be_focused()
    groups = page.get_by_role("list", name="Errors by code").get_by_role("listitem")
    expect(groups).to_have_count(2)
    expect(groups.first).to_contain_text("SHOP_CLOSED")
    expect(groups.first).to_contain_text("5 items")
    expect(groups.first).to_contain_text("the shop is closed on Mondays")
    screenshot(page, "job-errors")
    failing.mend()
    page.get_by_role("button", name="Reprocess these: SHOP_CLOSED").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Run 5 items with SHOP_CLOSED again?")
    expect(dialog).to_contain_text("the job goes on as run 2")
    dialog.get_by_label("Why?").fill("it is Tuesday")
    dialog.get_by_role("button", name="Run again").click()
    expect(page.locator("[data-part=run]")).to_have_text("run 2")
    expect(badge(page)).to_have_text("Completed")
    expect(page.locator("[data-part=failed]")).to_have_text("2")
    expect(groups).to_have_count(1)
    expect(groups.first).to_contain_text("LABEL_TORN")
    tab(page, "Overview").click()
    again = history(page).filter(has_text="succeeded → queued")
    expect(again).to_contain_text("run 2")
    expect(again).to_contain_text(f"{user} (owner)")
    expect(again).to_contain_text("it is Tuesday")
    expect(history(page)).to_have_count(6)  # none twice, though the stream began anew
    expect(page.locator("[data-way='succeeded>queued']")).to_have_class("way taken")


def test_what_failed_for_good_is_left_alone_when_that_is_asked(
    server: WholeServer, page_of: PageOf, trouble: Trouble
) -> None:
    user = server.somebody()
    failing = server.fail_some(user, items=15)
    server.ended(failing.id)
    page = opened(page_of(user), failing.id)
    trouble.expect("409")
    button(page, "Reprocess all failed").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("all 7 items")
    dialog.get_by_label("Also those that failed for good").uncheck()
    dialog.get_by_label("Give each its full number of tries again").uncheck()
    dialog.get_by_role("button", name="Run again").click()
    expect(page.get_by_role("alert")).to_contain_text("NOTHING_TO_REPROCESS")
    assert server.app.jobs.get(failing.id).run == 1
    failing.mend()
    button(page, "Reprocess all failed").click()
    dialog.get_by_role("button", name="Run again").click()
    expect(page.locator("[data-part=run]")).to_have_text("run 2")
    expect(page.locator("[data-part=done]")).to_have_text("15")
    expect(button(page, "Reprocess all failed")).to_be_hidden()


def test_chosen_items_run_again(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    failing = server.fail_some(user, items=15)
    server.ended(failing.id)
    page = opened(page_of(user), failing.id, "#items")
    chosen = button(page, "Reprocess selected")
    expect(chosen).to_be_disabled()
    failing.mend()
    for row in (3, 5):
        page.locator("#items-grid").get_by_role("checkbox", name=re.compile(rf"\brow {row}$", re.I)).check()
    expect(page.locator("#selected-count")).to_have_text("2 items chosen")
    chosen.click()
    expect(page.get_by_role("dialog")).to_contain_text("Run 2 chosen items again?")
    page.get_by_role("dialog").get_by_role("button", name="Run again").click()
    expect(page.locator("[data-part=run]")).to_have_text("run 2")
    expect(page.locator("[data-part=failed]")).to_have_text("5")
    expect(page.locator("#selected-count")).to_have_text("")


def test_the_grid_is_saved_as_a_file(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    job = server.many(user, items=3)
    server.ended(job)
    page = opened(page_of(user), job)
    with page.expect_download() as csv:
        button(page, "Export CSV").click()
    assert csv.value.suggested_filename == f"job-{job}.csv"
    assert len(Path(csv.value.path()).read_text().splitlines()) == 4
    with page.expect_download() as xlsx:
        button(page, "Export XLSX").click()
    assert Path(xlsx.value.path()).read_bytes().startswith(b"PK")


def test_an_export_that_is_refused_leaves_the_page(server: WholeServer, page_of: PageOf, trouble: Trouble) -> None:
    user = server.somebody()
    job = server.many(user, items=3)
    server.ended(job)
    page = opened(page_of(user), job)
    trouble.expect("429")
    busy = json.dumps({"code": "TOO_MANY_REQUESTS", "message": "too many exports at once"})
    page.route("**/export?format=xlsx", lambda route: route.fulfill(status=429, body=busy))
    button(page, "Export XLSX").click()
    expect(page.get_by_role("alert")).to_contain_text("too many exports at once")
    expect(page.get_by_role("heading", level=1)).to_have_text("many")


def test_a_result_is_kept_or_dismissed(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    page = page_of(user)
    for name, confirm, word, change in (
        ("Commit", "Commit", "Committed", "succeeded → committed"),
        ("Abandon", "Abandon", "Abandoned", "succeeded → abandoned"),
    ):
        job = recipe(server, user, "soup")
        opened(page, job)
        expect(page.get_by_role("link", name="To the mailbox")).to_have_attribute("href", "/ui/mailbox")
        button(page, name).click()
        page.get_by_role("dialog").get_by_label("Why?").fill(f"{word}, as I said")
        page.get_by_role("dialog").get_by_role("button", name=confirm).click()
        expect(badge(page)).to_have_text(word)
        expect(history(page).last).to_contain_text(change)
        expect(history(page).last).to_contain_text(f"{word}, as I said")
        expect(button(page, name)).to_be_hidden()


def test_a_change_in_the_second_a_job_ended_at_is_the_newer_one(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    page = opened(page_of(user), recipe(server, user, "soup"))
    at = ["20:15:07Z", "20:15:07.000001Z", "20:15:07.431000Z", "20:15:08Z"]
    before = page.evaluate(
        """async (moments) => {
          const page = document.querySelector("script[type=module]").src;
          const { isBefore } = await import(new URL("../core/format.js", page));
          return moments.map((one) => moments.filter((other) => isBefore(other, one)).length);
        }""",
        [f"2026-11-16T{one}" for one in at],
    )
    assert before == [0, 1, 2, 3]


def test_a_job_of_one_step_has_no_grid_and_shows_its_result(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    job = recipe(server, user, "soup")
    page = opened(page_of(user), job, "#items")
    expect(page.get_by_role("tab")).to_have_text(["Overview", "Raw JSON"])
    expect(page.get_by_role("region", name="Result").locator("pre")).to_contain_text('"title": "Miller\'s soup"')
    expect(button(page, "Export CSV")).to_be_hidden()
    expect(tab(page, "Overview")).to_have_attribute("aria-selected", "true")


def test_a_failed_job_says_what_and_the_trace_is_for_admins(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    job = recipe(server, user, "mill")
    page = opened(page_of(user), job)
    box = page.locator("[data-part=trouble]")
    expect(box).to_contain_text("Failed: no recipe was found on the page")
    expect(box).to_contain_text("NOT_A_RECIPE")
    expect(page.get_by_text("Stack trace")).to_have_count(0)
    record: dict[str, Any] = {"stack_trace": "Traceback: <b>bold</b>"}
    admin = page_of("root", admin=True)
    admin.route("**/events", lambda route: route.fulfill(**_with(route.fetch().text(), record)))
    opened(admin, job)
    admin.get_by_text("Stack trace").click()
    expect(admin.locator(".trouble pre")).to_have_text("Traceback: <b>bold</b>")


def _with(stream: str, more: dict[str, Any]) -> dict[str, Any]:
    """A stream whose jobs say something more."""

    def changed(found: re.Match[str]) -> str:
        return "data: " + json.dumps({**json.loads(found[1]), **more})

    return {"content_type": "text/event-stream", "body": re.sub(r"data: (\{\"job_id.*\})", changed, stream)}


def test_the_record_is_the_job_as_the_api_has_it(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    job = server.many(user, items=3)
    server.ended(job)
    page = opened(page_of(user, permissions=["clipboard-read", "clipboard-write"]), job)
    tab(page, "Raw JSON").click()
    record = json.loads(page.locator("#record").inner_text())
    assert record["job_id"] == str(job)
    assert record["total_items"] == 3
    button(page, "Copy").click()
    expect(page.get_by_role("status").filter(has_text="Copied.")).to_be_visible()
    assert json.loads(page.evaluate("() => navigator.clipboard.readText()")) == record


def test_tabs_are_moved_through_by_keys_and_stand_in_the_address(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    failing = server.fail_some(user, items=15)
    server.ended(failing.id)
    page = opened(page_of(user), failing.id)
    tab(page, "Overview").focus()
    page.keyboard.press("ArrowLeft")
    expect(tab(page, "Raw JSON")).to_be_focused()
    expect(page).to_have_url(re.compile("#record$"))
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    expect(tab(page, "Items")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("tabpanel", name="Items")).to_be_visible()
    expect(page.get_by_role("tabpanel", name="Overview")).to_be_hidden()
    page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile("#pending$"))
    page.reload()
    expect(tab(page, "Pending")).to_have_attribute("aria-selected", "true")
    expect(page.locator("#pending-grid")).to_contain_text("Nothing waits")
    expect(tab(page, "Overview")).to_have_attribute("tabindex", "-1")


def test_hostile_texts_stay_texts(server: WholeServer, page_of: PageOf) -> None:
    user = f"{server.somebody()}<b>"
    gate = Gate()
    params = {"gate": gate.number, "items": 2}
    job = server.app.acting_as(owner(user)).submit(HOLD, params, title=HOSTILE).job.id
    server.app.acting_as(owner(user)).jobs.cancel(job, reason=HOSTILE)
    page = opened(page_of(user), job)
    expect(page.get_by_role("heading", level=1)).to_have_text(HOSTILE)
    expect(history(page).last).to_contain_text(HOSTILE)
    expect(page.locator("[data-part=trouble]")).to_contain_text(HOSTILE)
    tab(page, "Raw JSON").click()
    expect(page.locator("#record")).to_contain_text(HOSTILE)
    assert page.locator("main img, main script").count() == 0


def test_a_lost_connection_is_told_and_comes_back(server: WholeServer, page_of: PageOf, trouble: Trouble) -> None:
    user = server.somebody()
    held = server.hold(user, items=3)
    page = page_of(user)
    trouble.expect("ERR_FAILED")
    page.route("**/api/jobs/**", lambda route: route.abort("failed"))
    page.goto(f"/ui/jobs/{held.id}")
    expect(page.locator("#connection")).to_contain_text("No connection to the server")
    page.unroute("**/api/jobs/**")
    expect(page.locator("#connection")).to_be_hidden()
    expect(badge(page)).to_have_text("Running")


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_everybody_can_read_the_page(
    server: WholeServer, page_of: PageOf, scheme: Literal["light", "dark"], width: int
) -> None:
    user = server.somebody()
    failing = server.fail_some(user, items=15)
    server.ended(failing.id)
    held = server.hold(user, items=300)
    held.let(120)
    page = page_of(user, color_scheme=scheme, viewport={"width": width, "height": 800})
    opened(page, held.id)
    expect(page.locator("[data-part=done]")).to_have_text("120")
    no_problems(page)
    server.app.acting_as(owner(user)).jobs.cancel(held.id, reason="long enough")
    expect(badge(page)).to_have_text("Canceled")
    no_problems(page)
    opened(page, failing.id)
    for name in ("Overview", "Items", "Pending", "Errors", "Raw JSON"):
        tab(page, name).click()
        expect(page.get_by_role("tabpanel", name=name)).not_to_be_empty()
        no_problems(page)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width, f"{name} scrolls sideways"


@pytest.mark.screenshots
def test_a_picture_of_the_page(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    held = server.hold(user, items=1200, title="spring-catalogue.xlsx")
    held.let(430)
    page = opened(page_of(user), held.id)
    expect(page.locator("[data-part=done]")).to_have_text("430")
    expect(page.locator("[data-part=batches]")).to_have_text("4 of 12")
    assert screenshot(page, "job").exists()
