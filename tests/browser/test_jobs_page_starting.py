"""Starting jobs from the page of jobs: each application's form, files chosen or dropped, and what goes wrong."""

from __future__ import annotations

import re
from pathlib import Path
from uuid import UUID

import pytest
from playwright.sync_api import FilePayload, Locator, Page, Request, expect

from penstock import JobState, owner
from penstock_apps.products.retailer import CATALOGUE, sample_csv, sample_image
from tests.browser.accessibility import no_problems
from tests.browser.conftest import PageOf
from tests.browser.served import WholeServer
from tests.browser.trouble import Trouble

A_JOB = re.compile(r"/ui/jobs/[0-9a-f-]{36}$")
DROP = """(zone, [name, text]) => {
    const data = new DataTransfer();
    data.items.add(new File([text], name, {type: "text/plain"}));
    const told = (type) => zone.dispatchEvent(
        new DragEvent(type, {dataTransfer: data, bubbles: true, cancelable: true}));
    told("dragenter");
    const lit = zone.classList.contains("over");
    told("drop");
    return lit;
}"""


@pytest.fixture
def user(server: WholeServer) -> str:
    return server.somebody()


@pytest.fixture
def page(page_of: PageOf, user: str) -> Page:
    """Somebody without jobs: the forms are there to be chosen from."""
    one = page_of(user)
    one.goto("/ui/jobs")
    expect(one.get_by_role("heading", name="No jobs yet")).to_be_visible()
    return one


def form(page: Page, title: str) -> Locator:
    """The form of this title, opened."""
    page.get_by_role("heading", name=title).click()
    found = page.get_by_role("form", name=title)
    expect(found).to_be_visible()
    return found


def job_of(page: Page) -> UUID:
    """The job whose page this is."""
    expect(page).to_have_url(A_JOB)
    return UUID(page.url[-36:])


def photos(server: WholeServer, name: str) -> Path:
    folder = server.directory / name
    folder.mkdir()
    (folder / "one.png").write_bytes(sample_image(0))
    return folder


def test_a_table_is_uploaded(server: WholeServer, page: Page) -> None:
    asked = form(page, "Look products up")
    asked.get_by_label("A table, or pictures").set_input_files(
        {"name": "products.csv", "mimeType": "text/csv", "buffer": sample_csv()}
    )
    expect(asked.get_by_role("list", name="Chosen")).to_contain_text("products.csv")
    asked.get_by_role("button", name="Look them up").click()
    job = server.ended(job_of(page))
    assert job.kind == "csv"
    assert job.title == "products.csv"


def test_the_columns_of_a_table_are_shown_and_put_right(server: WholeServer, page: Page) -> None:
    asked = form(page, "Look products up")
    table = f"Regal;EAN-13;Name\n{CATALOGUE[0]['id']};{CATALOGUE[1]['ean']};Kettle\n".encode()
    chosen = asked.get_by_label("A table, or pictures")
    columns = asked.get_by_role("group", name="Columns of the table")
    chosen.set_input_files({"name": "photo.png", "mimeType": "image/png", "buffer": sample_image(0)})
    expect(columns).to_be_hidden()
    chosen.set_input_files({"name": "stock.csv", "mimeType": "text/csv", "buffer": table})
    expect(columns).to_contain_text("split at ';'")
    expect(columns.get_by_role("row")).to_have_count(4)
    expect(columns.get_by_role("row", name="EAN-13")).to_contain_text(CATALOGUE[1]["ean"])
    shelf, number, name = (columns.get_by_label(f"What {one} is taken for") for one in ("Regal", "EAN-13", "Name"))
    for select, value in ((shelf, ""), (number, "gtin"), (name, "title")):
        expect(select).to_have_value(value)
    shelf.select_option("Title")
    expect(name).to_have_value("")  # a field is in one column
    shelf.select_option("Article number")
    number.select_option("not used")
    name.select_option("Title")
    no_problems(page)
    asked.get_by_role("button", name="Look them up").click()
    job = server.ended(job_of(page))
    assert job.params["mapping"] == {"Regal": "sku", "EAN-13": None, "Name": "title"}


def test_several_pictures_are_one_job(server: WholeServer, page: Page) -> None:
    asked = form(page, "Look products up")
    asked.get_by_label("A table, or pictures").set_input_files(
        [FilePayload(name=f"{at}.png", mimeType="image/png", buffer=sample_image(at)) for at in (0, 3)]
    )
    expect(asked.get_by_role("listitem")).to_have_count(2)
    asked.get_by_role("button", name="Look them up").click()
    assert server.ended(job_of(page)).kind == "image"


def test_an_upload_shows_how_far_it_is_and_can_be_stopped(server: WholeServer, user: str, page: Page) -> None:
    keys: list[str | None] = []
    is_upload = re.compile(r"/api/jobs$").search  # beside it the page asks what columns are taken for
    page.on("request", lambda one: keys.append(one.headers.get("idempotency-key")) if is_upload(one.url) else None)
    network = page.context.new_cdp_session(page)
    slow = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 300_000}
    network.send("Network.enable")
    network.send("Network.emulateNetworkConditions", slow)
    asked = form(page, "Look products up")
    table = b"title,brand,sku\n" + b"Kettle,Weir,S-1\n" * 150_000
    asked.get_by_label("A table, or pictures").set_input_files(
        {"name": "large.csv", "mimeType": "text/csv", "buffer": table}
    )
    expect(asked.get_by_role("list", name="Chosen")).to_contain_text("2.4 MB")
    send = asked.get_by_role("button", name="Look them up")
    send.click()
    expect(send).to_be_disabled()
    expect(asked.locator("[data-sent]")).to_have_text(re.compile(r"^[1-9]\d? %$"))
    bar = asked.get_by_role("progressbar", name="Sent so far")
    assert 0 < bar.evaluate("bar => bar.value") < 1
    asked.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("The upload was stopped.")).to_be_visible()
    expect(bar).to_be_hidden()
    network.send("Network.emulateNetworkConditions", slow | {"uploadThroughput": -1})
    send.click()
    job_id = job_of(page)
    assert keys[0] is not None
    assert keys == [keys[0]] * 2, "the same attempt has the same key"
    assert [job.id for job in server.app.acting_as(owner(user)).jobs.list()] == [job_id]
    server.app.acting_as(owner(user)).jobs.cancel(job_id, reason="so many rows would keep the other tests' worker busy")


def test_a_document_is_dropped_and_handed_in(server: WholeServer, page: Page) -> None:
    asked = form(page, "Hand in a document")
    zone = asked.locator("[data-drop]")
    assert zone.evaluate(DROP, ["sluice.txt", "A sluice lets water through when it is wanted."]), "the zone lights up"
    expect(zone).not_to_have_class(re.compile("over"))
    expect(asked.get_by_role("list", name="Chosen")).to_contain_text("sluice.txt 46 B")
    asked.get_by_role("button", name="Hand it in").click()
    job = server.ended(job_of(page))
    assert (job.kind, job.state) == ("document", JobState.SUCCEEDED)


def test_a_recipe_is_read_from_its_address(server: WholeServer, page: Page) -> None:
    asked = form(page, "Read a recipe")
    asked.get_by_label("The page's address").fill(f"http://{server.site}/soup")
    asked.get_by_role("button", name="Read it").click()
    assert server.app.jobs.get(job_of(page)).kind == "recipe"


def test_a_catalog_is_made_scanned_and_worked_on(server: WholeServer, page: Page) -> None:
    asked = form(page, "New photo catalog")
    asked.get_by_label("Name").fill("Barcodes & labels")
    asked.get_by_label("Folders").fill(f"\n  {photos(server, 'barcodes')}  \n\n")
    asked.get_by_role("button", name="Make it and scan it").click()
    scanned = server.ended(job_of(page))
    assert (scanned.kind, scanned.state) == ("scan", JobState.SUCCEEDED)
    page.goto("/ui/jobs")
    page.get_by_text("Start a job").click()
    asked = form(page, "Work on a catalog")
    asked.get_by_label("Catalog").select_option("Barcodes & labels")
    asked.get_by_label("What to do").select_option("Find copies")
    asked.get_by_role("button", name="Start").click()
    assert server.ended(job_of(page)).kind == "duplicates"


def test_what_is_wrong_is_said_at_its_field(page: Page, server: WholeServer, trouble: Trouble) -> None:
    trouble.expect("console error: .* 422 ")
    asked = form(page, "New photo catalog")
    asked.get_by_label("Name").fill("Elsewhere")
    folders = asked.get_by_label("Folders")
    folders.fill("/etc")
    asked.get_by_role("button", name="Make it and scan it").click()
    expect(folders).to_have_attribute("aria-invalid", "true")
    expect(folders).to_have_accessible_description(re.compile("'/etc' is not a folder below the allowed roots"))
    expect(folders).to_be_focused()
    no_problems(page)
    folders.fill(str(photos(server, "mended")))
    asked.get_by_role("button", name="Make it and scan it").click()
    job_of(page)


def test_what_is_wrong_elsewhere_is_said_above_the_form(page: Page, trouble: Trouble) -> None:
    trouble.expect("no answer: POST")
    trouble.allow("console error: Failed to load resource")
    page.route("**/parse-url/async", lambda route: route.abort("connectionrefused"))
    asked = form(page, "Read a recipe")
    asked.get_by_label("The page's address").fill("http://elsewhere.example/")
    send = asked.get_by_role("button", name="Read it")
    send.click()
    expect(asked.get_by_role("alert")).to_contain_text("The server cannot be reached")
    expect(send).to_be_enabled()


def test_a_second_click_starts_nothing_more(server: WholeServer, user: str, page: Page) -> None:
    sent: list[Request] = []
    page.on("request", lambda one: sent.append(one) if one.method == "POST" else None)
    asked = form(page, "Read a recipe")
    asked.get_by_label("The page's address").fill(f"http://{server.site}/soup")
    asked.evaluate("form => { form.requestSubmit(); form.requestSubmit(); }")
    job_id = job_of(page)
    assert len(sent) == 1
    assert [job.id for job in server.app.acting_as(owner(user)).jobs.list()] == [job_id]


def test_something_that_was_made_and_not_started_is_not_made_twice(
    server: WholeServer, page: Page, trouble: Trouble
) -> None:
    trouble.expect("no answer: POST .*/scan")
    trouble.allow("console error: Failed to load resource")
    made: list[Request] = []
    page.on("request", lambda one: made.append(one) if one.url.endswith("/api/catalogs") else None)
    page.route("**/scan", lambda route: route.abort("connectionrefused"), times=1)
    asked = form(page, "New photo catalog")
    asked.get_by_label("Name").fill("Once")
    asked.get_by_label("Folders").fill(str(photos(server, "once")))
    send = asked.get_by_role("button", name="Make it and scan it")
    send.click()
    expect(asked.get_by_role("alert")).to_be_visible()
    send.click()
    job_of(page)
    assert len(made) == 1


def test_the_forms_work_by_keyboard(page: Page) -> None:
    page.locator("#start > summary").focus()
    document = page.locator("#start summary", has_text="Hand in a document")
    for _ in range(page.locator("#start summary").count()):
        page.keyboard.press("Tab")
        if document.evaluate("it => it === document.activeElement"):
            break
    page.keyboard.press("Enter")
    expect(page.get_by_role("form", name="Hand in a document")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_label("The document")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Hand it in")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_label("The document")).to_be_focused()
