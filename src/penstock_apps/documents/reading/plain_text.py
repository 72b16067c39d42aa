"""Reads plain text: its encoding, and its pages where form feeds divide it."""

from __future__ import annotations

from penstock.ingest import decode_text
from penstock_apps.documents.reading.bounds import Bounds
from penstock_apps.documents.reading.collected_text import TextCollector
from penstock_apps.documents.reading.failures import DocumentFailure
from penstock_apps.documents.reading.findings import Findings, Page, PageCountSource

_FORM_FEED = "\f"


def read_plain_text(data: bytes, bounds: Bounds) -> Findings:
    """The text as it stands, but for characters that cannot be stored."""
    content = decode_text(data)
    findings = Findings(encoding=content.encoding, warnings=list(content.warnings))
    count = content.text.rstrip(_FORM_FEED).count(_FORM_FEED) + 1
    if count > bounds.max_pages:
        raise DocumentFailure.TOO_COMPLEX.error(f"It has {count} pages; at most {bounds.max_pages}.")
    if "\x00" in content.text:
        findings.warnings.append("NUL characters were removed.")
    collector = TextCollector(bounds.max_text_characters)
    for number, page in enumerate(content.text.rstrip(_FORM_FEED).split(_FORM_FEED), start=1):
        if collector.full:
            findings.pages.append(Page(number=number, characters=None, words=None))
            continue
        if number > 1:
            collector.add(_FORM_FEED)
        kept_text = collector.add(page)
        findings.pages.append(Page(number=number, characters=len(kept_text), words=len(kept_text.split())))
    findings.text = collector.text()
    findings.truncated = collector.truncated
    findings.page_count = count
    findings.page_count_source = PageCountSource.COUNTED
    if not findings.text.strip():
        findings.warnings.append("No text was found; there is only white space.")
    return findings
