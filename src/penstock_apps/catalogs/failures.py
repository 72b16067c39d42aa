"""What can be wrong with a photo: each failure with a stable code and a sentence for a person."""

from __future__ import annotations

from enum import Enum

from penstock import Permanent, Retryable


class PhotoFailure(Enum):
    """Why a photo could not be worked on. All but the last are final: the same bytes fail the same way tomorrow."""

    MISSING = ("PHOTO_MISSING", "the file is not there any more")
    EMPTY = ("PHOTO_EMPTY", "the file is empty")
    TOO_LARGE = ("PHOTO_TOO_LARGE", "the file is larger than the limit")
    TOO_MANY_PIXELS = ("PHOTO_TOO_MANY_PIXELS", "the picture has more pixels than the limit")
    UNSUPPORTED = ("PHOTO_UNSUPPORTED", "the file is no picture of a type that is read here")
    CORRUPT = ("PHOTO_CORRUPT", "the picture is damaged")
    TRUNCATED = ("PHOTO_TRUNCATED", "the picture ends too early")
    OUTSIDE = ("PHOTO_OUTSIDE", "the file is not in the catalog's folder")
    CHANGED = ("PHOTO_CHANGED", "the file has changed since the last scan: scan the catalog again")
    UNREADABLE = ("PHOTO_UNREADABLE", "the file cannot be read just now")

    def __init__(self, code: str, sentence: str) -> None:
        self.code = code
        self.sentence = sentence

    @property
    def retryable(self) -> bool:
        """May it work another time?"""
        return self is PhotoFailure.UNREADABLE

    def error(self, detail: str = "") -> Permanent | Retryable:
        """What a handler raises."""
        message = f"{self.sentence}: {detail}" if detail else self.sentence
        return Retryable(message, code=self.code) if self.retryable else Permanent(message, code=self.code)


FINAL_CODES = frozenset(failure.code for failure in PhotoFailure if not failure.retryable)
"""Of photos whose bytes are the reason. Others (time, memory, a disk that errs) may be read another time."""
