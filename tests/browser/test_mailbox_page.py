"""The mailbox page: recipes are opened, edited, saved and dismissed, whatever is in them and whoever else does so."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import pytest
from playwright.sync_api import Dialog, Locator, Page, Route, expect

from penstock import JobState, owner
from penstock.lifecycle import Actor
from penstock_apps.recipes import samples
from penstock_apps.recipes.service import Recipes
from tests.browser.accessibility import no_problems
from tests.browser.artifacts import screenshot
from tests.browser.conftest import PageOf
from tests.browser.served import WholeServer
from tests.browser.trouble import Trouble

SOUP = "Miller's soup"
BREAD = "Bread from the mill"
INGREDIENTS: list[Any] = [{"text": "olive oil", "quantity_display": "2", "unit": "tbsp"}, "Salt", "500 g flour"]
CLICK = "<img src=x onerror=\"document.title='taken'\">"
HOSTILE = (
    '<script type="application/ld+json">{"@type": "Recipe", "name": "&lt;img src=x onerror=alert(1)&gt; soup", '
    '"recipeIngredient": ["1 &lt;b&gt;pea&lt;/b&gt;"], "image": "javascript:alert(1)"}</script><h1>Soup</h1>'
)


def recipes_of(server: WholeServer) -> Recipes:
    [service] = [guest.service for guest in server.app.applications if isinstance(guest.service, Recipes)]
    return service


def read(server: WholeServer, user: str, path: str = "/soup") -> UUID:
    """A page of the sample site in somebody's mailbox."""
    job = recipes_of(server).ask(f"http://{server.site}{path}", user=user).job
    return server.ended(job.id).id


def card(page: Page, title: str) -> Locator:
    return page.get_by_role("listitem").filter(has=page.get_by_role("heading", name=title, exact=True))


def opened(page: Page, job_id: UUID) -> Page:
    page.goto(f"/ui/mailbox?open={job_id}")
    expect(page.get_by_label("Title")).to_be_visible()
    return page


def save(page: Page) -> None:
    page.get_by_role("button", name="Save the recipe").click()


def card_of(**changes: Any) -> dict[str, Any]:
    """A card as the server tells of it."""
    job: dict[str, Any] = {
        "id": "01890000-0000-7000-8000-000000000001",
        "job_type": "url",
        "url": "https://example.com/soup",
        "status": "COMPLETE",
        "completed_at": datetime.now(UTC).isoformat(),
        "expires_at": None,
        "warnings": [],
        "preview": {"title": "Soup", "source_host": "example.com"},
    }
    return job | changes


def mail_of(page: Page, **changes: Any) -> None:
    """A mailbox with one card, instead of the server's."""
    answer = {"jobs": [card_of(**changes)], "next": None}
    page.route("**/recipes/parse-url/jobs?*", lambda route: route.fulfill(json=answer))


def mail_in_pages(page: Page, titles: list[list[str]]) -> None:
    """A mailbox of several pages, instead of the server's."""

    def answer(route: Route) -> None:
        place = int(parse_qs(urlsplit(route.request.url).query).get("cursor", ["0"])[0])
        jobs = [
            card_of(id=f"01890000-0000-7000-8000-{place:06}{number:06}", preview={"title": title, "source_host": None})
            for number, title in enumerate(titles[place])
        ]
        route.fulfill(json={"jobs": jobs, "next": str(place + 1) if place + 1 < len(titles) else None})

    page.route("**/recipes/parse-url/jobs?*", answer)


def test_a_long_mailbox_is_shown_page_by_page(server: WholeServer, page_of: PageOf) -> None:
    page = page_of(server.somebody())
    mail_in_pages(page, [["Soup 5", "Soup 4"], ["Soup 3", "Soup 2"], ["Soup 1"]])
    page.goto("/ui/mailbox")
    more = page.get_by_role("button", name="More recipes")
    expect(page.get_by_role("heading", name="Soup")).to_have_text(["Soup 5", "Soup 4"])
    expect(page.locator("[data-count]")).to_have_text("2+")
    more.click()
    expect(page.get_by_role("heading", name="Soup")).to_have_count(4)
    expect(card(page, "Soup 3").get_by_role("link", name="Open", exact=True)).to_be_focused()
    more.click()
    expect(page.get_by_role("heading", name="Soup")).to_have_text([f"Soup {number}" for number in (5, 4, 3, 2, 1)])
    expect(more).to_be_hidden()
    expect(page.locator("[data-count]")).to_have_text("5")
    expect(page.get_by_text("is in the mailbox")).to_have_count(0)


def test_a_recipe_is_opened_edited_and_saved(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    job_id = read(server, user)
    page = page_of(user)
    page.goto("/ui/mailbox")
    expect(card(page, SOUP)).to_contain_text("127.0.0.1")
    card(page, SOUP).get_by_role("link", name="Open", exact=True).click()
    expect(page).to_have_url(re.compile(rf"\?open={job_id}$"))
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    page.get_by_label("Title").fill("Soup of the mill")
    page.get_by_label("Ingredients").fill("2 tbsp rye flour\n2 l water")
    page.get_by_role("button", name="Down: step 1").click()
    page.get_by_role("button", name="Add a step").click()
    expect(page.get_by_label("Step 3", exact=True)).to_be_focused()
    page.keyboard.type("Serve it.")
    page.get_by_label("Tags").fill("soup, winter, soup")
    save(page)
    expect(page.get_by_role("status").filter(has_text="is saved")).to_be_visible()
    expect(page.get_by_role("link", name="See its job")).to_have_attribute("href", f"/ui/jobs/{job_id}")
    expect(page.get_by_role("heading", name="The mailbox is empty")).to_be_visible()
    assert server.app.jobs.get(job_id).state is JobState.COMMITTED
    [kept] = recipes_of(server).repository.all_saved(user, after=None, limit=10)
    assert kept.title == "Soup of the mill"
    assert kept.parse_job_id == job_id
    flour, water = kept.body["ingredients"]
    assert flour["unit"] == "tablespoon", "a line that was not changed stays what it was"
    assert water == "2 l water"
    assert [step[:9] for step in kept.body["steps"]] == ["Add the w", "Brown the", "Serve it."]
    assert kept.body["tags"] == ["soup", "winter"]
    assert kept.body["total_minutes"] == 35


def test_a_recipe_is_dismissed_once_one_is_sure(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    job_id = read(server, user, "/bread")
    page = page_of(user)
    page.goto("/ui/mailbox")
    card(page, BREAD).get_by_role("button", name="Dismiss").click()
    question = page.get_by_role("dialog")
    expect(question).to_contain_text("leaves the mailbox for good")
    page.keyboard.press("Escape")
    expect(question).to_have_count(0)
    assert server.app.jobs.get(job_id).state is JobState.SUCCEEDED
    card(page, BREAD).get_by_role("button", name="Dismiss").click()
    question.get_by_label("Why?").fill("too much salt")
    question.get_by_role("button", name="Dismiss it").click()
    expect(page.get_by_role("heading", name="The mailbox is empty")).to_be_visible()
    last = server.app.jobs.history(job_id)[-1]
    assert last.to_state is JobState.ABANDONED
    assert (last.actor, last.actor_id, last.reason) == (Actor.OWNER, user, "too much salt")


def test_what_is_wrong_is_said_at_its_field(server: WholeServer, page_of: PageOf, trouble: Trouble) -> None:
    user = server.somebody()
    job_id = read(server, user)
    page = opened(page_of(user), job_id)
    page.get_by_label("Title").fill("  ")
    save(page)
    expect(page.get_by_label("Title")).to_have_accessible_description("A recipe needs a title.")
    expect(page.get_by_label("Title")).to_be_focused()
    page.get_by_label("Title").fill("Soup")
    page.get_by_label("Servings").fill("four")
    save(page)
    expect(page.get_by_label("Servings")).to_have_accessible_description("Servings: a whole number, please.")
    trouble.expect("422")
    page.get_by_label("Servings").fill("5000")
    save(page)
    expect(page.get_by_label("Servings")).to_have_accessible_description("Input should be less than or equal to 1000.")
    expect(page.get_by_label("Servings")).to_be_focused()
    assert server.app.jobs.get(job_id).state is JobState.SUCCEEDED
    page.get_by_label("Servings").fill("5")
    save(page)
    expect(page.get_by_role("status").filter(has_text="is saved")).to_be_visible()


def test_who_comes_too_late_is_told_and_may_save_it_all_the_same(
    server: WholeServer, page_of: PageOf, trouble: Trouble
) -> None:
    user = server.somebody()
    page = opened(page_of(user), job_id := read(server, user))
    server.app.acting_as(owner(user)).jobs.abandon(job_id)
    trouble.expect("409")
    save(page)
    expect(page.get_by_role("alert").filter(has_text="no longer here")).to_be_visible()
    assert recipes_of(server).repository.all_saved(user, after=None, limit=10) == []
    page.get_by_role("button", name="Save it as a new recipe").click()
    expect(page.get_by_role("heading", name="The mailbox is empty")).to_be_visible()
    [kept] = recipes_of(server).repository.all_saved(user, after=None, limit=10)
    assert (kept.title, kept.parse_job_id) == (SOUP, None)
    page.goto(f"/ui/mailbox?open={job_id}")
    expect(page.get_by_role("heading", name="No longer in the mailbox")).to_be_visible()


def test_dismissing_what_is_gone_is_told(server: WholeServer, page_of: PageOf, trouble: Trouble) -> None:
    user = server.somebody()
    job_id = read(server, user)
    page = page_of(user)
    page.goto("/ui/mailbox")
    card(page, SOUP).get_by_role("button", name="Dismiss").click()
    recipes_of(server).save(user, SOUP, {}, job_id)
    trouble.expect("409")
    page.get_by_role("button", name="Dismiss it").click()
    expect(page.get_by_role("alert").filter(has_text="was saved or dismissed meanwhile")).to_be_visible()
    expect(page.get_by_role("heading", name="The mailbox is empty")).to_be_visible()
    assert server.app.jobs.get(job_id).state is JobState.COMMITTED


def test_changes_are_not_lost_without_a_question(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    read(server, user)
    page = page_of(user)
    page.goto("/ui/mailbox")
    open_it = card(page, SOUP).get_by_role("link", name="Open", exact=True)
    open_it.click()
    page.get_by_label("Notes").wait_for()
    page.go_back()  # nothing was changed, nothing is asked
    expect(open_it).to_be_focused()
    open_it.click()
    page.get_by_label("Notes").fill("more salt")
    page.go_back()
    question = page.get_by_role("dialog")
    expect(question).to_contain_text("Leave without saving?")
    question.get_by_role("button", name="Keep as it is").click()
    expect(page.get_by_label("Notes")).to_have_value("more salt")
    asked: list[str] = []

    def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    page.once("dialog", stay)
    page.close(run_before_unload=True)
    expect(page.get_by_label("Notes")).to_have_value("more salt")
    assert asked == ["beforeunload"]
    page.get_by_role("button", name="Close", exact=True).click()
    question.get_by_role("button", name="Leave without saving").click()
    expect(open_it).to_be_focused()
    expect(page).to_have_url(re.compile("/ui/mailbox$"))
    open_it.click()
    expect(page.get_by_label("Notes")).to_have_value("")


def test_a_page_is_added_and_comes_by_itself(server: WholeServer, page_of: PageOf, trouble: Trouble) -> None:
    user = server.somebody()
    page = page_of(user)
    page.goto("/ui/mailbox")
    expect(page.get_by_role("heading", name="The mailbox is empty")).to_be_visible()
    no_problems(page)
    page.get_by_role("button", name="Add a page").click()
    field = page.get_by_label("Address of a page with a recipe")
    expect(field).to_be_focused()
    trouble.expect("422")
    field.fill("ftp://example.com/soup")
    page.keyboard.press("Enter")
    expect(field).to_have_attribute("aria-invalid", "true")
    field.fill(f"http://{server.site}/bread")
    page.keyboard.press("Enter")
    expect(card(page, BREAD)).to_be_visible()
    expect(field).to_have_value("")
    field.fill(f"http://{server.site}{samples.WITHOUT_RECIPE}")
    page.keyboard.press("Enter")
    failures = page.get_by_role("region", name="Could not be read")
    expect(failures).to_contain_text("NOT_A_RECIPE")
    expect(failures.get_by_role("link", name="See its job")).to_be_visible()
    expect(page.get_by_role("region", name="On its way")).to_be_hidden()


def test_a_page_on_its_way_is_shown_and_can_be_stopped(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    address = f"http://{server.site}/never"
    job_id = server.app.acting_as(owner(user)).submit("recipe", {"url": address}, title=address, hold=True).job.id
    page = page_of(user)
    page.goto("/ui/mailbox")
    way = page.get_by_role("region", name="On its way")
    expect(way).to_contain_text(address)
    way.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Stop reading it").click()
    expect(way).to_be_hidden()
    assert server.app.jobs.get(job_id).state is JobState.CANCELED


def test_saved_recipes_are_changed_and_removed(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    kept = recipes_of(server)
    for number in range(30):
        kept.save(user, f"Recipe {number}", {"notes": "old", "servings": 3, "ingredients": INGREDIENTS}, None)
    page = page_of(user)
    page.goto("/ui/mailbox")
    page.get_by_role("tab", name="Saved recipes").click()
    expect(page).to_have_url(re.compile("view=saved$"))
    cards = page.get_by_role("tabpanel", name="Saved recipes").get_by_role("heading", level=2)
    expect(cards).to_have_count(24)
    no_problems(page)
    page.get_by_role("button", name="More recipes").click()
    expect(cards).to_have_count(30)
    expect(page.get_by_role("button", name="More recipes")).to_have_count(0)
    card(page, "Recipe 29").get_by_role("link", name="Open", exact=True).click()
    expect(page.get_by_label("Ingredients")).to_have_value("2 tbsp olive oil\nSalt\n500 g flour")
    page.get_by_label("Notes").fill("")
    page.get_by_label("Title").fill("The best")
    page.get_by_role("button", name="Save the changes").click()
    expect(cards.first).to_have_text("The best")
    changed = kept.repository.all_saved(user, after=None, limit=1)[0]
    assert (changed.title, changed.body["servings"], changed.body.get("notes")) == ("The best", 3, None)
    assert changed.body["ingredients"][0] == INGREDIENTS[0], "what another client saved stays what it was"
    card(page, "The best").get_by_role("button", name="Remove").click()
    page.get_by_role("button", name="Remove it").click()
    expect(cards.first).to_have_text("Recipe 28")
    assert len(kept.repository.all_saved(user, after=None, limit=50)) == 29


def test_texts_from_pages_stay_texts(server: WholeServer, page_of: PageOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(samples.PAGES, "/hostile", HOSTILE)
    user = server.somebody()
    page = page_of(user)
    job_id = read(server, user, "/hostile")
    page.goto("/ui/mailbox")
    title = page.get_by_role("listitem").get_by_role("heading")
    expect(title).to_contain_text("soup")
    words = title.inner_text()
    opened(page, job_id)
    expect(page.get_by_label("Title")).to_have_value(words)
    expect(page.get_by_text("Please check")).to_be_visible()
    page.get_by_label("Address of a picture").fill("javascript:alert(1)")
    expect(page.get_by_role("link", name=re.compile("^Visit javascript"))).to_have_count(0)
    mail_of(page, warnings=[CLICK], url="javascript:alert(1)", preview={"title": CLICK * 20, "source_host": CLICK})
    page.goto("/ui/mailbox")
    shown = page.get_by_role("listitem").filter(has_text="onerror")
    expect(shown.get_by_role("heading")).to_have_text(CLICK * 20)
    expect(shown.get_by_role("list", name="Warnings")).to_have_text(CLICK)
    expect(shown.get_by_role("link")).to_have_count(1)
    expect(page.locator("main img")).to_have_count(0)
    expect(page).to_have_title("Mailbox · Penstock")


@pytest.mark.parametrize(
    ("left", "words", "urgent"),
    [
        (None, "Kept until you save or dismiss it", False),
        (timedelta(days=2, hours=5, minutes=1), "2 d 5 h left", False),
        (timedelta(hours=5, minutes=30, seconds=30), "Only 5 h 30 min left", True),
        (-timedelta(minutes=1), "Its time is over", True),
    ],
)
def test_a_card_says_how_long_it_stays(page_of: PageOf, left: timedelta | None, words: str, urgent: bool) -> None:
    page = page_of("somebody")
    mail_of(page, expires_at=None if left is None else (datetime.now(UTC) + left).isoformat())
    page.goto("/ui/mailbox")
    line = page.locator(".left")
    expect(line).to_have_text(words)
    expect(line).to_have_class("left urgent" if urgent else "left")


def test_a_card_whose_time_is_over_goes(page_of: PageOf) -> None:
    page = page_of("somebody")
    page.clock.install()
    page.goto("/ui/sign-in")
    now = datetime.fromtimestamp(page.evaluate("() => Date.now()") / 1000, UTC)
    mail_of(page, expires_at=(now + timedelta(hours=1)).isoformat())
    page.goto("/ui/mailbox")
    expect(card(page, "Soup")).to_contain_text("min left")
    page.route("**/recipes/parse-url/jobs?*", lambda route: route.fulfill(json={"jobs": []}))
    page.clock.fast_forward("01:00:01")
    expect(page.get_by_role("heading", name="The mailbox is empty")).to_be_visible()


def test_a_mailbox_that_cannot_be_read_is_tried_again(page_of: PageOf, trouble: Trouble) -> None:
    page = page_of("somebody")
    broken: list[Route] = []

    def fail(route: Route) -> None:
        """Twice: the page asks again by itself when its live list has come."""
        broken.append(route)
        if len(broken) > 2:
            route.continue_()
            return
        route.fulfill(status=503, json={"code": "STORE_UNAVAILABLE", "message": "the database does not answer"})

    trouble.expect("503")
    page.route("**/recipes/parse-url/jobs?*", fail)
    page.goto("/ui/mailbox")
    state = page.get_by_role("alert").filter(has_text="the database does not answer")
    expect(state).to_contain_text("STORE_UNAVAILABLE")
    state.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("heading", name="The mailbox is empty")).to_be_visible()
    assert len(broken) == 3


def test_the_tabs_are_used_with_the_keyboard(page_of: PageOf) -> None:
    page = page_of("somebody")
    page.goto("/ui/mailbox")
    page.get_by_role("tab", name="Waiting").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Saved recipes")).to_be_focused()
    expect(page.get_by_role("heading", name="No saved recipes yet")).to_be_visible()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("heading", name="The mailbox is empty")).to_be_visible()


@pytest.mark.screenshots
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_people_can_use_the_mailbox_in_any_light(
    server: WholeServer, page_of: PageOf, scheme: Literal["light", "dark"]
) -> None:
    user = server.somebody()
    read(server, user)
    read(server, user, "/bread")
    page = page_of(user, still=True, color_scheme=scheme)
    page.goto("/ui/mailbox")
    expect(card(page, BREAD)).to_be_visible()
    no_problems(page)
    if scheme == "light":
        screenshot(page, "mailbox")
    card(page, SOUP).get_by_role("link", name="Open", exact=True).click()
    expect(page.get_by_label("Title")).to_have_value(SOUP)
    no_problems(page)
    if scheme == "light":
        screenshot(page, "mailbox-edit")


def test_it_fits_a_small_screen(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    job_id = read(server, user)
    page = page_of(user, viewport={"width": 360, "height": 640})
    for path in ("/ui/mailbox", f"/ui/mailbox?open={job_id}", "/ui/mailbox?view=saved"):
        page.goto(path)
        expect(page.locator(".recipe-card:visible, .recipe-form, #saved .state h2").first).to_be_visible()
        assert page.evaluate("() => document.documentElement.scrollWidth") <= 360, path
