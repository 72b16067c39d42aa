"""What jobs over products hold: their params, the input of each item, and what comes of it."""

from __future__ import annotations

from typing import NotRequired, TypedDict, final

from penstock.lifecycle import JSON


@final
class TableParams(TypedDict):
    """What a job over a table is submitted with."""

    file_id: str
    name: str
    sha256: str
    shape: JSON
    """How the table is written: :meth:`penstock.ingest.TableShape.to_json`."""
    mapping: dict[str, str | None]
    """The field of each of its columns."""


@final
class ArchiveParams(TypedDict):
    """What a job over an archive of pictures is submitted with."""

    file_id: str
    name: str
    archive: str


class PictureFile(TypedDict):
    """A picture that was sent by itself."""

    sha256: str
    name: str


@final
class PictureParams(TypedDict):
    """What a job over such pictures is submitted with."""

    pictures: list[PictureFile]


class RowInput(TypedDict):
    """A row of a table; one that cannot be used has a problem."""

    row: int
    cells: dict[str, str]
    problem: NotRequired[str]
    code: NotRequired[str]


class PictureInput(TypedDict):
    """A picture; one that cannot be unpacked has a problem instead of bytes."""

    row: int
    picture: str
    sha256: NotRequired[str]
    problem: NotRequired[str]
    code: NotRequired[str]


class ProductResult(TypedDict):
    """A product as a retailer sells it."""

    sku: str | None
    gtin: str | None
    brand: str | None
    title: str | None
    price: str | None
    currency: str | None
    availability: str | None
    url: str | None
    retailer: str | None
    matched_by: str
    score: float
