"""Whether people who see little, or use no mouse, can use a page: as far as axe-core can tell."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from tests.sizes import LARGE

if TYPE_CHECKING:
    from playwright.sync_api import Page

SCREENS = [(360, "light"), (1280, "dark"), *([(360, "dark"), (1280, "light")] if LARGE else [])]
"""Width and colour scheme: each of both in every run."""
_GRAVE = ("serious", "critical")


def no_problems(page: Page) -> None:
    """No rule of axe is violated gravely on the page as it is now.

    The script comes in by the debugging protocol, which the page's Content-Security-Policy does not bind.
    """
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(_axe())
    violations: list[dict[str, Any]] = page.evaluate(
        "() => axe.run(document, {resultTypes: ['violations']}).then(found => found.violations)"
    )
    grave = [one for one in violations if one["impact"] in _GRAVE]
    assert not grave, f"axe objects to {page.url}:\n" + "\n".join(map(_told, grave))


def _told(violation: dict[str, Any]) -> str:
    lines = [f"{violation['id']} ({violation['impact']}): {violation['help']}"]
    for node in violation["nodes"]:
        why = "; ".join(check["message"] for check in (*node["any"], *node["all"], *node["none"]))
        lines.append(f"    {node['html']}\n        {why}")
    return "\n".join(lines)


@cache
def _axe() -> str:
    # The last value of a script is brought over: axe itself would be much to carry.
    return (files("axe_playwright_python") / "axe.min.js").read_text() + "\n;null"
