"""Photos of a recipe in the mailbox: sent from the page, and shown beside what was read of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from penstock_apps.recipes import photo_reader
from tests.applications.recipes import photos
from tests.browser.accessibility import no_problems
from tests.browser.conftest import PageOf
from tests.browser.served import WholeServer
from tests.browser.test_mailbox_page import card, recipes_of, save
from tests.browser.trouble import Trouble


def send(page: Page, *files: Path) -> None:
    page.get_by_label("Photos of a recipe").set_input_files(files)
    page.get_by_role("button", name="Read the photos").click()


def test_photos_are_sent_shown_beside_what_was_read_and_saved(
    server: WholeServer, page_of: PageOf, trouble: Trouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What the library sees is tested without a browser.
    monkeypatch.setattr(photo_reader, "read_picture", photos.see_at_once)
    front, back = tmp_path / "front.jpg", tmp_path / "back.png"
    photos.card().save(front)
    photos.askew().save(back)
    user = server.somebody()
    page = page_of(user)
    page.goto("/ui/mailbox")
    page.get_by_role("button", name="Read the photos").click()
    expect(page.get_by_role("alert").filter(has_text="Choose a photo first.")).to_be_visible()
    send(page, front, back)
    expect(card(page, "Tomato soup")).to_contain_text("From a photo")
    no_problems(page)
    card(page, "Tomato soup").get_by_role("link", name="Open", exact=True).click()
    shown = page.get_by_role("region", name="Photos").get_by_role("img")
    expect(shown).to_have_count(2)
    for image in shown.all():
        image.scroll_into_view_if_needed()
        expect(image).to_have_js_property("complete", True)
        assert image.evaluate("image => image.naturalWidth") > 400
    picture, form = shown.first.bounding_box(), page.get_by_label("Title").bounding_box()
    assert picture is not None
    assert form is not None
    assert picture["x"] + picture["width"] < form["x"], "beside each other"
    no_problems(page)
    page.set_viewport_size({"width": 390, "height": 800})
    picture, form = shown.first.bounding_box(), page.get_by_label("Title").bounding_box()
    assert picture is not None
    assert form is not None
    assert picture["y"] + picture["height"] < form["y"], "on a telephone one above the other"
    save(page)
    expect(page.get_by_role("status").filter(has_text="is saved")).to_be_visible()
    [kept] = recipes_of(server).repository.all_saved(user, after=None, limit=10)
    page.goto(f"/ui/mailbox?recipe={kept.id}")
    expect(page.get_by_role("region", name="Photos").get_by_role("img")).to_have_count(2)
    stranger = page_of(server.somebody())
    trouble.expect("404")
    stranger.goto(f"/ui/mailbox?open={kept.parse_job_id}")
    expect(stranger.get_by_role("heading", name="There is no such recipe")).to_be_visible()


def test_a_photo_that_cannot_be_read_is_told_and_not_offered_again(
    server: WholeServer, page_of: PageOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(photo_reader, "read_picture", photos.see_at_once)
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"words")
    page = page_of(server.somebody())
    page.goto("/ui/mailbox")
    send(page, broken)
    failure = page.get_by_role("listitem").filter(has_text="PICTURE_UNSUPPORTED")
    expect(failure).to_contain_text(re.compile("picture 1 .broken.jpg.: the file is no picture"))
    expect(failure.get_by_role("button", name="Try again")).to_have_count(0)
    send(page, *[broken] * 9)
    expect(page.get_by_role("alert").filter(has_text="These are 9 photos: up to 8 are read together.")).to_be_visible()
