"""``penstock history``."""

from __future__ import annotations

from penstock.cli.options import AppOption, AsJson, AsUser, JobId


def history(job_id: JobId, as_json: AsJson = False, user: AsUser = None, app: AppOption = None) -> None:
    """Print every change of a job's state: when, what, who and why.

    \b
    penstock history 8f2c11d04e57
    """
    from penstock.cli import job_summary
    from penstock.cli.application import open_app_as
    from penstock.cli.as_json import print_lines
    from penstock.cli.identifiers import find_id
    from penstock.cli.screen import add_row, in_colour, plain_table, print_out
    from penstock.cli.texts import moment, on_one_line

    with open_app_as(app, user) as mine:
        entries = mine.jobs.history(find_id(mine.jobs, job_id))
        if as_json:
            print_lines(entries)
            return
        table = plain_table("at", "from", "to", "by", "reason")
        for entry in entries:
            add_row(
                table,
                [
                    moment(entry.at),
                    entry.from_state.value if entry.from_state else "",
                    in_colour(entry.to_state.value, entry.to_state),
                    job_summary.actor(entry),
                    on_one_line(entry.reason or ""),
                ],
            )
        print_out(table)
