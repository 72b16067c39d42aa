"""The documents application, as the command line uses it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from penstock.cli.scoreboard import Row
from penstock.cli.texts import counted
from penstock.errors import InvalidInput

if TYPE_CHECKING:
    from uuid import UUID

    from penstock import Job
    from penstock_apps.documents.service import Documents

KIND = "document"


def documents_of(module: ModuleType) -> Documents | None:
    """The documents service beside an app: an attribute of its module."""
    from penstock_apps.documents.service import Documents

    if module.__name__ == "penstock_apps":
        from penstock_apps import build

        return build().documents
    return next((value for value in vars(module).values() if isinstance(value, Documents)), None)


def submit_documents(
    documents: Documents, paths: Sequence[Path], user: str | None, *, idempotency_key: str | None = None
) -> list[Job]:
    """Create and submit a job for each file; nothing is submitted when one of them cannot be read."""
    from penstock import owner

    for path in paths:
        _require_readable(path)
    jobs = []
    for path in paths:
        with path.open("rb") as stream:
            created = documents.create(stream, name=path.name, user=user, idempotency_key=idempotency_key)
        jobs.append(documents.submit(created.id, by=owner(user)) if created.state.value == "created" else created)
    return jobs


def document_row(job: UUID, name: str) -> Row:
    """A document job as the specification's users see it."""
    from penstock.lifecycle import VOCABULARIES

    return Row(job, name, VOCABULARIES["documents"], tell)


def tell(result: Any) -> str:
    """A document's result in a few words."""
    if not isinstance(result, dict):
        return ""
    pages = result.get("page_count")
    return ", ".join(
        part
        for part in (
            str(result.get("document_type", "")),
            counted(pages, "page") if isinstance(pages, int) else "",
            counted(int(result.get("word_count", 0)), "word"),
        )
        if part
    )


def _require_readable(path: Path) -> None:
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}", field="file", code="FILE_NOT_READABLE") from None
