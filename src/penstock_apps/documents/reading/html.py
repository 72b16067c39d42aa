"""Reads what a person would see of an HTML page, and what the page says about itself."""

from __future__ import annotations

import re
from collections.abc import Mapping

from penstock.ingest import decode_text
from penstock_apps.documents.reading.bounds import Bounds
from penstock_apps.documents.reading.collected_text import TextCollector, clean
from penstock_apps.documents.reading.findings import Findings, fact, moment
from penstock_apps.documents.reading.markup import read_html as feed_html

_DECLARED_CHARSET = re.compile(
    rb"""<meta[^<>]{0,200}?charset\s*+=\s*+["']?\s*+([A-Za-z0-9_:.-]{1,40})""", re.IGNORECASE
)
_DECLARATION_WITHIN = 4096
# fmt: off
_INVISIBLE = frozenset((
    "script", "style", "template", "noscript", "iframe", "object", "audio", "video", "canvas", "datalist",
    "head",
))
_BLOCKS = frozenset((
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog",
    "dir", "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4",
    "h5", "h6", "header", "hgroup", "hr", "html", "li", "main", "menu", "nav", "ol", "option", "p", "pre",
    "section", "select", "summary", "table", "tbody", "textarea", "tfoot", "thead", "tr", "ul",
))
# fmt: on
_CELLS = frozenset(("td", "th"))
_VERBATIM = frozenset(("pre", "textarea"))
_NOT_SHOWN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_WHITE_SPACE = re.compile(r"[ \t\n\r\f]+")
_FACT_LIMIT = 10_000


def read_html(data: bytes, bounds: Bounds) -> Findings:
    """Visible text, one line for each block, with title, description, author and language."""
    declaration = _DECLARED_CHARSET.search(data, 0, _DECLARATION_WITHIN)
    content = decode_text(data, declared=declaration[1].decode("ascii") if declaration is not None else None)
    page = _VisibleText(TextCollector(bounds.max_text_characters))
    feed_html(clean(content.text), page, bounds)
    page.break_line()
    findings = Findings(
        text=page.collector.text().strip("\n"),
        truncated=page.collector.truncated,
        title=fact(_WHITE_SPACE.sub(" ", "".join(page.title))),
        author=page.metadata.get("author"),
        description=page.metadata.get("description"),
        created=moment(page.metadata.get("created")),
        modified=moment(page.metadata.get("modified")),
        language=page.language,
        encoding=content.encoding,
        warnings=list(content.warnings),
    )
    if not findings.text:
        findings.warnings.append("No visible text was found.")
    return findings


_NAMES = {
    "author": "author",
    "description": "description",
    "og:description": "description",
    "article:published_time": "created",
    "date": "created",
    "dcterms.created": "created",
    "article:modified_time": "modified",
    "dcterms.modified": "modified",
}


class _VisibleText:
    """Puts visible characters into lines as the elements come by."""

    def __init__(self, collector: TextCollector) -> None:
        self.collector = collector
        self.title: list[str] = []
        self.metadata: dict[str, str] = {}
        self.language: str | None = None
        self._line: list[str] = []
        self._hidden: list[bool] = [False]
        self._verbatim = 0
        self._drawing = 0
        self._in_title = False
        self._title_length = 0

    @property
    def is_finished(self) -> bool:
        return self.collector.full

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "title" and not self.title and not self._drawing:
            self._in_title = True
        elif tag == "meta":
            self._note(attributes)
        elif tag == "html" and self.language is None:
            self.language = fact(attributes.get("lang") or attributes.get("xml:lang"))
        self._drawing += tag == "svg"
        self._verbatim += tag in _VERBATIM
        label_of_drawing = self._drawing > 0 and tag in ("title", "desc")
        self._hidden.append(self._hidden[-1] or label_of_drawing or _is_hidden(tag, attributes))
        if tag in _BLOCKS or tag == "br":
            self.break_line()

    def end(self, tag: str) -> None:
        if tag in _CELLS:
            self._line.append("\t")
        elif tag in _BLOCKS:
            self.break_line()
        if tag == "title":
            self._in_title = False
        self._drawing -= tag == "svg"
        self._verbatim -= tag in _VERBATIM
        if len(self._hidden) > 1:
            self._hidden.pop()

    def data(self, text: str) -> None:
        if self._in_title:
            if self._title_length < _FACT_LIMIT:
                self.title.append(text)
                self._title_length += len(text)
        elif self._hidden[-1]:
            return
        elif self._verbatim:
            first, *others = text.split("\n")
            self._line.append(first)
            for other in others:
                self.break_line()
                self._line.append(other)
        else:
            self._line.append(_WHITE_SPACE.sub(" ", text))

    def break_line(self) -> None:
        """End the line, if there is anything on it."""
        line = "".join(self._line)
        self._line.clear()
        if self._verbatim:
            self.collector.add(line.rstrip() + "\n")
            return
        line = re.sub(" ?\t ?", "\t", re.sub("  +", " ", line)).strip(" ").rstrip("\t")
        if line.strip():
            self.collector.add(line + "\n")

    def _note(self, attributes: Mapping[str, str]) -> None:
        name = (attributes.get("name") or attributes.get("property") or "").lower()
        content = fact(attributes.get("content"))
        if name in _NAMES and content is not None:
            self.metadata.setdefault(_NAMES[name], content)
        elif (attributes.get("http-equiv") or "").lower() == "content-language" and self.language is None:
            self.language = content


def _is_hidden(tag: str, attributes: Mapping[str, str]) -> bool:
    return tag in _INVISIBLE or "hidden" in attributes or _NOT_SHOWN.search(attributes.get("style") or "") is not None
