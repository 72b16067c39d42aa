"""Pictures of pages: of those a test failed on, and those the documentation shows."""

from __future__ import annotations

import io
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image, ImageChops
from playwright.sync_api import Error

if TYPE_CHECKING:
    from playwright.sync_api import Page

_ROOT = Path(__file__).parents[2]
ARTIFACTS = _ROOT / "test-artifacts"
_SHOWN = _ROOT / "docs" / "images"
_MAX_BYTES = 120_000
_SAME_SHARE = 0.005
_SEEN = 24


def screenshot(page: Page, name: str) -> Path:
    """Keep a picture of what the window shows; with TESTS_WRITE_SCREENSHOTS=1 the documentation shows it, too.

    For pictures that are the same on every run, take the page from ``page_of(..., still=True)``.
    """
    picture = _reduced(_taken(page), name)
    kept = ARTIFACTS / "screens" / f"{name}.png"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(picture)
    shown = _SHOWN / f"{name}.png"
    if os.environ.get("TESTS_WRITE_SCREENSHOTS", "").lower() in {"1", "true"} and not _looks_like(shown, picture):
        shown.parent.mkdir(parents=True, exist_ok=True)
        shown.write_bytes(picture)
    return kept


def _taken(page: Page) -> bytes:
    """What the window shows; a browser on a busy machine sometimes cannot say, and can when it is asked again."""
    for _ in range(2):
        with suppress(Error):
            return page.screenshot(animations="disabled", caret="hide", scale="css")
    return page.screenshot(animations="disabled", caret="hide", scale="css")


def keep_failure(page: Page, name: str, complaints: list[str]) -> str:
    """Keep what a page looked like, and said, when its test failed; the answer says where."""
    ARTIFACTS.mkdir(exist_ok=True)
    place = ARTIFACTS / _file_name(name)
    try:
        text = page.evaluate("() => document.body === null ? '' : document.body.innerText")
        page.screenshot(path=f"{place}.png", full_page=True)
    except Error as error:  # a page that has crashed shows nothing; the test's own failure says more
        text = f"there is no picture: {error.message}"
    Path(f"{place}.txt").write_text("\n".join([page.url, *complaints, "", text, ""]))
    return f"{page.url} as it was: {place.relative_to(_ROOT)}.png and .txt"


def forget_failures(test: str) -> None:
    """Remove what an earlier run of a test left."""
    for file in ARTIFACTS.glob(f"{_file_name(test)}-*"):
        file.unlink()


def _file_name(test: str) -> str:
    return re.sub(r"[^\w-]+", "-", test.removeprefix("tests/browser/"))[:150].strip("-")


def _reduced(png: bytes, name: str) -> bytes:
    """The same picture in as many colours as its size allows."""
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    reduced = b""
    for colours in (256, 128, 64, 32):
        out = io.BytesIO()
        picture.quantize(colours, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
        reduced = out.getvalue()
        if len(reduced) <= _MAX_BYTES:
            return reduced
    raise AssertionError(f"the picture {name} has {len(reduced):,} bytes in 32 colours, more than {_MAX_BYTES:,}")


def _looks_like(file: Path, png: bytes) -> bool:
    """Would nobody see a difference? Then a file in the repository stays as it is."""
    if not file.exists():
        return False
    before, now = (Image.open(one).convert("L") for one in (file, io.BytesIO(png)))
    if before.size != now.size:
        return False
    differences = ImageChops.difference(before, now).histogram()
    return sum(differences[_SEEN:]) <= _SAME_SHARE * before.width * before.height
