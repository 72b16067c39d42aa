"""The bounds of names, keys and numbers: the one place that says them, for every database.

PostgreSQL refuses what does not fit into a column, SQLite keeps it: a program that works on one would fail on the
other. So what a caller gives is checked here first, and refused with the code ``OUT_OF_BOUNDS`` and the field. The
columns take their lengths from here, and so does docs/reference/limits.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.errors import ConfigurationError, InvalidInput
from penstock.lifecycle.payloads import require_storable

CODE = "OUT_OF_BOUNDS"
_SHOWN_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class TextBound:
    """How long a text may be, in characters; an empty one is refused, too."""

    field: str
    longest: int
    meaning: str

    def require(self, value: str) -> None:
        """Refuse a text that is empty, too long, or has characters that not every database keeps.

        >>> OWNER.require("ada")
        >>> OWNER.require("")
        Traceback (most recent call last):
        ...
        penstock.errors.InvalidInput: owner has no characters; it must have 1 to 255
        """
        if not isinstance(value, str):
            raise InvalidInput(f"{self.field} must be a text, not {type(value).__name__}", field=self.field, code=CODE)
        if not 0 < len(value) <= self.longest:
            count = f"{len(value):,}" if value else "no"
            raise InvalidInput(
                f"{self.field} has {count} characters; it must have 1 to {self.longest:,}", field=self.field, code=CODE
            )
        require_storable(value, self.field)


@dataclass(frozen=True, slots=True)
class NumberBound:
    """The bounds of a whole number."""

    field: str
    minimum: int
    maximum: int
    meaning: str

    def require(self, value: int) -> None:
        """Refuse what is no whole number, or out of bounds, where a call gives it.

        >>> PRIORITY.require(40_000)
        Traceback (most recent call last):
        ...
        penstock.errors.InvalidInput: priority is 40000; it must be a whole number from -32768 to 32767
        """
        if not self.holds(value):
            raise InvalidInput(self._refusal(value), field=self.field, code=CODE)

    def require_of_kind(self, value: int | None) -> None:
        """The same where a kind is registered; None is no number, and stands for none."""
        if value is not None and not self.holds(value):
            raise ConfigurationError(self._refusal(value), code=CODE)

    def holds(self, value: object) -> bool:
        """Is this a whole number within the bounds?"""
        return isinstance(value, int) and not isinstance(value, bool) and self.minimum <= value <= self.maximum

    def _refusal(self, value: object) -> str:
        text = str(value)[:_SHOWN_CHARACTERS]
        return f"{self.field} is {text}; it must be a whole number from {self.minimum} to {self.maximum}"


LARGEST_COUNT = 2**31 - 1
"""What a column for counts and positions holds."""
LARGEST_ID = 2**63 - 1

KIND = TextBound("kind", 64, "a kind's name: a-z, 0-9, `.`, `_` and `-`, and a letter or digit first")
OWNER = TextBound("owner", 255, "whose job, file or key it is")
CALLER = TextBound("caller", 255, "the id in `owner(…)` and `admin(…)`: who asks")
UNIQUE_KEY = TextBound("unique_key", 255, "which work is the same")
IDEMPOTENCY_KEY = TextBound("idempotency_key", 255, "which request is the same")
IP_ADDRESS = TextBound("ip_address", 64, "where a request came from")
TOPIC = TextBound("topic", 255, "what a message is about")
MESSAGE_KEY = TextBound("key", 255, "messages of one key are sent in their order")
MESSAGE_ID = TextBound("message.id", 255, "what a message is known by, however often it comes")
SUBSCRIBER = TextBound("subscriber", 64, "whose effects of a message are counted")
FILE_NAME = TextBound("name", 1024, "the last part of a file's name")
MEDIA_TYPE = TextBound("media_type", 255, "what a file is said to be")
TASK_ID = TextBound("task_id", 155, "which task of another engine it is; as long as a Celery backend keeps it")
SCHEDULE = TextBound("schedule", 100, "what is submitted again and again is known by it")
TEXTS = (
    KIND, OWNER, CALLER, UNIQUE_KEY, IDEMPOTENCY_KEY, IP_ADDRESS, TOPIC, MESSAGE_KEY, MESSAGE_ID, SUBSCRIBER,
    FILE_NAME, MEDIA_TYPE, TASK_ID, SCHEDULE,
)  # fmt: skip

PRIORITY = NumberBound("priority", -(2**15), 2**15 - 1, "of a job, or of all jobs of a kind; the higher comes first")
RETRIES = NumberBound("retries", 0, LARGEST_COUNT - 1, "how often a failed item is tried again")
NOT_FOUND_RETRIES = NumberBound("not_found_retries", 0, LARGEST_COUNT - 1, "the same for what was not found")
CONCURRENCY = NumberBound("concurrency", 1, LARGEST_COUNT, "how many handlers of a kind run at once in a worker")
QUEUE_LIMIT = NumberBound("queue_limit", 1, LARGEST_COUNT - 1, "how many jobs of a kind may wait")
AFTER = NumberBound("after", 0, LARGEST_COUNT, "the position or line of the history behind which a page begins")
LIMIT = NumberBound("limit", 0, LARGEST_COUNT, "how many of a list are wanted")
ITEM_ID = NumberBound("item_ids", 0, LARGEST_ID, "each item that is to be run again")
NUMBERS = (PRIORITY, RETRIES, NOT_FOUND_RETRIES, CONCURRENCY, QUEUE_LIMIT, AFTER, LIMIT, ITEM_ID)

LONGEST_TITLE = 255
LONGEST_CODE = 64
LONGEST_CLASS = 100
LONGEST_MESSAGE = 2_000
LONGEST_TRACEBACK = 16_000
LONGEST_TASK_NAME = 255
LONGEST_WORKER = 64
CUT = {
    "title": (LONGEST_TITLE, "what people know a job by; one line"),
    "error_code": (LONGEST_CODE, "of a handler's error"),
    "error_class": (LONGEST_CLASS, "the name of an error's class"),
    "last_error": (LONGEST_MESSAGE, "a handler's message"),
    "traceback": (LONGEST_TRACEBACK, "where a handler failed"),
    "task_name": (LONGEST_TASK_NAME, "what another engine calls a task"),
}
"""What a job is not refused for: it is cut to so many characters."""

_KIND_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")


def require_kind_name(name: object) -> None:
    """Refuse a name that a kind cannot have: it is a part of notices, threads and addresses."""
    if not (isinstance(name, str) and len(name) <= KIND.longest and _KIND_NAME.fullmatch(name)):
        raise ConfigurationError(
            f"{name!r} is not a kind's name; use up to {KIND.longest} of a-z, 0-9, '.', '_' and '-', "
            "starting with a letter or digit",
            code=CODE,
        )
