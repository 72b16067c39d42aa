"""Every error Penstock raises, each with a stable ``code``.

::

    PenstockError
    ├── InvalidInput            a caller's argument is wrong; ``field`` names it
    │   ├── PayloadNotStorable  params, an input or a result is not JSON we can keep
    │   └── PayloadTooLarge     … or is larger than the configured bound
    ├── KindUnknown             no kind of that name is registered here
    ├── JobNotFound             no such job, or it belongs to somebody else
    ├── FileNotFound            no such stored file, or it belongs to somebody else
    ├── TransitionRefused       the lifecycle does not allow that now
    ├── NotSignedIn             nobody knows who asks: no token, or one that is not good
    ├── NotAllowed              … somebody is known, but may not do that
    ├── TooManyRequests         … may do it, but not so often
    ├── SwitchedOff             the operator does not offer that here, or not now
    ├── StoreUnavailable        the database cannot be reached, or did not answer
    │   └── StoreLocked         … answers, but somebody's open transaction has a row that is needed
    ├── StoreRefused            the database will not keep a value
    │   └── StatementRefused    … or will not run a statement: a defect of the program, not of what it was asked
    ├── ConfigurationError      a setting is missing or contradicts another
    │   ├── LibraryMissing      an application lacks a library; the message names the extra that brings it
    │   └── SchemaOutOfDate     the database needs ``penstock migrate``
    ├── Stopped                 the work in hand is not wanted any more
    └── HandlerError            what a handler raises to say how its item ends
        ├── Retryable           try again later
        ├── Postponed           it was not tried: come back later, and do not count this
        ├── Permanent           do not try again
        ├── NotFound            the thing looked for is not there
        ├── Skip                nothing to do
        └── Killed              the engine ended the handler
            ├── TimeLimitExceeded
            ├── MemoryLimitExceeded
            └── WorkerCrashed

Nothing here knows about HTTP or SQL: the HTTP layer has one table from these classes to statuses.
"""

from __future__ import annotations

__all__ = [
    "PenstockError",
    "InvalidInput",
    "PayloadNotStorable",
    "PayloadTooLarge",
    "KindUnknown",
    "JobNotFound",
    "FileNotFound",
    "TransitionRefused",
    "NotSignedIn",
    "NotAllowed",
    "TooManyRequests",
    "SwitchedOff",
    "StoreUnavailable",
    "StoreLocked",
    "StoreRefused",
    "ConfigurationError",
    "LibraryMissing",
    "SchemaOutOfDate",
    "Stopped",
    "HandlerError",
    "Retryable",
    "Postponed",
    "Permanent",
    "NotFound",
    "Skip",
    "Killed",
    "TimeLimitExceeded",
    "MemoryLimitExceeded",
    "WorkerCrashed",
]


class PenstockError(Exception):
    """The root of the tree: a message for a person and a code for a program."""

    code = "PENSTOCK_ERROR"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if code is not None:
            self.code = code


class InvalidInput(PenstockError):
    """A caller's argument is wrong; ``field`` says which one."""

    code = "INVALID_INPUT"

    def __init__(self, message: str, *, field: str | None = None, code: str | None = None) -> None:
        super().__init__(message, code=code)
        self.field = field


class PayloadNotStorable(InvalidInput):
    """A value that cannot be kept as JSON."""

    code = "PAYLOAD_NOT_STORABLE"


class PayloadTooLarge(InvalidInput):
    """A value larger than its bound."""

    code = "PAYLOAD_TOO_LARGE"


class KindUnknown(PenstockError):
    """No kind of that name is registered in this process."""

    code = "KIND_UNKNOWN"


class JobNotFound(PenstockError):
    """There is no such job for this caller."""

    code = "JOB_NOT_FOUND"


class FileNotFound(PenstockError):
    """There is no such stored file for this caller."""

    code = "FILE_NOT_FOUND"


class TransitionRefused(PenstockError):
    """The job's state does not allow what was asked."""

    code = "TRANSITION_REFUSED"


class NotSignedIn(PenstockError):
    """Who asks is not known: there is no token, or it is expired, forged or not for us."""

    code = "TOKEN_MISSING"


class NotAllowed(PenstockError):
    """Who asks is known, and may not do that."""

    code = "NOT_ALLOWED"


class TooManyRequests(PenstockError):
    """More than the limit; ``retry_after`` says in how many seconds the next one is welcome."""

    code = "TOO_MANY_REQUESTS"

    def __init__(self, message: str, *, retry_after: float) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class SwitchedOff(PenstockError):
    """What the operator does not offer here, or not just now."""

    code = "SWITCHED_OFF"


class StoreUnavailable(PenstockError):
    """The database cannot be reached, or broke off; what was asked may be asked again."""

    code = "DB_CONN_REFUSED"


class StoreLocked(StoreUnavailable):
    """Somebody's open transaction has a row that is needed; nothing happened, and it may be asked again."""

    code = "STORE_LOCKED"


class StoreRefused(PenstockError):
    """The database refused a value or a row; asking again will not help."""

    code = "STORE_REFUSED"


class StatementRefused(StoreRefused):
    """The database refused a statement as it stands, or a row that breaks its rules: a defect of the program."""

    code = "STATEMENT_REFUSED"


class ConfigurationError(PenstockError):
    """A setting is missing, malformed, or contradicts another."""

    code = "CONFIGURATION_ERROR"


class LibraryMissing(ConfigurationError):
    """An application is not here, because a library that it needs is not installed; the message names the extra."""

    code = "LIBRARY_MISSING"


class SchemaOutOfDate(ConfigurationError):
    """The database's schema is not the one this version needs."""

    code = "SCHEMA_OUT_OF_DATE"


class Stopped(PenstockError):
    """The job was stopped, or the worker stops, while a handler ran; handlers let it through."""

    code = "STOPPED"


class HandlerError(PenstockError):
    """What a handler raises to say how its item ends."""

    code = "HANDLER_ERROR"


class Retryable(HandlerError):
    """It may work later.

    >>> raise Retryable("the shop answers 429", code="SHOP_BUSY", retry_after=30)
    Traceback (most recent call last):
    ...
    penstock.errors.Retryable: the shop answers 429
    """

    code = "RETRYABLE"

    def __init__(self, message: str, *, code: str | None = None, retry_after: float | None = None) -> None:
        super().__init__(message, code=code)
        self.retry_after = retry_after


class Postponed(HandlerError):
    """It was not even tried, because whoever is needed for it has no time now; that does not count as a try.

    >>> raise Postponed("the shop is closed for a minute", code="SHOP_CLOSED", retry_after=60)
    Traceback (most recent call last):
    ...
    penstock.errors.Postponed: the shop is closed for a minute
    """

    code = "POSTPONED"

    def __init__(self, message: str, *, code: str | None = None, retry_after: float) -> None:
        super().__init__(message, code=code)
        self.retry_after = retry_after


class Permanent(HandlerError):
    """It will not work however often it is tried."""

    code = "PERMANENT"


class NotFound(HandlerError):
    """What the item asks for does not exist."""

    code = "NOT_FOUND"


class Skip(HandlerError):
    """There is nothing to do for this item."""

    code = "SKIPPED"


class Killed(HandlerError):
    """The engine ended the handler; the subclass says for what."""

    code = "KILLED"
    killed_by = "system"


class TimeLimitExceeded(Killed):
    """The handler ran past its kind's ``timeout``."""

    code = "WORKER_TIMEOUT"
    killed_by = "timeout"


class MemoryLimitExceeded(Killed):
    """The handler's process took more than its kind's ``memory_limit``."""

    code = "WORKER_OOM"
    killed_by = "oom"


class WorkerCrashed(Killed):
    """The process that ran the handler died."""

    code = "WORKER_CRASH"
    killed_by = "worker_crash"
