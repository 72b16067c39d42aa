"""What files are, found out by looking at them: in a process with limits, for they come from strangers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from penstock.errors import InvalidInput
from penstock.ingest import (
    ArchiveLimits,
    FileType,
    TableLimits,
    TableShape,
    UploadOptions,
    detect_type,
    look_at_file,
    open_table,
)
from penstock_apps.products.headers import map_headers
from penstock_apps.products.payloads import ArchiveParams, PictureParams, TableParams

_ROWS_LOOKED_AT = 50
_EXAMPLES = 3
_EXAMPLE_CHARACTERS = 60
_LOOKED_UP_BY = frozenset(("sku", "gtin", "title"))


class FileToLookAt(NamedTuple):
    """A file, where it is until it is kept."""

    id: str
    name: str
    sha256: str
    path: Path


@dataclass(frozen=True, slots=True)
class FilesToLookAt:
    """Files that were sent together, and what their sender says of them."""

    files: Sequence[FileToLookAt]
    table_limits: TableLimits
    archive_limits: ArchiveLimits
    options: UploadOptions


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: the field it is taken for, and some of what it holds."""

    name: str
    field: str | None
    examples: list[str]


@dataclass(frozen=True, slots=True)
class ColumnsSeen:
    """The columns of a table, and how it is read."""

    columns: list[Column]
    shape: TableShape


def look_at_files(request: FilesToLookAt) -> TableParams | ArchiveParams | PictureParams:
    """What a job over these files is submitted with; what cannot be used is refused."""
    if len(request.files) > 1:
        _require_pictures(request)
        return _of_pictures(request)
    [file] = request.files
    found_file = look_at_file(
        file.path, file.name, request.table_limits, request.archive_limits, **request.options.of_table()
    )
    if found_file.shape is None and found_file.type is not FileType.ARCHIVE:
        return _of_pictures(request)
    if found_file.shape is None:
        _require_no_mapping(request)
        return ArchiveParams(file_id=file.id, name=file.name, archive=file.sha256)
    mapping = map_headers(found_file.shape.headers, request.options.mapping or {})
    if not _LOOKED_UP_BY & set(mapping.values()):
        raise _nothing_to_look_up(file.name, found_file.shape)
    return TableParams(
        file_id=file.id, name=file.name, sha256=file.sha256, shape=found_file.shape.to_json(), mapping=mapping
    )


def _require_pictures(request: FilesToLookAt) -> None:
    """Of several files each has to be a picture."""
    types = [detect_type(file.path, file.name) for file in request.files]
    archives, pictures = types.count(FileType.ARCHIVE), types.count(FileType.IMAGE)
    if pictures == len(types):
        return
    if pictures == 0 and archives in (0, len(types)):
        what = "archive" if archives else "table"
        message, code = f"{len(types)} {what}s were sent: send one at a time, each is a job", "TOO_MANY_FILES"
    else:
        message, code = "tables, archives and pictures were sent together: send them apart", "MIXED_FILES"
    raise InvalidInput(message, field="file", code=code)


def _of_pictures(request: FilesToLookAt) -> PictureParams:
    _require_no_mapping(request)
    return PictureParams(pictures=[{"sha256": file.sha256, "name": file.name} for file in request.files])


def _require_no_mapping(request: FilesToLookAt) -> None:
    if request.options.mapping is not None:
        raise InvalidInput(
            f"mapping says what the columns of a table are, and {request.files[0].name!r} is none: leave it out",
            field="mapping",
            code="MAPPING_INVALID",
        )


def look_at_columns(request: FilesToLookAt) -> ColumnsSeen:
    """What the columns of a table are taken for, and some of what they hold; nothing else is asked of the table."""
    [file] = request.files
    shape = look_at_file(
        file.path, file.name, request.table_limits, request.archive_limits, **request.options.of_table()
    ).shape
    if shape is None:
        raise InvalidInput(f"{file.name!r} is no table: it has no columns", field="file", code="NOT_A_TABLE")
    mapping = map_headers(shape.headers, request.options.mapping or {})
    rows = [row.cells for row in islice(open_table(file.path, shape, request.table_limits).rows(), _ROWS_LOOKED_AT)]
    good_rows = [cells for cells in rows if cells]
    columns = [
        Column(header, mapping[header], _examples(cells[at] for cells in good_rows))
        for at, header in enumerate(shape.headers)
    ]
    return ColumnsSeen(columns, shape)


def _examples(cells: Iterable[str]) -> list[str]:
    """The first different texts of a column."""
    texts = (" ".join(cell[:_EXAMPLE_CHARACTERS].split()) for cell in cells)
    return list(dict.fromkeys(text for text in texts if text))[:_EXAMPLES]


def _nothing_to_look_up(name: str, shape: TableShape) -> InvalidInput:
    headers = ", ".join(repr(header[:40]) for header in shape.headers[:10])
    return InvalidInput(
        f"no column of {name!r} holds article numbers, barcode numbers or titles (its first line has {headers}): name "
        "one 'sku', 'gtin' or 'title', or say in mapping which one it is",
        field="file",
        code="NO_PRODUCT_COLUMN",
    )
