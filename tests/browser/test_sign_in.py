"""Signing in and out: by a token, by a link that works once, and who may see what without."""

from __future__ import annotations

from typing import Literal

import pytest
from playwright.sync_api import BrowserContext, Cookie, Locator, Page, expect

from penstock.http.sessions import SESSION_COOKIE
from tests.browser.accessibility import SCREENS, no_problems
from tests.browser.conftest import PageOf
from tests.browser.served import WholeServer
from tests.browser.trouble import Trouble

UNAUTHORIZED = r"console error: .* 401 "
GONE = r"console error: .* 410 "


def session_of(context: BrowserContext) -> Cookie | None:
    return next((one for one in context.cookies() if one.get("name") == SESSION_COOKIE), None)


def field(page: Page) -> Locator:
    return page.get_by_label("Your token")


def sign_in(page: Page, token: str) -> None:
    field(page).fill(token)
    page.get_by_role("button", name="Sign in").click()


def test_a_person_is_led_to_the_sign_in_page_and_back_to_where_they_wanted_to_go(
    server: WholeServer, page_of: PageOf
) -> None:
    user = server.somebody()
    page = page_of(None)
    page.goto("/ui/pending?statuses=failed")
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    expect(field(page)).to_be_focused()
    assert session_of(page.context) is None
    sign_in(page, server.token(user))
    expect(page).to_have_url(f"{server.url}/ui/pending?statuses=failed")
    expect(page.get_by_role("banner")).to_contain_text(user)
    expect(page.get_by_role("banner")).not_to_contain_text("admin")


def test_a_token_is_taken_as_people_paste_it_and_an_administrator_is_told_so(
    server: WholeServer, page_of: PageOf
) -> None:
    page = page_of(None)
    page.goto("/ui/sign-in")
    sign_in(page, f"  Bearer {server.token('root', admin=True)}\n")
    expect(page).to_have_url(f"{server.url}/ui/jobs")
    expect(page.get_by_role("banner")).to_contain_text("admin")
    expect(page.get_by_role("link", name="System")).to_be_visible()


@pytest.mark.parametrize("wanted", ["https://elsewhere.example/", "//elsewhere.example/ui/jobs", "/ui/../docs"])
def test_the_way_back_never_leads_elsewhere(server: WholeServer, page_of: PageOf, wanted: str) -> None:
    page = page_of(None)
    page.goto(f"/ui/sign-in?next={wanted}")
    sign_in(page, server.token(server.somebody()))
    expect(page).to_have_url(f"{server.url}/ui/jobs")


def test_a_wrong_token_gets_a_clear_message_and_no_cookie(
    server: WholeServer, page_of: PageOf, trouble: Trouble
) -> None:
    trouble.expect(UNAUTHORIZED)
    page = page_of(None)
    page.goto("/ui/sign-in?next=/ui/mailbox")
    sign_in(page, "not.a.token")
    expect(page.get_by_role("alert")).to_contain_text("that is no token")
    assert session_of(page.context) is None
    no_problems(page)
    # Where they wanted to go is not forgotten over it.
    sign_in(page, server.token(server.somebody()))
    expect(page).to_have_url(f"{server.url}/ui/mailbox")


def test_an_expired_token_is_said_to_have_expired(server: WholeServer, page_of: PageOf, trouble: Trouble) -> None:
    trouble.expect(UNAUTHORIZED)
    page = page_of(None)
    page.goto("/ui/sign-in")
    sign_in(page, server.tokens.issue("ada", seconds=-60))
    expect(page.get_by_role("alert")).to_contain_text("expired")
    assert session_of(page.context) is None


def test_markup_in_a_name_stays_text(server: WholeServer, page_of: PageOf) -> None:
    user = "<img src=x onerror=alert(1)>&amp;"
    page = page_of(user)
    page.goto("/ui/jobs")
    expect(page.get_by_role("banner")).to_contain_text(user)


def test_the_cookie_is_out_of_reach_for_scripts_and_other_sites(server: WholeServer, page_of: PageOf) -> None:
    page = page_of(None)
    page.goto("/ui/sign-in")
    token = server.token(server.somebody())
    sign_in(page, token)
    expect(page).to_have_url(f"{server.url}/ui/jobs")
    cookie = session_of(page.context)
    assert cookie is not None
    assert (cookie.get("value"), cookie.get("path")) == (token, "/")
    assert (cookie.get("httpOnly"), cookie.get("sameSite")) == (True, "Lax")
    assert cookie.get("expires") == -1, "it is gone when the browser is closed"
    assert page.evaluate("() => document.cookie") == ""


def test_who_signs_out_is_out(server: WholeServer, page_of: PageOf) -> None:
    page = page_of(server.somebody())
    page.goto("/ui/jobs")
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")
    assert session_of(page.context) is None
    page.goto("/ui/jobs")
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


def test_a_link_signs_in_once(server: WholeServer, page_of: PageOf, trouble: Trouble) -> None:
    user = server.somebody()
    link = server.link(user)
    page = page_of(None)
    page.goto(link)
    expect(page).to_have_url(f"{server.url}/ui/jobs")
    expect(page.get_by_role("banner")).to_contain_text(user)

    trouble.expect(GONE)
    late = page_of(None)
    late.goto(link)
    expect(late.get_by_role("heading", level=1)).to_have_text("This link was used already, or is too old")
    assert session_of(late.context) is None
    no_problems(late)
    late.get_by_role("link", name="Sign in").click()
    expect(field(late)).to_be_visible()


def test_signing_in_needs_the_keyboard_alone(server: WholeServer, page_of: PageOf) -> None:
    page = page_of(None)
    page.goto("/ui/jobs")
    expect(field(page)).to_be_focused()
    page.keyboard.insert_text(server.token(server.somebody()))
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Sign in")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{server.url}/ui/jobs")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_everybody_can_read_the_sign_in_page(page_of: PageOf, scheme: Literal["light", "dark"], width: int) -> None:
    page = page_of(None, color_scheme=scheme, viewport={"width": width, "height": 800})
    page.goto("/ui/sign-in")
    expect(field(page)).to_be_visible()
    no_problems(page)
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width, "it scrolls sideways"
