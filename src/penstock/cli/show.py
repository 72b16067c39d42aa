"""``penstock show``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.cli.options import AppOption, AsJson, AsUser, JobId

if TYPE_CHECKING:
    from penstock import Caller, Job, Penstock
    from penstock.app import Jobs

_LONGEST = 600


def show(job_id: JobId, as_json: AsJson = False, user: AsUser = None, app: AppOption = None) -> None:
    """Print all about one job, and what may be done with it now.

    \b
    penstock show 8f2c11d04e57
    penstock show 8f2c11d04e57 --json | jq .progress
    """
    from penstock.cli.application import open_app
    from penstock.cli.as_json import job_object, print_one
    from penstock.cli.callers import caller
    from penstock.cli.identifiers import find_id

    with open_app(app) as penstock:
        mine = penstock.acting_as(caller(user))
        job = mine.jobs.get(find_id(mine.jobs, job_id))
        actions = _actions(penstock, job, mine.caller)
        if as_json:
            print_one({**job_object(job), "actions": actions})
        else:
            is_forgotten = not job.finished and job.kind in penstock.system.forgotten_kinds()
            _print_facts(mine.jobs, job, actions, is_forgotten=is_forgotten)


def _actions(app: Penstock, job: Job, by: Caller) -> tuple[str, ...]:
    from penstock.lifecycle import actions

    is_ours = job.engine is None
    reprocessable = is_ours and job.kind in app.kinds and app.kinds.get(job.kind).policy.reprocess
    names = actions(job.state, by.actor, reprocessable=reprocessable, pausable=is_ours)
    return tuple(name for name in names if name != "submit")


def _print_facts(jobs: Jobs, job: Job, actions: tuple[str, ...], *, is_forgotten: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    from penstock.cli import job_summary
    from penstock.cli.screen import in_colour, print_out
    from penstock.cli.texts import moment, on_one_line, payload

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")

    def fact(name: str, value: str | Text) -> None:
        if value:
            table.add_row(Text(name), Text(value) if isinstance(value, str) else value)

    fact("id", str(job.id))
    fact("kind", job.kind)
    fact("owner", on_one_line(job.user_id or ""))
    fact("state", in_colour(job.state.value, job.state))
    fact("phase", "" if job.finished else job.phase.value)
    fact("run", str(job.run) if job.run > 1 else "")
    fact("priority", str(job.priority) if job.priority else "")
    fact("progress", job_summary.progress(job))
    fact("items", job_summary.outcome_of_items(job))
    fact("message", on_one_line(job.message or ""))
    fact("retries", f"{job.retries} of {job.max_retries}")
    fact("worker deaths", f"{job.deaths} (no try is used up)" if job.deaths else "")
    fact("error", job_summary.failure(job))
    fact("error type", job.error_class or "")
    fact("failure type", job.error_type.value if job.error_type else "")
    fact("failed in", job.failed_phase.value if job.failed_phase else "")
    fact("killed by", job.killed_by.value if job.killed_by else "")
    canceled_by = job_summary.stopped_by(jobs, job)
    fact("canceled by", canceled_by)
    fact("reason", on_one_line(job.killed_reason or ""))
    fact("unique key", on_one_line(job.unique_key or ""))
    fact("moved by", job.engine or "")
    fact("follows", str(job.leader_id or ""))
    fact("file", str(job.file_id or ""))
    for name in ("created", "queued", "started", "completed", "canceled", "committed", "abandoned"):
        fact(name, moment(getattr(job, f"{name}_at")))
    fact("run at", moment(job.run_at))
    fact("elapsed", job_summary.elapsed(job))
    fact("time left", job_summary.time_left(job))
    fact("params", payload(job.params, _LONGEST))
    fact("result", payload(job.result, _LONGEST))
    fact("you may", ", ".join(actions))
    print_out(table)
    if is_forgotten:
        print(f"\n{job_summary.forgotten_kind(job.kind)}")
