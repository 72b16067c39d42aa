"""``/docs``: every operation is on the page, nothing on it comes from elsewhere, and what others wrote is text."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from fastapi import APIRouter

from penstock import Penstock, load_settings
from tests.http.conftest import SECRET, serving


class Elements(HTMLParser):
    """The names and addresses of a page's elements."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.addresses: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.addresses |= {value or "" for name, value in attrs if name in ("href", "src")}


def test_the_page_has_every_operation_and_needs_nobody_else() -> None:
    app = Penstock(settings=load_settings(database_url="sqlite://", jwt_secret=SECRET))
    hostile = APIRouter()

    @hostile.get("/hostile", summary="<script>alert(1)</script>")
    def get() -> None:
        """<img src=x onerror=alert(1)> and `code`."""

    with serving(app, worker=False, more=[hostile]) as served:
        somebody = served.client(None)
        page = somebody.get("/docs")
        document = somebody.get("/openapi.json").json()
        assert somebody.get("/redoc").status_code == 404
    app.close()
    for path, methods in document["paths"].items():
        for method in methods:
            assert f"<code>{method.upper()} {path}</code>" in page.text
    elements = Elements(page.text)
    assert elements.names.isdisjoint({"script", "img", "link", "iframe"})
    assert elements.addresses == {f"{served.url}/openapi.json"}
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page.text
    assert "<code>code</code>" in page.text
    assert "<td><code>limit</code><td>query<td>1 to 100, 100 unless given" in page.text
    policy = page.headers["content-security-policy"]
    assert re.fullmatch(r"default-src 'none'; style-src 'sha256-[^']+'; .*frame-ancestors 'none'", policy)
