"""What is done to one photo, in a process of its own: it knows files, and no database.

What reads pictures is loaded there, when it is needed: the command line and the server do without it.
"""

from __future__ import annotations

from array import array
from functools import cache
from pathlib import Path

from penstock import ItemContext
from penstock.settings import read_settings
from penstock_apps.catalogs.bounds import Bounds
from penstock_apps.catalogs.duplicates import near_pairs_of_part
from penstock_apps.catalogs.failures import PhotoFailure
from penstock_apps.catalogs.folders import is_inside
from penstock_apps.catalogs.payloads import (
    CatalogParams,
    CompareInput,
    DuplicateParams,
    PhotoFacts,
    ScanInput,
    ScanParams,
    TagInput,
    ThumbnailData,
    ThumbnailInput,
    ThumbnailParams,
)
from penstock_apps.catalogs.photo_paths import PathData, path_in
from penstock_apps.catalogs.tags import load_taggers, tags_of

_SMALL = 256
THUMBNAILS_VERSION = "v2"
"""Changed when thumbnails of the same photo look otherwise than before: they are made anew then."""


def scan_photo(item: ItemContext[ScanParams, ScanInput]) -> PhotoFacts:
    """The facts of one photo."""
    from penstock_apps.catalogs.facts import facts_of

    return facts_of(_photo_file(item.input, item.params), _bounds(item.params))


def make_thumbnails(item: ItemContext[ThumbnailParams, ThumbnailInput]) -> dict[str, ThumbnailData]:
    """One photo's thumbnails, one for each size."""
    from penstock_apps.catalogs.thumbnails import write_thumbnails

    params, sha256 = item.params, item.input["sha256"]
    targets = {edge: thumbnail_path(Path(params["directory"]), sha256, edge) for edge in params["sizes"]}
    source = _photo_file(item.input, params)
    thumbnails = write_thumbnails(source, sha256, targets, quality=params["quality"], bounds=_bounds(params))
    return {str(edge): thumbnails[edge].as_json() for edge in targets}


def tag_photo(item: ItemContext[CatalogParams, TagInput]) -> list[str]:
    """The tags of one photo."""
    from penstock_apps.catalogs.colours import small_picture
    from penstock_apps.catalogs.pictures import open_scanned_picture

    facts = item.input["facts"]
    with open_scanned_picture(_photo_file(item.input, item.params), facts["sha256"], _bounds(item.params)) as picture:
        small = small_picture(picture, _SMALL)
    return tags_of(facts, small, load_taggers(_taggers()))


def compare_hashes(item: ItemContext[DuplicateParams, CompareInput]) -> list[list[str]]:
    """The pairs of hashes that are near each other, of one part of all that have to be compared."""
    part = item.input
    hashes = array("Q")
    hashes.frombytes(item.kept_file(part["hashes"]).read_bytes())
    pairs = near_pairs_of_part(hashes, item.params["distance"], part["stretch"], part["part"], part["parts"])
    return [[f"{first:016x}", f"{second:016x}"] for first, second in sorted(set(pairs))]


def thumbnail_path(directory: Path, sha256: str, edge: int) -> Path:
    """Where a photo's thumbnail is: by its content, so that copies share one, and by how thumbnails are made."""
    return directory / THUMBNAILS_VERSION / str(edge) / sha256[:2] / f"{sha256}.jpg"


@cache
def _taggers() -> tuple[str, ...]:
    """The taggers' names, read once in each process: the functions cannot be handed over."""
    from penstock_apps.catalogs.settings import CatalogSettings

    return read_settings(CatalogSettings).taggers


def _photo_file(data: PathData, params: CatalogParams) -> Path:
    path = path_in(data)
    if not is_inside(path, params["directories"]):
        raise PhotoFailure.OUTSIDE.error()
    return Path(path)


def _bounds(params: CatalogParams) -> Bounds:
    return Bounds(**params["bounds"])
