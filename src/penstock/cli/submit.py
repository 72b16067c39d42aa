"""``penstock submit``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.options import AppOption

if TYPE_CHECKING:
    from penstock import Submission
    from penstock.app import Jobs
    from penstock.cli.scoreboard import Row
    from penstock_apps.documents.service import Documents


def submit(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="The kind of job; for 'document', files follow.")],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PARAMS | FILE...]", help="JSON, @FILE with JSON in it, or - for standard input."),
    ] = None,
    owner: Annotated[str | None, typer.Option(metavar="USER", help="Whose job it is; nobody's unless said.")] = None,
    unique_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="One job does the work for all who submit this key.")
    ] = None,
    fresh_for: Annotated[
        str | None, typer.Option(metavar="TIME", help="A result of the same key not older than this will do, like 5m.")
    ] = None,
    idempotency_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="The same key and owner always give the same job.")
    ] = None,
    items: Annotated[
        str | None, typer.Option(metavar="FILE", help="One item from each line of JSON; - for standard input.")
    ] = None,
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What people know the job by; a document has its file's name.")
    ] = None,
    priority: Annotated[int | None, typer.Option(help="Higher goes first; the kind's own unless said.")] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Watch until it is finished; exit 1 if it failed, 3 if it was canceled.")
    ] = False,
    app: AppOption = None,
) -> None:
    """Record a job for the workers, and print its id.

    \b
    penstock submit greet '{"name": "world"}' --app tour:app
    penstock submit price-check --items rows.jsonl --owner alice --wait
    penstock submit document report.pdf letter.docx --owner alice --wait
    """
    from penstock.cli.application import loaded
    from penstock.cli.callers import caller
    from penstock.cli.documents import KIND, documents_of
    from penstock.cli.reading import read_items, read_params
    from penstock.errors import InvalidInput

    given = arguments or []
    with loaded(app) as one:
        documents = documents_of(one.module) if kind == KIND else None
        if documents is not None:
            if unique_key or fresh_for or items or title or priority is not None:
                raise InvalidInput("a document takes --owner, --idempotency-key and --wait only", code="USAGE")
            rows = _documents(documents, [Path(name) for name in given], owner, idempotency_key)
        else:
            one.app.kinds.get(kind)  # an unknown kind is the first thing to say
            if len(given) > 1:
                raise InvalidInput(f"give one JSON value as params, not {len(given)}; quote it for the shell")
            params = read_params(given[0]) if given else None
            lines = None if items is None else read_items(items)
            rows = _one(
                one.app.acting_as(caller(owner)).submit(
                    kind,
                    params,
                    items=lines,
                    owner=owner,
                    unique_key=unique_key,
                    fresh_for=fresh_for,
                    idempotency_key=idempotency_key,
                    priority=priority,
                    title=title,
                ),
                kind,
            )
        if wait:
            _wait(one.app.acting_as(caller(owner)).jobs, rows)


def _one(submission: Submission, kind: str) -> list[Row]:
    from penstock.cli.identifiers import short
    from penstock.cli.scoreboard import Row

    job, answer = submission.job, submission.answer.value
    print(job.id, flush=True)
    said = {
        "new": "recorded",
        "existing": "this job was there already",
        "following": "recorded; it waits for another job that does the same work",
        "cached": "a fresh result was there",
    }[answer]
    _note(f"{kind} {job.state.value} ({said}); watch it with: penstock watch {short(job.id)}")
    return [Row(job.id, kind)]


def _documents(documents: Documents, paths: list[Path], user: str | None, idempotency_key: str | None) -> list[Row]:
    from penstock.cli.documents import document_row, submit_documents
    from penstock.errors import InvalidInput

    if not paths:
        raise InvalidInput("name at least one document: penstock submit document FILE...", code="USAGE")
    if idempotency_key is not None and len(paths) > 1:
        raise InvalidInput("--idempotency-key names one job, so give one document with it", code="USAGE")
    jobs = submit_documents(documents, paths, user, idempotency_key=idempotency_key)
    for job in jobs:
        print(job.id, flush=True)
    return [document_row(job.id, path.name) for job, path in zip(jobs, paths, strict=True)]


def _wait(jobs: Jobs, rows: list[Row]) -> None:
    from penstock.cli import job_summary
    from penstock.cli.following import follow

    codes = [job_summary.exit_code(job) for job in follow(jobs, rows)]
    code = codes[0] if len(codes) == 1 else min(1, max(codes))
    if code:
        raise typer.Exit(code)


def _note(text: str) -> None:
    """For the person, apart from the id on standard output, which is for the shell."""
    print(text, file=sys.stderr, flush=True)
