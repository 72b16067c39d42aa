"""Taking files in: kept first, then looked at, then recorded as a job; the rows follow when a worker plans it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import cast
from uuid import UUID, uuid4

from penstock import SYSTEM, Job, Penstock, owner
from penstock.app import StoredFile
from penstock.errors import HandlerError, InvalidInput, JobNotFound, SwitchedOff
from penstock.http import StartForm
from penstock.ingest import (
    ArchiveLimits,
    FileType,
    HandedFile,
    Intake,
    RefusedFile,
    Sender,
    Source,
    SourceSettings,
    TableShape,
    TakenFiles,
    UploadOptions,
    Waiting,
    detect_type,
    look_at_archive,
    look_at_table,
    source_of,
    table_limits,
)
from penstock.lifecycle import JSON, SubmitOutcome
from penstock_apps.products.forms import MAX_PICTURES, UPLOAD
from penstock_apps.products.headers import map_headers
from penstock_apps.products.kinds import PICTURES, TABLE
from penstock_apps.products.payloads import ArchiveParams, PictureParams, TableParams
from penstock_apps.uploads import Rewindable, sha256_of

JOB_TYPES = (TABLE, PICTURES)
_LOOKED_UP_BY = frozenset(("sku", "gtin", "title"))


@dataclass(frozen=True, slots=True)
class TakenJob:
    """A job that was made of files."""

    job: Job
    is_new: bool
    job_type: str
    files: tuple[str, ...]
    mapping: dict[str, str | None] | None = None
    headers: tuple[str, ...] | None = None
    shape: TableShape | None = None


@dataclass(frozen=True, slots=True)
class ScanReport:
    """What was found at a source: new jobs, files whose jobs were there already, and files that cannot be used."""

    new_jobs: tuple[tuple[str, Job], ...]
    known_jobs: tuple[tuple[str, Job], ...]
    refused_files: tuple[RefusedFile, ...]


class ProductIntake(Intake):
    """Makes jobs of files, whether they are uploaded or wait at a source."""

    finds_kind = True

    def __init__(self, app: Penstock, sources: SourceSettings) -> None:
        self._app = app
        self._sources = sources

    def archive_limits(self) -> ArchiveLimits:
        """The bounds the settings put on an archive."""
        return ArchiveLimits(decompressed_bytes=self._app.settings.ingest_max_decompressed_bytes)

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

    def take_files(self, files: Sequence[HandedFile], options: UploadOptions, sender: Sender) -> TakenFiles:
        """One job for files that were sent together."""
        result = self.take(
            files,
            user=sender.user,
            options=options,
            idempotency_key=sender.idempotency_key,
            ip_address=sender.ip_address,
        )
        return TakenFiles((result.job,), result.files, result.mapping)

    def take_source(self, source: str, options: UploadOptions, sender: Sender) -> TakenFiles:
        """A job for each file that waits at a source."""
        key = sender.idempotency_key
        if key is not None:
            request = {"source": source, **asdict(options)}
            self._app.acting_as(owner(sender.user)).take_key(key, ["products source", request])
        report = self.scan(
            source,
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
        return TakenFiles(jobs, tuple(name for name, _ in both), mapping, report.refused_files)

    # Uploads ------------------------------------------------------------------------------------------------------

    def take(
        self,
        files: Sequence[HandedFile],
        *,
        user: str | None,
        options: UploadOptions | None = None,
        idempotency_key: str | None = None,
        ip_address: str | None = None,
        job_id: UUID | None = None,
        fingerprint: JSON = None,
    ) -> TakenJob:
        """One job for a table, for pictures, or for an archive of pictures.

        With an idempotency key the files are compared with those it was used for before they are kept; without a
        ``fingerprint`` their streams must be such that can be read twice.
        """
        self.require_enabled()
        options = options or UploadOptions()
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
        if idempotency_key is not None and fingerprint is None:
            names = [[file.name, sha256_of(cast("Rewindable", file.stream))] for file in files]
            fingerprint = ["products", names, asdict(options)]
            earlier = self._app.acting_as(owner(user)).take_key(idempotency_key, fingerprint, ip_address=ip_address)
            if earlier is not None:
                return _taken_before(self._app.acting_as(owner(user)).jobs.get(earlier), files)
        stored_files = [self._keep(file, user) for file in files]
        job_type, params, shape = self._job_of(stored_files, options)
        submission = self._app.acting_as(owner(user)).submit(
            job_type,
            params,
            file=stored_files[0],
            idempotency_key=idempotency_key,
            fingerprint=fingerprint,
            ip_address=ip_address,
            job_id=job_id,
            title=stored_files[0].name
            if len(stored_files) == 1
            else f"{stored_files[0].name} and {len(stored_files) - 1} more",
        )
        return TakenJob(
            job=submission.job,
            is_new=submission.answer is SubmitOutcome.NEW,
            job_type=job_type,
            files=tuple(file.name for file in stored_files),
            mapping=None if shape is None else map_headers(shape.headers),
            headers=None if shape is None else shape.headers,
            shape=shape,
        )

    def _keep(self, file: HandedFile, user: str | None) -> StoredFile:
        max_bytes = self._app.settings.ingest_max_file_bytes
        return self._app.acting_as(owner(user)).files.keep(
            file.stream, name=file.name, media_type=file.media_type, max_bytes=max_bytes
        )

    def _job_of(
        self, stored_files: Sequence[StoredFile], options: UploadOptions
    ) -> tuple[str, TableParams | ArchiveParams | PictureParams, TableShape | None]:
        """Which job files make, with which params."""
        paths = [self._app.acting_as(SYSTEM).files.path(file) for file in stored_files]
        kinds = [detect_type(path, file.name) for path, file in zip(paths, stored_files, strict=True)]
        tables = [kind for kind in kinds if kind in (FileType.DELIMITED, FileType.XLSX)]
        archives = kinds.count(FileType.ARCHIVE)
        if len(stored_files) > 1 and len(tables) + archives:
            if len(tables) == len(stored_files) or archives == len(stored_files):
                what = "table" if tables else "archive"
                message, code = (
                    f"{len(stored_files)} {what}s were sent: send one at a time, each is a job",
                    "TOO_MANY_FILES",
                )
            else:
                message, code = "tables, archives and pictures were sent together: send them apart", "MIXED_FILES"
            raise InvalidInput(message, field="file", code=code)
        job_type = TABLE if tables else PICTURES
        if options.job_type not in (None, job_type):
            what = "a table" if tables else "no table but pictures"
            raise InvalidInput(
                f"jobType is {options.job_type!r}, and {stored_files[0].name!r} is {what}: leave it out, or send "
                "another file",
                field="jobType",
                code="JOB_TYPE_WRONG",
            )
        first = stored_files[0]
        if tables:
            shape, mapping = self._table(paths[0], first.name, options)
            table = TableParams(
                file_id=str(first.id), name=first.name, sha256=first.sha256, shape=shape.to_json(), mapping=mapping
            )
            return job_type, table, shape
        if archives:
            look_at_archive(paths[0], self.archive_limits())
            return job_type, ArchiveParams(file_id=str(first.id), name=first.name, archive=first.sha256), None
        pictures = PictureParams(pictures=[{"sha256": file.sha256, "name": file.name} for file in stored_files])
        return job_type, pictures, None

    def _table(self, path: Path, name: str, options: UploadOptions) -> tuple[TableShape, dict[str, str | None]]:
        shape = look_at_table(
            path,
            name,
            table_limits(self._app.settings),
            encoding=options.encoding,
            delimiter=options.delimiter,
            sheet=options.sheet,
        )
        mapping = map_headers(shape.headers)
        if not _LOOKED_UP_BY & set(mapping.values()):
            headers = ", ".join(repr(header[:40]) for header in shape.headers[:10])
            raise InvalidInput(
                f"no column of {name!r} holds article numbers, barcode numbers or titles (its first line has "
                f"{headers}): name one 'sku', 'gtin' or 'title'",
                field="file",
                code="NO_PRODUCT_COLUMN",
            )
        return shape, mapping

    # Sources ------------------------------------------------------------------------------------------------------

    def scan(
        self,
        address: str,
        *,
        user: str | None,
        options: UploadOptions | None = None,
        once_per: str = "scan",
        ip_address: str | None = None,
    ) -> ScanReport:
        """One job for each file that waits at a source; a file gets one however often it is scanned.

        ``once_per`` names the occasion: for another one, the same file gets another job.
        """
        self.require_enabled()
        source = self._source(address)
        new_jobs: list[tuple[str, Job]] = []
        known_jobs: list[tuple[str, Job]] = []
        refused_files: list[RefusedFile] = []
        try:
            for file in source.waiting():
                try:
                    job, is_new = self._take_waiting(source, file, user, options, once_per, ip_address)
                except (HandlerError, InvalidInput) as error:
                    refused_files.append(RefusedFile(file.name, error.code, error.message))
                else:
                    (new_jobs if is_new else known_jobs).append((file.name, job))
        except HandlerError as error:
            # Whoever asks is told as of anything else in the request; a worker's words would be a fault of ours.
            raise InvalidInput(error.message, field="source", code=error.code) from error
        return ScanReport(tuple(new_jobs), tuple(known_jobs), tuple(refused_files))

    def _take_waiting(
        self,
        source: Source,
        file: Waiting,
        user: str | None,
        options: UploadOptions | None,
        once_per: str,
        ip_address: str | None,
    ) -> tuple[Job, bool]:
        key = sha256("|".join((once_per, file.address, file.version)).encode("utf-8", "surrogateescape")).hexdigest()
        # The job's id follows from the file, so what was taken in before is known without reading it again.
        job_id = UUID(bytes=sha256(f"{user or ''}|{key}".encode()).digest()[:16], version=4)
        try:
            return self._app.acting_as(owner(user)).jobs.get(job_id), False
        except JobNotFound:
            pass
        with source.open(file) as stream:
            result = self.take(
                [HandedFile(stream, file.name)],
                user=user,
                options=options,
                idempotency_key=key,
                fingerprint=["products source", key],
                ip_address=ip_address,
                job_id=job_id,
            )
        return result.job, result.is_new

    def _source(self, address: str) -> Source:
        settings = self._app.settings
        return source_of(
            address, roots=settings.ingest_roots, settings=self._sources, settle_seconds=settings.ingest_settle_seconds
        )


def _taken_before(job: Job, files: Sequence[HandedFile]) -> TakenJob:
    """A job that the same files have made already."""
    table = _table_params(job)
    shape = None if table is None else TableShape.from_json(table["shape"])
    return TakenJob(
        job=job,
        is_new=False,
        job_type=job.kind,
        files=tuple(file.name for file in files),
        mapping=None if table is None else table["mapping"],
        headers=None if shape is None else shape.headers,
        shape=shape,
    )


def _table_params(job: Job) -> TableParams | None:
    """What a job over a table was submitted with; None of one over pictures."""
    if job.kind != TABLE:
        return None
    params: TableParams = job.params
    return params
