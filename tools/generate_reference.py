"""Writes docs/reference from the code: ``make docs``. With ``--check`` it only says which pages are out of date.

Each page is a function without arguments that answers Markdown. It asks the code itself (the transition table, the
settings, the tables, the command line), so it always answers the same for the same code. What the code does not say of
itself, such as what a column means, is in ``tools/reference/meanings.py``; a page refuses to be made where those words
and the code do not match.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tools.reference import api, cli, errors, lifecycle, limits, schema, settings

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"

PAGES: dict[str, Callable[[], str]] = {
    "api.md": api.page,
    "cli.md": cli.page,
    "errors.md": errors.page,
    "lifecycle.md": lifecycle.page,
    "limits.md": limits.page,
    "schema.md": schema.page,
    "settings.md": settings.page,
}


def outdated() -> list[str]:
    """The pages that are not what the code makes now."""
    return [name for name, make in PAGES.items() if _kept(name) != make()]


def _kept(name: str) -> str | None:
    path = REFERENCE / name
    return path.read_text(encoding="utf-8") if path.exists() else None


def main(arguments: Sequence[str]) -> int:
    """Write the pages that changed; the answer is the exit code."""
    if unknown := set(arguments) - {"--check"}:
        print(
            f"generate_reference: {', '.join(sorted(unknown))} is not known; --check is all there is", file=sys.stderr
        )
        return 2
    REFERENCE.mkdir(parents=True, exist_ok=True)
    names = outdated()
    if "--check" in arguments:
        for name in names:
            print(f"docs/reference/{name} is out of date: run `make docs`", file=sys.stderr)
        return 1 if names else 0
    for name in names:
        (REFERENCE / name).write_text(PAGES[name](), encoding="utf-8")
        print(f"wrote docs/reference/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
