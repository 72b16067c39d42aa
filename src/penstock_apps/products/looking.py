"""What files are, found out by looking at them: in a process with limits, for they come from strangers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.app import StoredFile
from penstock.errors import InvalidInput
from penstock.ingest import (
    ArchiveLimits,
    FileType,
    TableLimits,
    TableShape,
    UploadOptions,
    detect_type,
    look_at_file,
)
from penstock_apps.products.headers import map_headers
from penstock_apps.products.payloads import ArchiveParams, PictureParams, TableParams

_LOOKED_UP_BY = frozenset(("sku", "gtin", "title"))


@dataclass(frozen=True, slots=True)
class FilesToLookAt:
    """Kept files that were sent together, and what their sender says of them."""

    files: Sequence[StoredFile]
    paths: Sequence[Path]
    table_limits: TableLimits
    archive_limits: ArchiveLimits
    options: UploadOptions


def look_at_files(request: FilesToLookAt) -> TableParams | ArchiveParams | PictureParams:
    """What a job over these files is submitted with; what cannot be used is refused."""
    if len(request.files) > 1:
        _require_pictures(request)
        return _of_pictures(request.files)
    [file], [path], options = request.files, request.paths, request.options
    found_file = look_at_file(
        path,
        file.name,
        request.table_limits,
        request.archive_limits,
        encoding=options.encoding,
        delimiter=options.delimiter,
        sheet=options.sheet,
    )
    if found_file.type is FileType.ARCHIVE:
        return ArchiveParams(file_id=str(file.id), name=file.name, archive=file.sha256)
    if found_file.shape is None:
        return _of_pictures(request.files)
    mapping = map_headers(found_file.shape.headers)
    if not _LOOKED_UP_BY & set(mapping.values()):
        raise _nothing_to_look_up(file.name, found_file.shape)
    return TableParams(
        file_id=str(file.id), name=file.name, sha256=file.sha256, shape=found_file.shape.to_json(), mapping=mapping
    )


def _require_pictures(request: FilesToLookAt) -> None:
    """Of several files each has to be a picture."""
    types = [detect_type(path, file.name) for path, file in zip(request.paths, request.files, strict=True)]
    archives, pictures = types.count(FileType.ARCHIVE), types.count(FileType.IMAGE)
    if pictures == len(types):
        return
    if pictures == 0 and archives in (0, len(types)):
        what = "archive" if archives else "table"
        message, code = f"{len(types)} {what}s were sent: send one at a time, each is a job", "TOO_MANY_FILES"
    else:
        message, code = "tables, archives and pictures were sent together: send them apart", "MIXED_FILES"
    raise InvalidInput(message, field="file", code=code)


def _of_pictures(files: Sequence[StoredFile]) -> PictureParams:
    return PictureParams(pictures=[{"sha256": file.sha256, "name": file.name} for file in files])


def _nothing_to_look_up(name: str, shape: TableShape) -> InvalidInput:
    headers = ", ".join(repr(header[:40]) for header in shape.headers[:10])
    return InvalidInput(
        f"no column of {name!r} holds article numbers, barcode numbers or titles (its first line has {headers}): name "
        "one 'sku', 'gtin' or 'title'",
        field="file",
        code="NO_PRODUCT_COLUMN",
    )
