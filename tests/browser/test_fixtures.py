"""What the browser tests stand on: a page that is not well is noticed."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Error, Page, expect

from penstock import JobState
from tests.browser import kinds
from tests.browser.accessibility import no_problems
from tests.browser.artifacts import screenshot
from tests.browser.conftest import PageOf
from tests.browser.served import WholeServer
from tests.browser.trouble import Trouble

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
WELL = '<main><h1>Jobs</h1><label>Name <input name="name"></label></main>'
UNWELL = "<main><h1>Jobs</h1><input name=name><button></button></main>"


def show(page: Page, body: str) -> None:
    """A page of the test's own, under the policy of the real ones."""
    text = f'<!doctype html><html lang="en"><head><title>Test</title></head><body>{body}</body></html>'
    headers = {"Content-Security-Policy": POLICY, "Content-Type": "text/html; charset=utf-8"}
    page.route("**/of-the-test", lambda route: route.fulfill(status=200, headers=headers, body=text))
    page.goto("/of-the-test")


def test_a_page_of_the_server_is_shown(page_of: PageOf) -> None:
    page = page_of(None)
    page.goto("/docs")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Penstock")


def test_axe_runs_under_the_policy_of_the_pages_and_says_what_it_found(page_of: PageOf) -> None:
    page = page_of(None)
    show(page, WELL)
    no_problems(page)
    show(other := page_of(None), UNWELL)
    with pytest.raises(AssertionError) as caught:
        no_problems(other)
    said = str(caught.value)
    assert "label (critical)" in said
    assert "button-name (critical)" in said
    assert '<input name="name">' in said


def test_the_policy_holds_in_the_tests(page_of: PageOf, trouble: Trouble) -> None:
    page = page_of(None)
    show(page, WELL)
    trouble.expect("TrustedHTML")
    with pytest.raises(Error, match="TrustedHTML"):
        page.evaluate("() => { document.body.innerHTML = '<b>bold</b>'; }")


def test_what_a_page_complains_about_is_heard(page_of: PageOf, trouble: Trouble) -> None:
    page = page_of(None)
    show(page, WELL)
    page.route("**/nobody", lambda route: route.abort("connectionrefused"))
    page.evaluate("""async () => {
        console.warn('a warning of the page');
        console.info('something to know');
        setTimeout(() => { throw new Error('an error of the page'); });
        await fetch('/api/jobs');
        await fetch('/nobody').catch(() => null);
    }""")
    assert any("a warning of the page" in one for one in trouble.found())
    assert not any("something to know" in one for one in trouble.found())
    trouble.expect("console warning: a warning of the page")
    trouble.expect("uncaught: Error: an error of the page")
    trouble.expect("console error: .*401")
    trouble.expect("no answer: GET .*/nobody: net::ERR_CONNECTION_REFUSED")
    trouble.allow("console error: Failed to load resource: net::ERR_CONNECTION_REFUSED")
    trouble.allow("never")
    assert trouble.found() == []


def test_an_expected_complaint_has_to_come() -> None:
    trouble = Trouble()
    trouble.expect("404")
    assert trouble.found() == ["expected, and did not come: 404"]


def test_the_browser_is_signed_in_by_its_cookie(server: WholeServer, page_of: PageOf) -> None:
    user = server.somebody()
    page = page_of(user)
    show(page, WELL)
    job = server.many(user, items=2)
    listed = page.evaluate("() => fetch('/api/jobs').then(answer => answer.json())")
    assert [one["job_id"] for one in listed] == [str(job)]
    assert page.evaluate("() => document.cookie") == ""


def test_items_wait_until_they_are_let_through(server: WholeServer) -> None:
    held = server.hold(server.somebody(), items=3)
    assert server.app.jobs.get(held.id).state not in {JobState.SUCCEEDED, JobState.FAILED}
    held.let(1)
    held.let_go()
    assert server.ended(held.id).state is JobState.SUCCEEDED


def test_items_fail_in_two_ways_until_they_are_mended(server: WholeServer) -> None:
    failing = server.fail_some(server.somebody(), items=15)
    assert server.ended(failing.id).progress.failed == 7
    assert {one.error_code: one.count for one in server.app.items.error_groups(failing.id)} == {
        kinds.CLOSED: 5,
        kinds.TORN: 2,
    }
    failing.mend()
    server.app.jobs.reprocess(failing.id)
    assert server.ended(failing.id).progress.failed == 0


def test_a_picture_is_small_and_of_the_window(page_of: PageOf) -> None:
    page = page_of(None, still=True)
    page.goto("/docs")
    kept: Path = screenshot(page, "fixtures")
    assert kept.stat().st_size <= 120_000
    with Image.open(kept) as picture:
        assert picture.size == (1280, 800)
