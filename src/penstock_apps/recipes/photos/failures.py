"""What can be wrong with the pictures of a recipe: each failure with a stable code, and whether to try again."""

from __future__ import annotations

from enum import Enum

from penstock import Permanent, Retryable
from penstock.errors import Postponed

EXTRA = "penstock[recipe-photos]"


class PictureFailure(Enum):
    """Why a picture was not read."""

    EMPTY = ("PICTURE_EMPTY", "the file is empty")
    TOO_LARGE = ("PICTURE_TOO_LARGE", "the file is larger than the limit")
    TOO_MANY_PIXELS = ("PICTURE_TOO_MANY_PIXELS", "the picture has more pixels than the limit")
    UNSUPPORTED = ("PICTURE_UNSUPPORTED", "the file is no picture of a type that is read here")
    BROKEN = ("PICTURE_BROKEN", "the picture is damaged")
    WITHOUT_TEXT = ("PICTURE_WITHOUT_TEXT", "no text can be seen: take the picture closer, sharper and in better light")
    TOO_COMPLEX = ("PICTURE_TOO_COMPLEX", "the picture takes too long, or too much memory, to be read")
    CRASHES_READER = ("PICTURE_CRASHES_READER", "what reads pictures has crashed over it")
    IN_LINE = ("PICTURES_IN_LINE", "other pictures are being read, and these are in line")

    def __init__(self, code: str, sentence: str) -> None:
        self.code = code
        self.sentence = sentence

    @property
    def retryable(self) -> bool:
        """May it work another time? A process that died may have been unlucky."""
        return self is PictureFailure.CRASHES_READER

    def error(self, detail: str = "") -> Permanent | Retryable:
        """What a handler raises."""
        message = f"{self.sentence}: {detail}" if detail else self.sentence
        return Retryable(message, code=self.code) if self.retryable else Permanent(message, code=self.code)

    def postponement(self, after: float) -> Postponed:
        """What a handler raises that has not tried; it does so in ``after`` seconds."""
        return Postponed(self.sentence, code=self.code, retry_after=after)
