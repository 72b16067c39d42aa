"""``penstock submit``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.options import AppOption

if TYPE_CHECKING:
    from penstock import Penstock, Submission
    from penstock.app import Jobs
    from penstock.cli.scoreboard import Row
    from penstock.lifecycle.kind import Kind


def submit(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="The kind of job; files follow if it takes files.")],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PARAMS | FILE...]", help="JSON, @FILE with JSON in it, or - for standard input."),
    ] = None,
    owner: Annotated[str | None, typer.Option(metavar="USER", help="The job's owner; none by default.")] = None,
    unique_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="One job does the work for all who submit this key.")
    ] = None,
    fresh_for: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Take a result of the same key that is not older than this, like 5m."),
    ] = None,
    idempotency_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="The same key and owner always give the same job.")
    ] = None,
    items: Annotated[
        str | None, typer.Option(metavar="FILE", help="One item from each line of JSON; - for standard input.")
    ] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="The job's title.")] = None,
    priority: Annotated[int | None, typer.Option(help="Higher goes first; the kind's own unless said.")] = None,
    at: Annotated[str | None, typer.Option(metavar="TIME", help="Not before then, like 2026-12-24T18:00Z.")] = None,
    delay: Annotated[str | None, typer.Option(metavar="TIME", help="Not before so long from now, like 10m.")] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Watch until it is finished; exit 1 if it failed, 3 if it was canceled.")
    ] = False,
    app: AppOption = None,
) -> None:
    """Record a job for the workers, and print its id.

    \b
    penstock submit greet '{"name": "world"}' --app tour:app
    penstock submit price-check --items rows.jsonl --owner alice --wait
    penstock submit report --delay 2h
    penstock submit price-list autumn.csv winter.csv --owner alice --wait
    """
    from penstock.cli.application import open_module
    from penstock.cli.callers import caller
    from penstock.cli.json_input import read_items, read_params
    from penstock.errors import InvalidInput
    from penstock.lifecycle.moments import read_moment

    values = arguments or []
    with open_module(app) as loaded_app:
        registered_kind = loaded_app.app.kinds.get(kind)  # an unknown kind is the first thing to say
        if registered_kind.intake is not None and items is None:
            if unique_key or fresh_for or title or at or delay or priority is not None:
                raise InvalidInput(f"files of {kind} take --owner, --idempotency-key and --wait only", code="USAGE")
            rows = _submit_files(
                loaded_app.app, registered_kind, [Path(name) for name in values], owner, idempotency_key
            )
        else:
            if len(values) > 1:
                raise InvalidInput(f"give one JSON value as params, not {len(values)}; quote it for the shell")
            params = read_params(values[0]) if values else None
            lines = None if items is None else read_items(items)
            rows = _report(
                loaded_app.app.acting_as(caller(owner)).submit(
                    kind,
                    params,
                    items=lines,
                    owner=owner,
                    unique_key=unique_key,
                    fresh_for=fresh_for,
                    idempotency_key=idempotency_key,
                    priority=priority,
                    title=title,
                    run_at=read_moment(at, "--at"),
                    delay=delay,
                ),
                loaded_app.app,
            )
        if wait:
            _wait(loaded_app.app.acting_as(caller(owner)).jobs, rows)


def _report(submission: Submission, app: Penstock) -> list[Row]:
    from penstock.cli.identifiers import short
    from penstock.cli.scoreboard import Row

    job, answer = submission.job, submission.answer.value
    print(job.id, flush=True)
    remark = {
        "new": "recorded",
        "existing": "this job was there already",
        "following": "recorded; it waits for another job that does the same work",
        "cached": "a fresh result was there",
    }[answer]
    _note(f"{job.kind} {job.state.value} ({remark}); watch it with: penstock watch {short(job.id)}")
    return [Row.of(app.kinds, job.kind, job.id, job.kind)]


def _submit_files(
    app: Penstock, kind: Kind, paths: list[Path], user: str | None, idempotency_key: str | None
) -> list[Row]:
    """A job for each file; nothing is submitted when one of them cannot be read."""
    from penstock.cli.callers import caller
    from penstock.cli.scoreboard import Row
    from penstock.errors import InvalidInput
    from penstock.lifecycle.intake import HandedFile, Sender, UploadOptions

    if not paths:
        raise InvalidInput(f"name at least one file: penstock submit {kind.name} FILE...", code="USAGE")
    if idempotency_key is not None and len(paths) > 1:
        raise InvalidInput("--idempotency-key names one job, so give one file with it", code="USAGE")
    for path in paths:
        _require_readable(path)
    rows = []
    for path in paths:
        assert kind.intake is not None
        with path.open("rb") as stream:
            taken_files = kind.intake.take_files(
                [HandedFile(stream, path.name)],
                UploadOptions(kind.name),
                Sender(user, idempotency_key, caller=caller(None)),
            )
        for job in taken_files.jobs:
            print(job.id, flush=True)
            rows.append(Row.of(app.kinds, job.kind, job.id, path.name))
    return rows


def _require_readable(path: Path) -> None:
    from penstock.errors import InvalidInput

    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}", field="file", code="FILE_NOT_READABLE") from None


def _wait(jobs: Jobs, rows: list[Row]) -> None:
    from penstock.cli import job_summary
    from penstock.cli.job_follower import follow

    codes = [job_summary.exit_code(job) for job in follow(jobs, rows)]
    code = codes[0] if len(codes) == 1 else min(1, max(codes))
    if code:
        raise typer.Exit(code)


def _note(text: str) -> None:
    """For the person, apart from the id on standard output, which is for the shell."""
    print(text, file=sys.stderr, flush=True)
