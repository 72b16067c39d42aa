"""``penstock reprocess``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from penstock.cli.options import AppOption, AsUser, JobId, Reason


class EndedStatus(StrEnum):
    """The statuses an item can have ended with."""

    DONE = "DONE"
    ERROR = "ERROR"
    NOT_FOUND = "NOT_FOUND"
    SKIPPED = "SKIPPED"


def reprocess(
    job_id: JobId,
    status: Annotated[
        list[EndedStatus] | None,
        typer.Option("--status", help="Run the items with this status again; ERROR and NOT_FOUND unless said."),
    ] = None,
    code: Annotated[
        list[str] | None,
        typer.Option("--code", metavar="CODE", help="Only items that ended with this error code; '' for none."),
    ] = None,
    reason: Reason = None,
    user: AsUser = None,
    app: AppOption = None,
) -> None:
    """Run items of a finished job again, where its kind allows it.

    \b
    penstock reprocess 8f2c11d04e57
    penstock reprocess 8f2c11d04e57 --status SKIPPED --status NOT_FOUND
    penstock reprocess 8f2c11d04e57 --code PROCESSING_ERROR
    """
    from penstock import ItemStatus
    from penstock.cli.job_change import change

    statuses = [ItemStatus(choice.value) for choice in status] if status else [ItemStatus.ERROR, ItemStatus.NOT_FOUND]
    codes = [error_code or None for error_code in code] if code else None
    change(
        job_id,
        user,
        app,
        lambda jobs, full_id: jobs.reprocess(full_id, statuses=statuses, error_codes=codes, reason=reason),
    )
