"""``penstock export``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TextIO
from uuid import UUID

import typer

from penstock.cli.options import AppOption, AsUser, JobId
from penstock.errors import InvalidInput
from penstock.lifecycle.states import ItemStatus

if TYPE_CHECKING:
    from penstock import Caller, Item, Penstock

COLUMNS = ("position", "status", "attempts", "input", "result", "error_code", "last_error")
_PAGE = 500
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Format(StrEnum):
    """What an export is written as."""

    JSONL = "jsonl"
    CSV = "csv"


def export(
    job_id: JobId,
    output_format: Annotated[Format, typer.Option("--format", help="JSON on each line, or CSV.")] = Format.JSONL,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write here, not to standard output.")
    ] = None,
    status: Annotated[
        list[ItemStatus] | None, typer.Option("--status", help="Only items with this status; repeatable.")
    ] = None,
    user: AsUser = None,
    app: AppOption = None,
) -> None:
    """Write all items of a job, however many, as JSON lines or CSV.

    Each has its position, status, attempts, input, result and error. In CSV, text that a spreadsheet would
    take for a formula begins with an apostrophe.

    \b
    penstock export 8f2c11d04e57 > items.jsonl
    penstock export 8f2c11d04e57 --format csv --output failed.csv --status ERROR
    """
    from penstock.cli.application import opened
    from penstock.cli.callers import caller
    from penstock.cli.identifiers import find_id
    from penstock.cli.texts import counted

    with opened(app) as one:
        by = caller(user)
        items = _each_item(one, find_id(one, job_id, by), by, status or None)
        with _writing(output) as stream:
            count = _write_csv(items, stream) if output_format is Format.CSV else _write_lines(items, stream)
        if output is not None:
            print(f"{counted(count, 'item')} written to {output}")


def _each_item(app: Penstock, job_id: UUID, by: Caller, statuses: list[ItemStatus] | None) -> Iterator[Item]:
    """All items, a page at a time, so that a million need no more memory than a thousand."""
    after = 0
    while page := app.items(job_id, by=by, statuses=statuses, after=after, limit=_PAGE):
        yield from page
        after = page[-1].position


def _write_lines(items: Iterator[Item], stream: TextIO) -> int:
    from penstock.cli.as_json import text

    count = 0
    for item in items:
        stream.write(text({name: getattr(item, name) for name in COLUMNS}) + "\n")
        count += 1
    return count


def _write_csv(items: Iterator[Item], stream: TextIO) -> int:
    import csv

    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    count = 0
    for item in items:
        writer.writerow([cell(getattr(item, name)) for name in COLUMNS])
        count += 1
    return count


def cell(value: object) -> str | int | float:
    """A value as a spreadsheet may have it: numbers and texts as they are, everything else as JSON.

    >>> cell("=SUM(A1:A9)"), cell(-5), cell({"price": 3}), cell(None)
    ("'=SUM(A1:A9)", -5, '{"price":3}', '')
    """
    from penstock.cli.as_json import text

    match value:
        case None:
            return ""
        case bool():
            return text(value)
        case int() | float():
            return value
        case str():
            return f"'{value}" if value.startswith(_FORMULA) else str(value)
    return text(value)


@contextmanager
def _writing(output: Path | None) -> Iterator[TextIO]:
    """Standard output, or a file that appears only when it is whole."""
    if output is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    part = output.with_name(output.name + ".part")
    try:
        with part.open("w", encoding="utf-8", newline="") as stream:
            yield stream
        part.replace(output)
    except OSError as error:
        raise InvalidInput(f"{output} cannot be written: {error.strerror}", code="FILE_NOT_WRITABLE") from None
    finally:
        part.unlink(missing_ok=True)
