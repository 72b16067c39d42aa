"""Every error Penstock raises, each with a stable ``code``.

::

    PenstockError
    ├── InvalidInput            a caller's argument is wrong; ``field`` names it
    │   ├── PayloadNotStorable  params, an input or a result is not JSON we can keep
    │   └── PayloadTooLarge     … or is larger than the configured bound
    ├── KindUnknown             no kind of that name is registered here
    ├── JobNotFound             no such job, or it belongs to somebody else
    │   └── JobPruned           … there was one, and its time is over
    ├── FileNotFound            no such stored file, or it belongs to somebody else
    ├── TransitionRefused       the lifecycle does not allow that now
    ├── ChangedMeanwhile        the thing is not any more what the caller has seen of it
    ├── NotSignedIn             the caller is unknown: no token, or one that is not valid
    ├── NotAllowed              … the caller is known, but may not do that
    ├── TooManyRequests         … or may do it, but not so often
    ├── SwitchedOff             the operator does not offer that here, or not now
    ├── StoreUnavailable        the database cannot be reached, or did not answer
    │   └── StoreLocked         … another open transaction holds a row that is needed
    ├── BrokerUnavailable       no message broker can be reached, or it did not confirm in time
    ├── RequestFailed           another host was asked over HTTP, and did not answer as it should
    │   ├── HostUnknown         … there is no such host
    │   ├── HostRefused         … the host is not public, and nobody has allowed it
    │   ├── AnswerTooLate       … its answer was not there in time
    │   ├── AnswerTooLarge      … its answer is larger than allowed
    │   └── TooManyRedirects    … it leads on and on
    ├── MessageRefused          a subscriber can never take a message; it is put aside with the reason
    ├── StoreRefused            the database will not keep a value
    │   └── StatementRefused    … or will not run a statement: a defect of the program
    ├── ConfigurationError      a setting is missing or contradicts another
    │   ├── LibraryMissing      an application lacks a library; the message names the extra that brings it
    │   └── SchemaOutOfDate     the database needs ``penstock migrate``
    ├── Stopped                 the job was stopped while its handler ran
    └── HandlerError            what a handler raises to say how its item ends
        ├── Retryable           try again later
        ├── Postponed           it was not tried: try later, and do not count this
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

from typing import TypeVar, cast

from penstock.redaction import hide_secrets

__all__ = [
    "PenstockError",
    "InvalidInput",
    "PayloadNotStorable",
    "PayloadTooLarge",
    "KindUnknown",
    "JobNotFound",
    "JobPruned",
    "FileNotFound",
    "TransitionRefused",
    "ChangedMeanwhile",
    "NotSignedIn",
    "NotAllowed",
    "TooManyRequests",
    "SwitchedOff",
    "StoreUnavailable",
    "StoreLocked",
    "BrokerUnavailable",
    "RequestFailed",
    "HostUnknown",
    "HostRefused",
    "AnswerTooLate",
    "AnswerTooLarge",
    "TooManyRedirects",
    "MessageRefused",
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


Message = TypeVar("Message")


def _without_secrets(message: Message) -> Message:
    """What is no text stays as it is: handlers of others raise these with whatever they have."""
    return cast("Message", hide_secrets(message)) if isinstance(message, str) else message


class PenstockError(Exception):
    """The root of the tree: a message for a person and a code for a program.

    The message may name an address: what that has of passwords and keys is left out.
    """

    code = "PENSTOCK_ERROR"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        self.message = _without_secrets(message)
        super().__init__(self.message)
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


class JobPruned(JobNotFound):
    """There was such a job: it has been kept for as long as its kind says."""

    code = "JOB_PRUNED"


class FileNotFound(PenstockError):
    """There is no such stored file for this caller."""

    code = "FILE_NOT_FOUND"


class TransitionRefused(PenstockError):
    """The job's state does not allow what was asked."""

    code = "TRANSITION_REFUSED"


class ChangedMeanwhile(PenstockError):
    """What is to be changed is not any more what the caller has seen of it."""

    code = "CHANGED_MEANWHILE"


class NotSignedIn(PenstockError):
    """The caller is unknown: there is no token, or it is expired, forged or meant for another service."""

    code = "TOKEN_MISSING"


class NotAllowed(PenstockError):
    """The caller is known, and may not do that."""

    code = "NOT_ALLOWED"


class TooManyRequests(PenstockError):
    """More requests than the limit allows; ``retry_after`` says in how many seconds to retry."""

    code = "TOO_MANY_REQUESTS"

    def __init__(self, message: str, *, retry_after: float, code: str | None = None) -> None:
        super().__init__(message, code=code)
        self.retry_after = retry_after


class SwitchedOff(PenstockError):
    """The operator has switched this off, or all its places are taken now."""

    code = "SWITCHED_OFF"


class StoreUnavailable(PenstockError):
    """The database cannot be reached, or the connection broke; the call may be repeated."""

    code = "DB_CONN_REFUSED"


class StoreLocked(StoreUnavailable):
    """Another open transaction holds a row that is needed; nothing was changed, and the call may be repeated."""

    code = "STORE_LOCKED"


class BrokerUnavailable(PenstockError):
    """The message broker cannot be reached, or did not confirm a message in time. Nothing is lost: messages wait."""

    code = "BROKER_UNAVAILABLE"


class RequestFailed(PenstockError):
    """Another host was asked over HTTP, and there is no answer that can be read; asking again may help."""

    code = "REQUEST_FAILED"


class HostUnknown(RequestFailed):
    """There is no such host."""

    code = "HOST_UNKNOWN"


class HostRefused(RequestFailed):
    """The host is not one of the public internet, and nobody has allowed it."""

    code = "HOST_REFUSED"


class AnswerTooLate(RequestFailed):
    """The answer was not there in time, with all redirects and to its last byte."""

    code = "ANSWER_TOO_LATE"


class AnswerTooLarge(RequestFailed):
    """The answer is larger than allowed, once unpacked or as it is sent."""

    code = "ANSWER_TOO_LARGE"


class TooManyRedirects(RequestFailed):
    """The host leads on to another address again and again."""

    code = "TOO_MANY_REDIRECTS"


class MessageRefused(PenstockError):
    """What a subscriber raises about a message that it can never take: it goes to the dead letters, with the reason."""

    code = "MESSAGE_REFUSED"


class StoreRefused(PenstockError):
    """The database refused a value or a row; repeating the call will not help."""

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
    """The job was stopped, or the worker stops, while a handler ran; a handler lets it through."""

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
    """The item was not tried, because what it needs is not available now; this does not count as a try.

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
    """It will fail however often it is tried."""

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
