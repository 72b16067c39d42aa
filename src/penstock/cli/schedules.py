"""``penstock schedules``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.options import AppOption, AsJson

if TYPE_CHECKING:
    from penstock.operations.schedules import ScheduleStatus


def schedules(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One of them; without it, all are listed.")] = None,
    pause: Annotated[bool, typer.Option("--pause", help="Submit nothing until it is resumed.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the next tick.")] = False,
    run: Annotated[bool, typer.Option("--run", help="Submit its job now, and print the job's id.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Forget one that no program declares any more.")] = False,
    as_json: AsJson = False,
    app: AppOption = None,
) -> None:
    """List what is submitted again and again; pause, resume, run or remove a schedule.

    \b
    penstock schedules
    penstock schedules nightly --pause
    penstock schedules nightly --run
    """
    from penstock.cli.application import open_app
    from penstock.errors import InvalidInput
    from penstock.lifecycle.callers import SYSTEM

    options = [option for option, is_set in _options(pause, resume, run, remove) if is_set]
    if len(options) > 1:
        raise InvalidInput(f"{options[0]} and {options[1]} contradict each other", field=options[1])
    if options and name is None:
        raise InvalidInput("say which schedule: NAME is missing", field="NAME")
    with open_app(app) as penstock:
        if name is None:
            _show(penstock.schedules.list(), as_json)
        elif run:
            print(penstock.schedules.run(name, SYSTEM).id)
        elif remove:
            penstock.schedules.remove(name)
            print(f"{name} is removed")
        else:
            if pause:
                penstock.schedules.pause(name)
            if resume:
                penstock.schedules.resume(name)
            _show([penstock.schedules.get(name)], as_json)


def _options(pause: bool, resume: bool, run: bool, remove: bool) -> tuple[tuple[str, bool], ...]:
    return ("--pause", pause), ("--resume", resume), ("--run", run), ("--remove", remove)


def _show(statuses: list[ScheduleStatus], as_json: bool) -> None:
    from dataclasses import asdict

    from penstock.cli.as_json import print_lines
    from penstock.cli.screen import add_row, plain_table, print_out
    from penstock.cli.texts import on_one_line

    if as_json:
        print_lines(
            {**asdict(status), **asdict(status.schedule), "schedule": status.schedule.name} for status in statuses
        )
        return
    if not statuses:
        print("no program has declared a schedule")
        return
    errors = ("error",) if any(status.last_error for status in statuses) else ()
    table = plain_table("name", "cron", "zone", "kind", "next", "last", *errors)
    for status in statuses:
        schedule = status.schedule
        next_tick = "paused" if status.is_paused else _minute(status.next_at)
        row = [schedule.name, schedule.cron, schedule.zone, schedule.kind, next_tick, _minute(status.last_at)]
        add_row(table, [*row, on_one_line(status.last_error or "")] if errors else row)
    print_out(table)


def _minute(tick: datetime | None) -> str:
    """A tick is at a full minute."""
    return "" if tick is None else f"{tick.astimezone(UTC):%Y-%m-%d %H:%MZ}"
