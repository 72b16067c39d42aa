"""A browser, a real server, and pages that are looked at closely.

How a test looks::

    def test_a_job_is_shown(server: WholeServer, page_of: PageOf) -> None:
        user = server.somebody()
        job = server.hold(user)
        page = page_of(user)
        page.goto(f"/ui/jobs/{job.id}")
        expect(page.get_by_role("heading", level=1)).to_have_text("hold")
        job.let_go()
        expect(page.get_by_text("Completed")).to_be_visible()
        no_problems(page)

- ``server`` is shared by many tests: have jobs of ``server.somebody()``, who is another one each time.
- ``page_of(user, admin=False, still=False, **context)`` signs somebody in by cookie, in a browser context of its own;
  ``page_of(None)`` is nobody. ``context`` goes to Playwright: ``viewport``, ``color_scheme``, ``java_script_enabled`` …
- Whatever a page writes to the console as an error or a warning, throws, or asks for without an answer fails the test.
  One that provokes such a thing says so: ``trouble.expect("404")``.
- Waits are ``expect(locator)``. ``wait_for_timeout`` is a sleep, and ``wait_for_function`` does not work under the
  pages' Content-Security-Policy, which no test may bypass.

To see the browser: ``TESTS_HEADED=1 make test ARGS="tests/browser -n 0"``. A test that fails leaves a picture and the
text of its pages in ``test-artifacts``; the pictures that :func:`tests.browser.artifacts.screenshot` takes are in
``test-artifacts/screens``, and ``make screenshots`` puts those of tests marked ``screenshots`` into ``docs/images``.
``tools/packages`` installs a Chromium where it may; ``PENSTOCK_TEST_BROWSER`` names another.

The fixtures live as long as this folder's tests and no longer: while Playwright runs, its event loop is this thread's,
and tests elsewhere start loops of their own.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

import pytest
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import expect, sync_playwright

from penstock.http.sessions import SESSION_COOKIE
from tests.browser import kinds
from tests.browser.artifacts import forget_failures, keep_failure
from tests.browser.served import WholeServer, whole_server
from tests.browser.trouble import Trouble
from tests.conftest import unavailable

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
_TIMEOUT_MS = 15_000
_WINDOW = {"width": 1280, "height": 800}
_AHEAD = timedelta(seconds=90)
_HEADED = os.environ.get("TESTS_HEADED", "").lower() in {"1", "true"}
_SERVERS_CLOCK_IS_HELD_TOO = """
    const held = new MutationObserver(() => {
        const root = document.documentElement;
        if (root && Number(root.dataset.now) !== Date.now()) root.dataset.now = Date.now();
    });
    held.observe(document, { childList: true, subtree: true, attributes: true });
"""
_FAILED = pytest.StashKey[bool]()


class PageOf(Protocol):
    """What the fixture ``page_of`` is."""

    def __call__(self, user: str | None, *, admin: bool = False, still: bool = False, **context: Any) -> Page:
        """A page of somebody's, in a browser context of its own; ``still`` holds its clock, for pictures."""


def _program() -> str:
    named = os.environ.get("PENSTOCK_TEST_BROWSER")
    if named:
        found = shutil.which(named)
        return found or unavailable(f"no browser: PENSTOCK_TEST_BROWSER is {named!r}, which is no program")
    for name in _NAMES[1:] if _HEADED else _NAMES:
        if found := shutil.which(name):
            return found
    return unavailable("no browser: no Chromium on the PATH; tools/packages installs one, or says how")


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests of this folder that a worker runs."""
    program = _program()
    expect.set_options(timeout=_TIMEOUT_MS)
    with sync_playwright() as playwright:
        # No sandbox: root cannot have one, and only pages of our own are opened.
        arguments = ["--no-sandbox", "--disable-dev-shm-usage"]
        one = playwright.chromium.launch(executable_path=program, headless=not _HEADED, args=arguments)
        yield one
        one.close()


@pytest.fixture(scope="package")
def server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeServer]:
    """A whole server for all tests of this folder that a worker runs; it is not started where there is no browser."""
    with whole_server(tmp_path_factory.mktemp("server")) as one:
        yield one


@pytest.fixture
def trouble() -> Trouble:
    """What the test's pages complain about."""
    return Trouble()


@pytest.fixture
def page_of(
    request: pytest.FixtureRequest, browser: Browser, server: WholeServer, trouble: Trouble
) -> Iterator[PageOf]:
    """Pages for the test; at its end, nothing may have gone wrong in them."""
    contexts: list[BrowserContext] = []
    forget_failures(request.node.nodeid)

    def made(user: str | None, *, admin: bool = False, still: bool = False, **context: Any) -> Page:
        usual: dict[str, Any] = {
            "base_url": server.url,
            "viewport": _WINDOW,
            "locale": "en-GB",
            "timezone_id": "UTC",
            "reduced_motion": "reduce",
        }
        one = browser.new_context(**{**usual, **context})
        contexts.append(one)
        one.set_default_timeout(_TIMEOUT_MS)
        trouble.listen(one)
        if user is not None:
            token = server.token(user, admin=admin)
            one.add_cookies(
                [{"name": SESSION_COOKIE, "value": token, "url": server.url, "httpOnly": True, "sameSite": "Lax"}]
            )
        if still:
            # Ahead of what the test does, so that "1 min ago" is true however long it takes.
            one.clock.set_fixed_time(datetime.now(UTC) + _AHEAD)
            one.add_init_script(_SERVERS_CLOCK_IS_HELD_TOO)
        return one.new_page()

    yield made
    failed = request.node.stash.get(_FAILED, False)
    pages = [page for context in contexts for page in context.pages]
    for page in pages:
        with suppress(PlaywrightError):  # a page that is being left, or has crashed, answers nothing
            page.evaluate("() => null")  # what the page said last has come, too, once this is answered
    found = trouble.found(come_to_its_end=not failed)
    if found or failed:
        for number, page in enumerate(pages, 1):
            print(keep_failure(page, f"{request.node.nodeid}-{number}", trouble.complaints))
    for context in contexts:
        context.close()
    assert not found, "the pages complained:\n" + "\n".join(found)


@pytest.fixture(autouse=True)
def _nothing_waits_any_longer() -> Iterator[None]:
    yield
    kinds.let_everything_go()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
    return report
