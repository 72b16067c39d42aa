"""Pages of somebody else, in the browser of a person who is signed in: they change nothing and show nothing of ours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler

import pytest
from playwright.sync_api import Page, expect

from penstock import JobState
from penstock_apps.loopback import serve_locally
from tests.browser.conftest import PageOf
from tests.browser.served import WholeServer
from tests.browser.trouble import Trouble

FORM = '<!doctype html><form method="post" action="{to}"><button>A present for you</button></form>'
FRAME = '<!doctype html><iframe src="{to}" width="800" height="600"></iframe>'
READ = """<!doctype html><pre></pre><script>
fetch("{to}", {{credentials: "include"}}).then(a => a.text()).catch(() => "refused")
    .then(text => {{ document.querySelector("pre").textContent = text }});
</script>"""


@dataclass
class Bait:
    """A page of another site."""

    page: str = ""
    port: int = 0

    def at(self, host: str = "127.0.0.1") -> str:
        """Its address."""
        return f"http://{host}:{self.port}/"


@pytest.fixture
def bait() -> Iterator[Bait]:
    one = Bait()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = one.page.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with serve_locally(Handler) as one.port:
        yield one


def signed_in(server: WholeServer, page_of: PageOf) -> tuple[str, Page]:
    user = server.somebody()
    page = page_of(None)
    page.goto(server.link(user))
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")
    return user, page


@pytest.mark.parametrize("what", ["pause", "kickoff?durationMs=100", "export"])
@pytest.mark.parametrize(("host", "code"), [("localhost", "TOKEN_MISSING"), ("127.0.0.1", "OTHER_ORIGIN")])
def test_a_form_of_another_site_changes_nothing(
    server: WholeServer, page_of: PageOf, trouble: Trouble, bait: Bait, host: str, code: str, what: str
) -> None:
    """From another site no cookie comes along; from another port it does, and does not count."""
    user, page = signed_in(server, page_of)
    job = server.hold(user)
    bait.page = FORM.format(to=f"{server.url}/api/jobs/{job.id}/{what}")
    trouble.allow("40[13]|favicon")
    page.goto(bait.at(host))
    page.get_by_role("button").click()
    expect(page.locator("body")).to_contain_text(code)
    assert server.app.jobs.get(job.id).state in (JobState.QUEUED, JobState.RUNNING)
    job.let_go()


def test_a_form_of_another_site_signs_nobody_out_or_in(
    server: WholeServer, page_of: PageOf, trouble: Trouble, bait: Bait
) -> None:
    _, page = signed_in(server, page_of)
    bait.page = FORM.format(to=f"{server.url}/ui/sign-out")
    trouble.allow("403|favicon")
    page.goto(bait.at())
    page.get_by_role("button").click()
    expect(page.locator("body")).to_contain_text("requests of our own pages")
    page.goto("/ui/jobs")
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")


def test_our_pages_are_in_nobodys_frame(server: WholeServer, page_of: PageOf, trouble: Trouble, bait: Bait) -> None:
    _, page = signed_in(server, page_of)
    bait.page = FRAME.format(to=f"{server.url}/ui/jobs")
    trouble.expect("frame-ancestors|X-Frame-Options")
    trouble.allow("favicon|net::ERR_BLOCKED_BY_RESPONSE")
    page.goto(bait.at())
    expect(page.frame_locator("iframe").get_by_role("heading", name="Jobs")).to_have_count(0)


def test_another_site_reads_nothing(server: WholeServer, page_of: PageOf, trouble: Trouble, bait: Bait) -> None:
    _, page = signed_in(server, page_of)
    bait.page = READ.format(to=f"{server.url}/api/jobs")
    trouble.allow("CORS|favicon|ERR_FAILED")
    page.goto(bait.at())
    expect(page.locator("pre")).to_have_text("refused")
