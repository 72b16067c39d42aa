"""What jobs over photos hold: their params, the input of each item, what comes of it, and the job's result."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from penstock_apps.catalogs.photo_paths import PathData

# Params --------------------------------------------------------------------------------------------------------------


class BoundsData(TypedDict):
    """What a photo may be."""

    max_bytes: int
    max_pixels: int


class CatalogParams(TypedDict):
    """What every job over a catalog is submitted with."""

    catalog_id: str
    directories: list[str]
    bounds: BoundsData
    continues: NotRequired[str]
    """The job that did the part before."""
    first_job: NotRequired[str]
    """The job that the whole began with."""
    after: NotRequired[str]
    """The key of the last photo that the part before has done."""


class ScanParams(CatalogParams):
    """What a scan is told as well."""

    max_removed: NotRequired[int | None]
    """How many photos somebody has said may be forgotten."""


class ThumbnailParams(CatalogParams):
    """What making thumbnails needs as well."""

    sizes: list[int]
    quality: int
    directory: str


class DuplicateParams(CatalogParams):
    """What finding copies needs as well."""

    distance: int


# Inputs --------------------------------------------------------------------------------------------------------------


class ScanInput(PathData):
    """A file that may be a photo."""

    is_known: bool
    """An earlier scan has read it."""


class ThumbnailInput(PathData):
    """A photo that lacks a thumbnail."""

    sha256: str


class PhotoFacts(TypedDict):
    """What a scan finds out about a photo."""

    type: str | None
    width: int
    height: int
    orientation: int
    frames: int
    camera_make: str | None
    camera_model: str | None
    taken_at: str | None
    latitude: float | None
    longitude: float | None
    perceptual_hash: str
    size: int
    modified: int
    sha256: str


class TagInput(PathData):
    """A photo to tag."""

    facts: PhotoFacts


class CompareInput(TypedDict):
    """A part of the comparing: the kept file with all hashes, and which of them are this item's."""

    hashes: str
    stretch: int
    part: int
    parts: int


# What comes of items and jobs ----------------------------------------------------------------------------------------


class ThumbnailData(TypedDict):
    """A thumbnail that was made."""

    width: int
    height: int
    size: int


class PhotoError(TypedDict):
    """A photo that could not be read, or a part of the comparing that could not be done, and why."""

    path: NotRequired[str]
    part: NotRequired[str]
    error: str | None
    error_code: str | None


class CatalogResult(TypedDict):
    """What comes of every job over a catalog."""

    status: str
    catalog_id: str
    processed: int
    errors: int
    error_details: NotRequired[list[PhotoError]]
    continued_by: NotRequired[str]
    """The job that does the rest."""


class ScanResult(CatalogResult):
    """How the catalog has changed since the last scan."""

    new: int
    changed: int
    removed: int
    unchanged: int
    missing: int
    """Photos that are not there, and are kept until somebody says that they may be forgotten."""
    out_of_sight: int
    """Photos that are kept because the folder they are in could not be read."""
    unreadable_folders: list[str]
    """The first of the folders and files that could not be looked at."""


class LastScan(TypedDict):
    """What a catalog remembers of its last scan."""

    job_id: str
    ended_at: str
    photos: int
    unreadable: int
    """Photos that could not be read."""
    missing: int
    out_of_sight: int
    unreadable_folders: list[str]


class CopiesData(TypedDict):
    """A group of copies: the best of them, and the others."""

    best: str
    copies: list[str]


class DuplicateResult(CatalogResult):
    """The groups of copies."""

    photos: int
    groups: int
    exact_groups: int
    copies: int
    largest: list[CopiesData]
