"""``penstock jobs``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.options import AppOption, AsJson
from penstock.lifecycle.states import JobState

if TYPE_CHECKING:
    from penstock import Job


def jobs(
    state: Annotated[
        list[JobState] | None, typer.Option("--state", help="Only jobs in this state; repeatable.")
    ] = None,
    kind: Annotated[str | None, typer.Option(metavar="KIND", help="Only jobs of this kind.")] = None,
    owner: Annotated[str | None, typer.Option(metavar="USER", help="Only this user's jobs.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")] = 20,
    after: Annotated[
        str | None, typer.Option(metavar="ID", help="The page behind this job: the last one of the page before.")
    ] = None,
    as_json: AsJson = False,
    app: AppOption = None,
) -> None:
    """List jobs, newest first.

    \b
    penstock jobs
    penstock jobs --state failed --state canceled --owner alice
    penstock jobs --limit 1000 --json | jq .error_code
    """
    from penstock.app import JobCursor
    from penstock.cli.application import open_app
    from penstock.cli.as_json import job_object, print_lines
    from penstock.cli.callers import caller
    from penstock.cli.identifiers import find_id, short
    from penstock.cli.job_summary import forgotten_kind

    with open_app(app) as penstock:
        mine = penstock.acting_as(caller(owner))
        behind = None
        if after is not None:
            last = mine.jobs.get(find_id(mine.jobs, after))
            behind = JobCursor(last.created_at, last.id)
        page = mine.jobs.list(states=state or None, kind=kind, after=behind, limit=limit)
        if as_json:
            print_lines(job_object(job, payloads=False) for job in page)
            return
        _print_table(page)
        if len(page) == limit:
            print(f"\nthe next page: penstock jobs --limit {limit} --after {short(page[-1].id)}")
        waiting_kinds = {job.kind for job in page if not job.finished} - {kind.name for kind in penstock.kinds}
        if waiting_kinds:
            for name in sorted(waiting_kinds.intersection(penstock.system.forgotten_kinds())):
                print(f"\n{forgotten_kind(name)}")


def _print_table(page: list[Job]) -> None:
    from penstock.cli import job_summary
    from penstock.cli.identifiers import short
    from penstock.cli.screen import add_row, in_colour, plain_table, print_out
    from penstock.cli.texts import age, on_one_line

    if not page:
        print("no jobs")
        return
    table = plain_table("id", "kind", "state", "age", "owner", "progress", right=("age",))
    for job in page:
        add_row(
            table,
            [
                short(job.id),
                on_one_line(job.kind, 20),
                in_colour(job.state.value, job.state),
                age(job.created_at),
                on_one_line(job.user_id or "", 16),
                job.error_code or job_summary.progress(job),
            ],
        )
    print_out(table)
