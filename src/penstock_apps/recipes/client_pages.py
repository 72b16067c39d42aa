"""Pages that a client has opened itself, because their sites refuse servers: what it sends of them, as one page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.errors import InvalidInput, PayloadTooLarge


@dataclass(frozen=True, slots=True)
class ClientPage:
    """What a client saw: the page's JSON-LD, each script as it stands there, and part of its HTML."""

    address: str
    json_ld_blocks: Sequence[str]
    html_snippet: str | None = None

    def as_html(self, *, max_bytes: int) -> bytes:
        """A page that says the same, for the readers of pages; one without a word, or too large, is refused."""
        scripts = [_script(block) for block in self.json_ld_blocks if block.strip()]
        snippet = self.html_snippet or ""
        if not scripts and not snippet.strip():
            raise InvalidInput(
                "the page is empty: send what it has as JSON-LD, or part of its HTML", field="input", code="PAGE_EMPTY"
            )
        page = "\n".join((*scripts, snippet)).encode("utf-8", "replace")
        if len(page) > max_bytes:
            raise PayloadTooLarge(
                f"the page has {len(page):,} bytes, and {max_bytes:,} are allowed", field="input", code="PAGE_TOO_LARGE"
            )
        return page


def _script(block: str) -> str:
    """A script as a page has it. A slash behind ``<`` is written as JSON may write it, or it would end the script."""
    return '<script type="application/ld+json">' + block.replace("</", "<\\/") + "</script>"
