"""A person who has read nothing: from the link in the terminal to an exported table, and to who canceled a job."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta
from pathlib import Path

from playwright.sync_api import Page, expect
from sqlalchemy import update

from penstock import admin, owner
from penstock.lifecycle.states import ACTIVE
from penstock.store.tables import jobs
from tests.browser.accessibility import no_problems
from tests.browser.conftest import PageOf
from tests.browser.served import WholeServer

REFUSED = 3


def test_upload_watch_fix_the_failures_and_export(server: WholeServer, page_of: PageOf, tmp_path: Path) -> None:
    user = server.somebody()
    page = page_of(None)
    page.goto(server.link(user))
    expect(page.get_by_role("heading", name="No jobs yet")).to_be_visible()

    page.get_by_role("heading", name="Look products up").click()
    asked = page.get_by_role("form", name="Look products up")
    with page.expect_download() as offered:
        asked.get_by_role("link", name="A sample to try it with").click()
    sample = tmp_path / offered.value.suggested_filename
    offered.value.save_as(sample)
    for kind in ("csv", "image"):  # the shop is shared: what it refuses next is for us alone
        for job in server.app.jobs.list(states=ACTIVE, kind=kind):
            server.ended(job.id)
    server.shop.fail(times=REFUSED, status=400)
    asked.get_by_label("A table, or pictures").set_input_files(sample)
    asked.get_by_role("button", name="Look them up").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("products.csv")
    expect(page.locator("main .badge").first).to_have_text("Completed")
    before = _figures(page)
    assert before["Failed"] == REFUSED + 1, "those the shop refused, and a row with nothing to look up"

    page.get_by_role("tab", name="Errors").click()
    group = page.get_by_role("listitem").filter(has_text="PROVIDER_REFUSED")
    group.get_by_role("button", name="Reprocess these").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(str(REFUSED))
    dialog.get_by_role("button", name="Run again").click()
    expect(page.locator("[data-part=run]")).to_have_text("run 2")
    expect(page.locator("main .badge").first).to_have_text("Completed")
    after = _figures(page)
    assert after["Failed"] == 1
    assert after["Done"] == before["Done"] + REFUSED
    assert after["All items"] == before["All items"]

    with page.expect_download() as saved:
        page.get_by_role("button", name="Export CSV").click()
    text = Path(saved.value.path()).read_text("utf-8-sig")
    lines = list(csv.DictReader(io.StringIO(text)))
    assert len(lines) == after["All items"]
    assert sum(line["status"] == "DONE" for line in lines) == after["Done"]
    no_problems(page)


def test_who_canceled_yesterdays_job(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    job = server.app.acting_as(owner(user)).submit("many", {"gate": 0, "items": 1}, hold=True, title="prices.csv")
    server.app.acting_as(admin("root")).jobs.cancel(job.job.id, reason="the supplier sent the wrong file")
    yesterday = datetime.now(UTC) - timedelta(days=1)
    with server.app.store.engine.begin() as connection:
        connection.execute(update(jobs).where(jobs.c.id == job.job.id).values(created_at=yesterday))
    today = server.app.acting_as(owner(user)).submit("many", {"gate": 0, "items": 1}, hold=True, title="today.csv")
    server.app.acting_as(owner(user)).jobs.cancel(today.job.id, reason="mine")

    page = page_of(user)
    page.goto("/ui/jobs")
    page.get_by_label("Status").select_option(label="Canceled")
    expect(page.get_by_role("link", name="today.csv")).to_be_visible()
    page.get_by_label("Created to").fill(yesterday.date().isoformat())
    expect(page.get_by_role("link", name="today.csv")).to_have_count(0)
    page.get_by_role("link", name="prices.csv").click()
    history = page.get_by_role("region", name="Events")
    expect(history.get_by_role("listitem").last).to_contain_text("root (admin)")
    expect(history.get_by_role("listitem").last).to_contain_text("the supplier sent the wrong file")


def _figures(page: Page) -> dict[str, int]:
    """The counters as the page shows them."""
    names = page.locator(".counters dt").all_inner_texts()
    values = page.locator(".counters dd").all_inner_texts()
    return {name: int(value.replace(",", "")) for name, value in zip(names, values, strict=True)}
