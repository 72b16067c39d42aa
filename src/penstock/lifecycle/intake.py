"""Files that become jobs: what a kind's intake is given, whether they come over HTTP or from the command line."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Protocol

from penstock.errors import InvalidInput
from penstock.lifecycle.callers import Caller, owner
from penstock.lifecycle.job import Job


class Readable(Protocol):
    """Anything bytes can be read from."""

    def read(self, size: int, /) -> bytes:
        """Up to ``size`` bytes; none at the end."""


class HandedFile(NamedTuple):
    """A file that somebody hands in."""

    stream: Readable
    name: str
    media_type: str | None = None


@dataclass(frozen=True, slots=True)
class UploadOptions:
    """What somebody says of a file; the rest is found out by looking at it."""

    job_type: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    sheet: str | None = None
    mapping: Mapping[str, str | None] | None = None
    """What columns of a table are to be taken for; None for one that is not used. The others are found out."""

    def of_table(self) -> dict[str, str | None]:
        """What is said of how a table is written."""
        return {"encoding": self.encoding, "delimiter": self.delimiter, "sheet": self.sheet}

    def to_json(self) -> dict[str, Any]:
        """The same for a request's fingerprint, in which a mapping is only if there is one."""
        values = asdict(self)
        return values if self.mapping is not None else {name: values[name] for name in values if name != "mapping"}


@dataclass(frozen=True, slots=True)
class Sender:
    """Whose the jobs will be, and what tells a request from its repetition."""

    user: str | None = None
    idempotency_key: str | None = None
    ip_address: str | None = None
    caller: Caller | None = None
    """Who asks, where that is more than the user: an admin, or the command line. It decides what they may read."""

    @property
    def reads_as(self) -> Caller:
        """In whose name sources are read."""
        return owner(self.user) if self.caller is None else self.caller


@dataclass(frozen=True, slots=True)
class RefusedFile:
    """A file of which no job was made, and why."""

    name: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class TakenFiles:
    """The jobs that were made of files."""

    jobs: tuple[Job, ...]
    files: tuple[str, ...]
    """Their names as they are kept."""
    mapping: dict[str, str | None] | None = None
    """What each column of a table was taken for."""
    failed: tuple[RefusedFile, ...] = ()
    is_new: bool = True
    """Was a job made just now, and not by the same request before?"""


class Intake(ABC):
    """Makes jobs of files. A kind names its intake; several kinds may share one, which looks what a file is."""

    finds_kind: bool = False
    """Does it tell from the files which of its kinds they are for? Then an upload need not say."""

    def start_form(self) -> object | None:
        """The form with which pages ask for files: a :class:`~penstock.http.forms.StartForm`, if there is one."""
        return None

    def require_enabled(self) -> None:  # noqa: B027 - most have nothing to refuse
        """Refuse before a large body is read for nothing."""

    @abstractmethod
    def take_files(self, files: Sequence[HandedFile], options: UploadOptions, sender: Sender) -> TakenFiles:
        """One job for files that were sent together."""

    def take_source(self, source: str, options: UploadOptions, sender: Sender) -> TakenFiles:
        """A job for each file that waits at a source."""
        raise InvalidInput("files of this kind are uploaded; none are fetched from a source", field="source")
