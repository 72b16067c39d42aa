"""Text on its way into a result: cleaned so that any JSON store keeps it, and never more than its bound."""

from __future__ import annotations

import re

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]+")
_LONGEST_LINE = 500


def clean(text: str) -> str:
    """Without NUL and lone surrogates, which JSON columns refuse, and with one kind of line end."""
    if _UNSTORABLE.search(text):
        # Halves of a pair that arrive one after the other are one character.
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore").replace("\x00", "")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text


def clean_line(text: str) -> str:
    """One short line, for messages and metadata that quote what a stranger wrote."""
    line = _CONTROL.sub(" ", clean(text)).strip()
    return line if len(line) <= _LONGEST_LINE else line[: _LONGEST_LINE - 1] + "…"


class TextCollector:
    """Takes text piece by piece, up to a number of characters."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: list[str] = []
        self._length = 0
        self.truncated = False

    @property
    def full(self) -> bool:
        """Whether text has been left out already: reading on adds nothing."""
        return self.truncated

    def add(self, piece: str) -> str:
        """Keep what fits of the piece, and answer it as it was kept."""
        text = clean(piece)
        room = self._limit - self._length
        if len(text) > room:
            text = text[:room]
            self.truncated = True
        if text:
            self._pieces.append(text)
            self._length += len(text)
        return text

    def text(self) -> str:
        """All that was kept."""
        return "".join(self._pieces)
