"""``penstock result``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.options import AppOption, AsUser, JobId
from penstock.errors import InvalidInput

if TYPE_CHECKING:
    from penstock import Job


def result(
    job_id: JobId,
    text: Annotated[bool, typer.Option("--text", help="The result's `text` alone, as it is.")] = False,
    user: AsUser = None,
    app: AppOption = None,
) -> None:
    """Print a succeeded job's result as JSON.

    \b
    penstock result 8f2c11d04e57 | jq .word_count
    penstock result 8f2c11d04e57 --text > report.txt
    """
    from penstock.cli.application import open_app_as
    from penstock.cli.as_json import print_one
    from penstock.cli.identifiers import find_id
    from penstock.cli.texts import for_terminal

    with open_app_as(app, user) as mine:
        job = mine.jobs.get(find_id(mine.jobs, job_id))
        _require_result(job)
        if not text:
            print_one(job.result)
            return
        result_text = job.result.get("text") if isinstance(job.result, dict) else None
        if not isinstance(result_text, str):
            raise InvalidInput("the result of this job has no text; leave out --text", code="NO_TEXT")
        print(for_terminal(result_text) if sys.stdout.isatty() else result_text)


def _require_result(job: Job) -> None:
    from penstock.cli.job_summary import failure

    if not job.finished:
        raise InvalidInput(f"job {job.id} is {job.state.value}: there is no result yet", code="NO_RESULT")
    if job.state.value in ("failed", "canceled"):
        why = failure(job)
        raise InvalidInput(
            f"job {job.id} {'was ' if job.state.value == 'canceled' else ''}{job.state.value}"
            f"{', so there is no result' if not why else f': {why}'}",
            code="NO_RESULT",
        )
