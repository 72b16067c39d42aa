"""The page of catalogs: what the last scan found, what it asks, and what can be done."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from PIL import Image
from playwright.sync_api import expect

from penstock import owner
from penstock_apps.catalogs.service import Catalogs
from tests.browser.accessibility import no_problems
from tests.browser.artifacts import screenshot
from tests.browser.served import WholeServer

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.browser.conftest import PageOf
    from tests.browser.trouble import Trouble

PHONE = {"width": 380, "height": 800}


@pytest.fixture
def user(server: WholeServer) -> str:
    return server.somebody()


@pytest.fixture
def page(page_of: PageOf, user: str) -> Page:
    return page_of(user)


def catalogs_of(server: WholeServer) -> Catalogs:
    [service] = [each.service for each in server.app.applications if isinstance(each.service, Catalogs)]
    return service


def folder_of(server: WholeServer, user: str, names: str) -> Path:
    folder = server.directory / f"photos of {user}"
    folder.mkdir()
    for number, name in enumerate(names):
        Image.new("RGB", (40, 30), (number * 60, 90, 200)).save(folder / f"{name}.png")
    return folder


def scanned(server: WholeServer, page: Page) -> None:
    """Wait for the job whose page has just opened."""
    expect(page).to_have_url(re.compile("/ui/jobs/"))
    server.ended(UUID(page.url.rpartition("/")[2]))
    page.goto("/ui/catalogs")


def test_a_catalog_is_made_asks_is_answered_changed_and_deleted(
    server: WholeServer, page: Page, user: str, trouble: Trouble
) -> None:
    folder = folder_of(server, user, "abc")
    (folder / "broken.jpg").write_text("no picture")
    page.goto("/ui/catalogs")
    expect(page.get_by_text("No catalogs yet")).to_be_visible()
    no_problems(page)
    page.get_by_role("button", name="New catalog").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("By the sea")
    dialog.get_by_label("Folders").fill("/etc")
    trouble.expect("422")
    dialog.get_by_role("button", name="Make it and scan it").click()
    expect(dialog.get_by_role("alert").filter(has_text="not a folder below the allowed roots")).to_be_visible()
    no_problems(page)
    dialog.get_by_label("Folders").fill(str(folder))
    dialog.get_by_role("button", name="Make it and scan it").click()
    scanned(server, page)
    card = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="By the sea"))
    expect(card).to_contain_text("3 photos, 1 could not be read")
    expect(card.get_by_role("group", name="A question")).to_have_count(0)
    for name in ("a", "b"):
        (folder / f"{name}.png").unlink()
    card.get_by_role("button", name="Scan", exact=True).click()
    scanned(server, page)
    question = card.get_by_role("group", name="A question")
    expect(question).to_contain_text("2 photos are not there any more, and nothing was forgotten. Is a disk missing?")
    no_problems(page)
    screenshot(page, "catalogs")
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    no_problems(page)
    screenshot(page, "catalogs-phone")
    page.emulate_media(color_scheme="dark")
    screenshot(page, "catalogs-phone-dark")
    page.set_viewport_size({"width": 1280, "height": 800})
    question.get_by_role("button", name="Forget 2 photos").click()
    expect(page.get_by_role("dialog")).to_contain_text("Forget 2 photos of “By the sea”?")
    page.get_by_role("dialog").get_by_role("button", name="Keep as it is").click()
    question.get_by_role("button", name="Forget 2 photos").click()
    page.get_by_role("dialog").get_by_role("button", name="Scan and forget them").click()
    scanned(server, page)
    expect(card).to_contain_text("1 photo, 1 could not be read")
    expect(card.get_by_role("group", name="A question")).to_have_count(0)
    card.get_by_role("button", name="Change").click()
    page.get_by_role("dialog").get_by_label("Name").fill("At the lake <b>")
    screenshot(page, "catalogs-change")
    no_problems(page)
    page.get_by_role("dialog").get_by_role("button", name="Change it").click()
    expect(page.get_by_role("heading", name="At the lake <b>")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(0)
    lake = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="At the lake <b>"))
    expect(lake).to_contain_text("1 photo, 1 could not be read")  # its folders are the same
    lake.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete it").click()
    expect(page.get_by_text("No catalogs yet")).to_be_visible()
    expect(page.get_by_role("heading", name="Catalogs", exact=True)).to_be_focused()


def test_many_catalogs_come_a_page_at_a_time_and_one_that_is_gone_is_said(
    server: WholeServer, page: Page, user: str, trouble: Trouble
) -> None:
    catalogs, folder = catalogs_of(server), str(folder_of(server, user, ""))
    made = [catalogs.create(f"Catalog {number}", [folder], user=user) for number in range(101)]
    page.goto("/ui/catalogs")
    cards = page.locator("[data-catalog]")
    expect(cards).to_have_count(100)
    page.get_by_role("button", name="More catalogs").click()
    expect(cards).to_have_count(101)
    expect(page.get_by_role("button", name="More catalogs")).to_have_count(0)
    first = min(made, key=lambda catalog: str(catalog.id))
    catalogs.remove(first.id, by=owner(user))
    trouble.expect("404")
    cards.first.get_by_role("button", name="Find copies").click()
    expect(page.get_by_role("alert")).to_contain_text(f"there is no catalog {first.id}")
    expect(cards).to_have_count(100)
