"""``penstock items``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.options import AppOption, AsJson, AsUser, JobId
from penstock.lifecycle.states import ItemStatus

if TYPE_CHECKING:
    from penstock import Item


def items(
    job_id: JobId,
    status: Annotated[
        list[ItemStatus] | None, typer.Option("--status", help="Only items with this status; repeatable.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at most; 'penstock export' has all.")] = 50,
    after: Annotated[int, typer.Option(min=0, metavar="POSITION", help="The items behind this position.")] = 0,
    as_json: AsJson = False,
    user: AsUser = None,
    app: AppOption = None,
) -> None:
    """List a job's items in their order.

    \b
    penstock items 8f2c11d04e57 --status ERROR
    penstock items 8f2c11d04e57 --after 50
    """
    from penstock.cli.application import open_app_as
    from penstock.cli.as_json import print_lines
    from penstock.cli.identifiers import find_id, short

    with open_app_as(app, user) as mine:
        which = find_id(mine.jobs, job_id)
        page = mine.items.list(which, statuses=status or None, after=after, limit=limit)
        if as_json:
            print_lines(page)
            return
        _print_table(page)
        if len(page) == limit:
            print(f"\nmore: penstock items {short(which)} --limit {limit} --after {page[-1].position}")


def _print_table(page: list[Item]) -> None:
    from penstock.cli.screen import add_row, plain_table, print_out
    from penstock.cli.texts import on_one_line, payload

    if not page:
        print("no items")
        return
    table = plain_table(
        "position", "status", "attempts", "input", "result or error",
        right=("position", "attempts"), stretch=("input", "result or error"),
    )  # fmt: skip
    for item in page:
        error = on_one_line(f"{item.error_code or ''}: {item.last_error}") if item.last_error else ""
        result = payload(item.result, 200) if item.status is ItemStatus.DONE else error
        add_row(table, [str(item.position), item.status.value, str(item.attempts), payload(item.input, 40), result])
    print_out(table)
