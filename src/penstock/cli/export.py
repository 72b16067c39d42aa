"""``penstock export``."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO
from uuid import UUID

import typer

from penstock.cli.options import AppOption, AsUser, JobId
from penstock.errors import InvalidInput
from penstock.lifecycle.states import ItemStatus

if TYPE_CHECKING:
    from penstock import Item
    from penstock.app import Items
    from penstock.operations.export import Grid

MEMBERS = ("position", "status", "attempts", "input", "result", "error_code", "last_error")
_PAGE = 500


class Format(StrEnum):
    """What an export is written as."""

    JSONL = "jsonl"
    CSV = "csv"
    XLSX = "xlsx"


def export(
    job_id: JobId,
    output_format: Annotated[Format, typer.Option("--format", help="JSON on each line, CSV or XLSX.")] = Format.JSONL,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write here, not to standard output.")
    ] = None,
    status: Annotated[
        list[ItemStatus] | None, typer.Option("--status", help="Only items with this status; repeatable.")
    ] = None,
    user: AsUser = None,
    app: AppOption = None,
) -> None:
    """Write all items of a job, however many, as JSON lines, CSV or XLSX.

    JSON lines have each item's position, status, attempts, input, result and error; CSV and XLSX what its grid
    shows. Text that a spreadsheet would take for a formula stays text.

    \b
    penstock export 8f2c11d04e57 > items.jsonl
    penstock export 8f2c11d04e57 --format csv --output failed.csv --status ERROR
    """
    from penstock.cli.application import open_app_as
    from penstock.cli.identifiers import find_id
    from penstock.cli.texts import count_of

    if output_format is Format.XLSX and output is None:
        raise InvalidInput("a workbook is not for the terminal: name a file with --output", field="output")
    with open_app_as(app, user) as mine:
        full_id, statuses = find_id(mine.jobs, job_id), status or None
        if output_format is Format.JSONL:
            count = _write(output, _lines(mine.items, full_id, statuses))
        else:
            count = _write_grid(output_format, output, mine.items.export(full_id, statuses=statuses))
        if output is not None:
            print(f"{count_of(count, 'item')} written to {output}")


def _lines(items: Items, job_id: UUID, statuses: list[ItemStatus] | None) -> Iterator[bytes]:
    from penstock.cli.as_json import text

    for item in _each_item(items, job_id, statuses):
        yield (text({name: getattr(item, name) for name in MEMBERS}) + "\n").encode()


def _each_item(items: Items, job_id: UUID, statuses: list[ItemStatus] | None) -> Iterator[Item]:
    """All items, a page at a time, so that a million need no more memory than a thousand."""
    after = 0
    while page := items.list(job_id, statuses=statuses, after=after, limit=_PAGE):
        yield from page
        after = page[-1].position


def _write_grid(output_format: Format, output: Path | None, grid: Grid) -> int:
    lines = _CountingLines(grid.lines)
    if output_format is Format.XLSX:
        from penstock.exports.workbook import workbook_chunks

        _write(output, workbook_chunks(grid.headers, lines, numbers=grid.number_headers))
    else:
        from penstock.exports.csv_text import csv_chunks

        _write(output, csv_chunks(grid.headers, lines))
    return lines.count


class _CountingLines:
    """Lines on their way, counted."""

    def __init__(self, lines: Iterable[list[Any]]) -> None:
        self._lines = lines
        self.count = 0

    def __iter__(self) -> Iterator[list[Any]]:
        for line in self._lines:
            self.count += 1
            yield line


def _write(output: Path | None, pieces: Iterable[bytes]) -> int:
    """Write the pieces; the answer is how many there were."""
    count = 0
    with _writing(output) as stream:
        for piece in pieces:
            stream.write(piece)
            count += 1
    return count


@contextmanager
def _writing(output: Path | None) -> Iterator[BinaryIO]:
    """Standard output, or a file that appears only when it is whole. A device or a pipe is written to as it is."""
    if output is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if output.exists() and not output.is_file():
        with _said_plainly(output), output.open("wb") as stream:
            yield stream
        return
    output = output.resolve()  # what a link leads to is replaced, and not the link
    part: Path | None = None
    try:
        with _said_plainly(output):
            # For us alone, and under a name that nobody can have put there before.
            handle, name = tempfile.mkstemp(dir=output.parent, prefix=f".{output.name}.", suffix=".part")
            part = Path(name)
            with os.fdopen(handle, "wb") as stream:
                yield stream
            part.chmod(0o600)
            part.replace(output)
    finally:
        if part is not None:
            part.unlink(missing_ok=True)


@contextmanager
def _said_plainly(output: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidInput(f"{output} cannot be written: {error.strerror}", code="FILE_NOT_WRITABLE") from None
