"""Streams XML and HTML through lxml's parser, with a bound on depth and on the number of elements.

No tree is built, so memory does not grow with the document. A document type declaration is refused in XML: Office
files never have one, and it is where entity bombs and references to other files live. Nothing is fetched, ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from penstock_apps.documents.reading.bounds import Bounds
from penstock_apps.documents.reading.failures import DocumentFailure

_CHUNK = 65_536


class MarkupHandler(Protocol):
    """What a type's module does with the elements and characters as they come."""

    @property
    def is_finished(self) -> bool:
        """Whether the rest need not be read."""

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""

    def end(self, tag: str) -> None:
        """An element ends; its tag may be missing in the source."""

    def data(self, text: str) -> None:
        """Some characters, not necessarily all up to the next tag."""


class _Guard:
    """The parser's target: passes everything on, and counts."""

    def __init__(self, handler: MarkupHandler, bounds: Bounds) -> None:
        self._handler = handler
        self._bounds = bounds
        self._depth = 0
        self._elements = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._depth += 1
        self._elements += 1
        if self._depth > self._bounds.max_nesting:
            raise DocumentFailure.TOO_COMPLEX.error(f"Its elements nest deeper than {self._bounds.max_nesting}.")
        if self._elements > self._bounds.max_objects:
            raise DocumentFailure.TOO_COMPLEX.error(f"It has more than {self._bounds.max_objects} elements.")
        self._handler.start(tag, attributes)

    def end(self, tag: str) -> None:
        self._depth -= 1
        self._handler.end(tag)

    def data(self, text: str) -> None:
        self._handler.data(text)

    def close(self) -> None:
        """Nothing is left to do; lxml asks for the method."""


class _XmlGuard(_Guard):
    def doctype(self, *_names: str | None) -> None:
        raise DocumentFailure.TOO_COMPLEX.error("Its XML declares a document type, which may define entities.")


def read_xml(chunks: Iterable[bytes], handler: MarkupHandler, bounds: Bounds) -> None:
    """Feed XML to the handler."""
    from lxml import etree

    target: Any = _XmlGuard(handler, bounds)  # lxml's stubs also ask for bytes and comments, which never come
    parser = etree.XMLParser(target=target, resolve_entities=False, load_dtd=False, no_network=True, huge_tree=False)
    for chunk in chunks:
        parser.feed(chunk)
        if handler.is_finished:
            return
    parser.close()


def read_html(text: str, handler: MarkupHandler, bounds: Bounds) -> None:
    """Feed HTML to the handler, with the tags added that its author left out."""
    from lxml import etree

    target: Any = _Guard(handler, bounds)
    # The encoding is given, so that a declaration inside the page does not decode it a second time.
    parser = etree.HTMLParser(target=target, encoding="utf-8", no_network=True, huge_tree=False, recover=True)
    for position in range(0, len(text), _CHUNK):
        parser.feed(text[position : position + _CHUNK].encode("utf-8"))
        if handler.is_finished:
            return
    parser.close()
