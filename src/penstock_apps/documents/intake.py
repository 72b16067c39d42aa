"""Documents as uploads and files at the command line: created and submitted in one go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO, cast

from penstock import InvalidInput, owner
from penstock.ingest import HandedFile, Intake, Sender, TakenFiles, UploadOptions

if TYPE_CHECKING:
    from penstock_apps.documents.service import Documents


class DocumentIntake(Intake):
    """One job for each document."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    def take_files(self, files: Sequence[HandedFile], options: UploadOptions, sender: Sender) -> TakenFiles:
        """Create and submit a job for each document."""
        if not files:
            raise InvalidInput("name at least one document", field="file", code="FILE_MISSING")
        if sender.idempotency_key is not None and len(files) > 1:
            raise InvalidInput("an idempotency key names one job, so give one document with it", field="file")
        jobs = []
        for file in files:
            created = self._documents.create(
                cast("BinaryIO", file.stream),
                name=file.name,
                user=sender.user,
                media_type=file.media_type,
                idempotency_key=sender.idempotency_key,
            )
            is_new = created.state.value == "created"
            jobs.append(self._documents.submit(created.id, by=owner(sender.user)) if is_new else created)
        return TakenFiles(tuple(jobs), tuple(file.name for file in files))
