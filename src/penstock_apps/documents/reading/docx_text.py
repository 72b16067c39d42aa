"""Turns the XML of a Word part into lines: a paragraph is a line, a table row is its cells with tabs between.

Both namespaces of the format (the common one and ISO "strict") are read, so elements are told by their local names.
Text that is deleted or moved away under tracked changes, and the second copy that Word keeps of each text box for
old readers, is left out.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock_apps.documents.reading.collected_text import TextCollector

_NOT_READ = frozenset(("Fallback", "moveFrom", "del", "instrText", "delText"))
_IN_RUN = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "ptab": "\t"}


class WordText:
    """Gathers the text of one part, and the headers and footers it refers to."""

    def __init__(self, collector: TextCollector) -> None:
        self.header_ids: list[str] = []
        self.footer_ids: list[str] = []
        self._collector = collector
        self._path: list[str] = []
        self._unread = 0
        # A text box has paragraphs inside a paragraph, and a cell may hold a table: hence stacks.
        self._paragraphs: list[list[str]] = []
        self._rows: list[list[str]] = []
        self._cells: list[list[str]] = []

    @property
    def is_finished(self) -> bool:
        return self._collector.full

    def text(self) -> str:
        """The part's lines."""
        return self._collector.text().strip("\n")

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        name = tag.rpartition("}")[2]
        parent = self._path[-1] if self._path else ""
        self._path.append(name)
        self._unread += name in _NOT_READ
        if self._unread:
            return
        if name == "p":
            self._paragraphs.append([])
        elif name == "tr":
            self._rows.append([])
        elif name == "tc":
            self._cells.append([])
        elif parent == "r" and name in _IN_RUN and self._paragraphs:
            self._paragraphs[-1].append(_IN_RUN[name])
        elif name == "headerReference":
            self.header_ids.append(_relationship_id(attributes))
        elif name == "footerReference":
            self.footer_ids.append(_relationship_id(attributes))

    def end(self, tag: str) -> None:
        name = self._path.pop()
        if self._unread:
            self._unread -= name in _NOT_READ
        elif name == "p" and self._paragraphs:
            self._add_line("".join(self._paragraphs.pop()))
        elif name == "tc" and self._cells:
            cell = " ".join(line.replace("\n", " ") for line in self._cells.pop() if line)
            if self._rows:
                self._rows[-1].append(cell)
        elif name == "tr" and self._rows:
            self._add_line("\t".join(self._rows.pop()))

    def data(self, text: str) -> None:
        if not self._unread and self._path[-1:] == ["t"] and self._paragraphs:
            self._paragraphs[-1].append(text)

    def _add_line(self, line: str) -> None:
        if self._cells:
            self._cells[-1].append(line)
        else:
            self._collector.add(line + "\n")


def _relationship_id(attributes: Mapping[str, str]) -> str:
    return next((value for key, value in attributes.items() if key.endswith("}id")), "")
