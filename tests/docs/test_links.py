"""Every link from one page of the documentation to another leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def prose_of(page: Path) -> str:
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors_of(page: Path) -> set[str]:
    """The anchors a hosting platform makes of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", prose_of(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    broken = []
    for target in _LINK.findall(prose_of(page)):
        if "://" in target or target.startswith("mailto:"):
            continue
        name, _, anchor = target.partition("#")
        there = (page.parent / name).resolve() if name else page
        if not there.exists() or (anchor and there.suffix == ".md" and anchor not in anchors_of(there)):
            broken.append(target)
    assert not broken, f"{page.relative_to(ROOT)} links to what is not there: {broken}"


def test_the_files_that_the_pipeline_names_are_there() -> None:
    """In code, without a link; the page says below which folders they are."""
    names = re.findall(r"`((?:\w+/)*\w+\.py)`", prose_of(ROOT / "docs" / "explanation" / "pipeline.md"))
    roots = [ROOT / "src" / "penstock", ROOT / "src" / "penstock_apps" / "products", ROOT / "tests"]
    missing = {name for name in names if not any((root / name.removeprefix("apps/")).exists() for root in roots)}
    assert len(names) > 50
    assert missing == set()
