"""Taking files in: kept first, then looked at, then recorded as a job; the rows follow when a worker plans it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from hashlib import sha256
from typing import cast
from uuid import UUID, uuid4

from penstock import Caller, Job, Penstock, owner
from penstock.app import ReceivedFile
from penstock.errors import HandlerError, InvalidInput, JobNotFound, SwitchedOff, TooManyRequests
from penstock.http import StartForm
from penstock.ingest import (
    HandedFile,
    Intake,
    RefusedFile,
    Sender,
    Source,
    SourceSettings,
    TakenFiles,
    UploadOptions,
    require_known_places,
    source_of,
)
from penstock.lifecycle import JSON, SubmitOutcome
from penstock_apps.products.file_reader import FileReader
from penstock_apps.products.forms import MAX_PICTURES, UPLOAD
from penstock_apps.products.kinds import PICTURES, TABLE
from penstock_apps.products.looking import ColumnsSeen, look_at_columns, look_at_files
from penstock_apps.products.payloads import TableParams
from penstock_apps.uploads import Rewindable, sha256_of

JOB_TYPES = (TABLE, PICTURES)
_SCANS = 2
"""Scans at once; each keeps a thread of the server for as long as its files take."""


@dataclass(frozen=True, slots=True)
class ScanReport:
    """What was found at a source: new jobs, files whose jobs were there already, and files that cannot be used."""

    new_jobs: tuple[tuple[str, Job], ...]
    known_jobs: tuple[tuple[str, Job], ...]
    refused_files: tuple[RefusedFile, ...]
    has_more: bool = False
    """Do more files wait than one scan takes?"""


class ProductIntake(Intake):
    """Makes jobs of files, whether they are uploaded or wait at a source."""

    finds_kind = True

    def __init__(self, app: Penstock, files: FileReader, sources: SourceSettings) -> None:
        require_known_places(app.settings.ingest_roots, sources)
        self._app = app
        self._files = files
        self._sources = sources
        self._scans = threading.BoundedSemaphore(_SCANS)

    def require_enabled(self) -> None:
        """Refuse while an operator has switched uploads off."""
        if not self._app.settings.db_ingest_enabled:
            raise SwitchedOff(
                "uploads are switched off just now (DB_INGEST_ENABLED); jobs that were taken in go on",
                code="INGEST_DISABLED",
            )

    # What the engine asks -------------------------------------------------------------------------------------------

    def start_form(self) -> StartForm:
        """The form with which pages ask for products."""
        return UPLOAD

    def take_files(
        self,
        files: Sequence[HandedFile],
        options: UploadOptions,
        sender: Sender,
        *,
        job_id: UUID | None = None,
        fingerprint: JSON = None,
    ) -> TakenFiles:
        """One job for a table, for pictures, or for an archive of pictures.

        With an idempotency key the files are compared with those it was used for before they are kept; without a
        ``fingerprint`` their streams must be such that can be read twice.
        """
        self._require_usable(files, options)
        sender_app = self._app.acting_as(owner(sender.user))
        if sender.idempotency_key is not None and fingerprint is None:
            digests = [[file.name, sha256_of(cast("Rewindable", file.stream))] for file in files]
            fingerprint = ["products", digests, options.to_json()]
            earlier = sender_app.take_key(sender.idempotency_key, fingerprint, ip_address=sender.ip_address)
            if earlier is not None:
                return _taken_before(sender_app.jobs.get(earlier), files)
        with ExitStack() as not_kept:
            # Looked at before they are kept: of files that are refused nothing is left on the disk.
            received_files = [not_kept.enter_context(self._receive(file, sender.user)) for file in files]
            params = self._files.look(look_at_files, received_files, options, sender.user)
            mapping = params["mapping"] if "mapping" in params else None  # noqa: SIM401 - the others have no such key
            job_type = PICTURES if mapping is None else TABLE
            if options.job_type not in (None, job_type):
                raise _wrong_job_type(options.job_type, received_files[0].name, job_type)
            kept_files = [file.keep() for file in received_files]
        first = kept_files[0]
        submission = sender_app.submit(
            job_type,
            params,
            file=first,
            idempotency_key=sender.idempotency_key,
            fingerprint=fingerprint,
            ip_address=sender.ip_address,
            job_id=job_id,
            title=first.name if len(kept_files) == 1 else f"{first.name} and {len(kept_files) - 1} more",
        )
        return TakenFiles(
            (submission.job,),
            tuple(file.name for file in kept_files),
            mapping,
            is_new=submission.answer is SubmitOutcome.NEW,
        )

    def take_source(self, source: str, options: UploadOptions, sender: Sender) -> TakenFiles:
        """A job for each file that waits at a source."""
        key = sender.idempotency_key
        if key is not None:
            request = {"source": source, **options.to_json()}
            self._app.acting_as(owner(sender.user)).take_key(key, ["products source", request])
        report = self.scan(
            source,
            sender.reads_as,
            user=sender.user,
            options=options,
            # Asked for twice, a file is taken in twice, unless a key says that it is the same request.
            once_per=f"request {key or uuid4()}",
            ip_address=sender.ip_address,
        )
        both = [*report.known_jobs, *report.new_jobs]
        if not both and report.refused_files:
            first = report.refused_files[0]
            raise InvalidInput(f"{first.name}: {first.message}", field="source", code=first.code)
        if not both:
            raise InvalidInput(
                f"no file waits at {source[:200]!r}: check the address, and whether a file is still being written",
                field="source",
                code="FILE_MISSING",
            )
        jobs = tuple(job for _, job in both)
        table = _table_params(jobs[0])
        mapping = None if table is None else table["mapping"]
        return TakenFiles(
            jobs, tuple(name for name, _ in both), mapping, (*report.refused_files, *_rest(report, source))
        )

    def look_at_columns(self, file: HandedFile, options: UploadOptions, user: str | None) -> ColumnsSeen:
        """What the columns of a table are taken for, and some of what they hold; nothing of the file is kept."""
        self.require_enabled()
        with self._receive(file, user) as received_file:
            return self._files.look(look_at_columns, [received_file], options, user)

    @property
    def max_body_bytes(self) -> int:
        """The largest body with files."""
        return self._app.settings.max_body_bytes

    def _receive(self, file: HandedFile, user: str | None) -> AbstractContextManager[ReceivedFile]:
        max_bytes = self._app.settings.ingest_max_file_bytes
        return self._app.acting_as(owner(user)).files.receive(
            file.stream, name=file.name, media_type=file.media_type, max_bytes=max_bytes
        )

    def _require_usable(self, files: Sequence[HandedFile], options: UploadOptions) -> None:
        """Refuse what cannot become a job, whatever the files hold."""
        self.require_enabled()
        if options.job_type is not None and options.job_type not in JOB_TYPES:
            raise InvalidInput(
                f"jobType is {options.job_type[:40]!r}; it is {' or '.join(JOB_TYPES)}, or left out",
                field="jobType",
                code="JOB_TYPE_UNKNOWN",
            )
        if not files:
            raise InvalidInput("no file was sent: send one in a part named 'file'", field="file", code="FILE_MISSING")
        if len(files) > MAX_PICTURES:
            raise InvalidInput(
                f"{len(files):,} files were sent; {MAX_PICTURES:,} pictures are taken at once, or a ZIP of more",
                field="file",
                code="TOO_MANY_FILES",
            )

    # Sources ------------------------------------------------------------------------------------------------------

    def scan(
        self,
        address: str,
        caller: Caller,
        *,
        user: str | None,
        options: UploadOptions | None = None,
        once_per: str = "scan",
        ip_address: str | None = None,
    ) -> ScanReport:
        """One job for each file that waits at a source of the caller's; a file gets one however often it is scanned.

        ``once_per`` names the occasion: for another one, the same file gets another job. No more files are taken in at
        once than the settings allow; the oldest come first, and the others wait for the next scan.
        """
        self.require_enabled()
        source = self._source(address, caller)
        if not self._scans.acquire(blocking=False):
            raise TooManyRequests(
                f"{_SCANS} scans are running on this server already; retry in a moment",
                retry_after=5.0,
                code="TOO_MANY_SCANS",
            )
        try:
            return self._scan(source, user, options, once_per, ip_address)
        except HandlerError as error:
            # Whoever asks is told as of anything else in the request; a worker's words would be a fault of ours.
            raise InvalidInput(error.message, field="source", code=error.code) from error
        finally:
            self._scans.release()

    def _scan(
        self, source: Source, user: str | None, options: UploadOptions | None, once_per: str, ip_address: str | None
    ) -> ScanReport:
        new_jobs: list[tuple[str, Job]] = []
        known_jobs: list[tuple[str, Job]] = []
        refused_files: list[RefusedFile] = []
        for file in source.waiting():
            key = sha256("|".join((once_per, file.address, file.version)).encode("utf-8", "surrogateescape"))
            # The job's id follows from the file, so what was taken in before is known without reading it again.
            job_id = UUID(bytes=sha256(f"{user or ''}|{key.hexdigest()}".encode()).digest()[:16], version=4)
            known_job = self._find_job(job_id, user)
            if known_job is not None:
                known_jobs.append((file.name, known_job))
                continue
            if len(new_jobs) + len(refused_files) >= self._app.settings.ingest_scan_files:
                return ScanReport(tuple(new_jobs), tuple(known_jobs), tuple(refused_files), has_more=True)
            try:
                with source.open(file) as stream:
                    taken_files = self.take_files(
                        [HandedFile(stream, file.name)],
                        options or UploadOptions(),
                        Sender(user, key.hexdigest(), ip_address),
                        job_id=job_id,
                        fingerprint=["products source", key.hexdigest()],
                    )
            except (HandlerError, InvalidInput) as error:
                refused_files.append(RefusedFile(file.name, error.code, error.message))
            else:
                (new_jobs if taken_files.is_new else known_jobs).append((file.name, taken_files.jobs[0]))
        return ScanReport(tuple(new_jobs), tuple(known_jobs), tuple(refused_files))

    def _find_job(self, job_id: UUID, user: str | None) -> Job | None:
        try:
            return self._app.acting_as(owner(user)).jobs.get(job_id)
        except JobNotFound:
            return None

    def _source(self, address: str, caller: Caller) -> Source:
        settings = self._app.settings
        return source_of(
            address,
            caller=caller,
            roots=settings.ingest_roots,
            settings=self._sources,
            settle_seconds=settings.ingest_settle_seconds,
        )


def _rest(report: ScanReport, source: str) -> Sequence[RefusedFile]:
    """What is said of files that were left because there are too many."""
    if not report.has_more:
        return ()
    message = "more files wait than one request takes in: name a smaller part, or repeat POST /api/ingestion/scan"
    return (RefusedFile(source[:200], "TOO_MANY_FILES", message),)


def _taken_before(job: Job, files: Sequence[HandedFile]) -> TakenFiles:
    """A job that the same files have made already."""
    table = _table_params(job)
    mapping = None if table is None else table["mapping"]
    return TakenFiles((job,), tuple(file.name for file in files), mapping, is_new=False)


def _wrong_job_type(option: str | None, name: str, job_type: str) -> InvalidInput:
    what = "a table" if job_type == TABLE else "no table but pictures"
    return InvalidInput(
        f"jobType is {option!r}, and {name!r} is {what}: leave it out, or send another file",
        field="jobType",
        code="JOB_TYPE_WRONG",
    )


def _table_params(job: Job) -> TableParams | None:
    """What a job over a table was submitted with; None of one over pictures."""
    if job.kind != TABLE:
        return None
    params: TableParams = job.params
    return params
