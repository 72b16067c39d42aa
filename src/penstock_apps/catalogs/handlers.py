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
    TagInput,
    ThumbnailData,
    ThumbnailInput,
    ThumbnailParams,
)
from penstock_apps.catalogs.tags import load_taggers, tags_of

_SMALL = 256


def scan_photo(item: ItemContext[CatalogParams, ScanInput]) -> PhotoFacts:
    """The facts of one photo."""
    from penstock_apps.catalogs.facts import facts_of

    if item.input.get("name_unreadable"):
        raise PhotoFailure.NAME_UNREADABLE.error()
    return facts_of(_photo_file(item.input["path"], item.params), _bounds(item.params))


def make_thumbnails(item: ItemContext[ThumbnailParams, ThumbnailInput]) -> dict[str, ThumbnailData]:
    """One photo's thumbnails, one for each size."""
    from penstock_apps.catalogs.thumbnails import write_thumbnails

    params, sha256 = item.params, item.input["sha256"]
    targets = {edge: thumbnail_path(Path(params["directory"]), sha256, edge) for edge in params["sizes"]}
    source = _photo_file(item.input["path"], params)
    thumbnails = write_thumbnails(source, targets, quality=params["quality"], bounds=_bounds(params))
    return {str(edge): thumbnails[edge].as_json() for edge in targets}


def tag_photo(item: ItemContext[CatalogParams, TagInput]) -> list[str]:
    """The tags of one photo."""
    from PIL import ImageOps

    from penstock_apps.catalogs.perceptual_hash import flat
    from penstock_apps.catalogs.pictures import open_picture

    with open_picture(_photo_file(item.input["path"], item.params), _bounds(item.params)) as picture:
        picture.draft("RGB", (_SMALL, _SMALL))
        picture.thumbnail((_SMALL, _SMALL))
        upright = ImageOps.exif_transpose(flat(picture))
        return tags_of(item.input["facts"], upright, load_taggers(_taggers()))


def compare_hashes(item: ItemContext[DuplicateParams, CompareInput]) -> list[list[str]]:
    """The pairs of hashes that are near each other, of one part of all that have to be compared."""
    part = item.input
    hashes = array("Q")
    hashes.frombytes(item.kept_file(part["hashes"]).read_bytes())
    pairs = near_pairs_of_part(hashes, item.params["distance"], part["stretch"], part["part"], part["parts"])
    return [[f"{first:016x}", f"{second:016x}"] for first, second in sorted(set(pairs))]


def thumbnail_path(directory: Path, sha256: str, edge: int) -> Path:
    """Where a photo's thumbnail is: by its content, so that copies share one."""
    return directory / str(edge) / sha256[:2] / f"{sha256}.jpg"


@cache
def _taggers() -> tuple[str, ...]:
    """The taggers' names, read once in each process: the functions cannot be handed over."""
    from penstock_apps.catalogs.settings import CatalogSettings

    return read_settings(CatalogSettings).taggers


def _photo_file(path: str, params: CatalogParams) -> Path:
    if not is_inside(path, params["directories"]):
        raise PhotoFailure.OUTSIDE.error()
    return Path(path)


def _bounds(params: CatalogParams) -> Bounds:
    return Bounds(**params["bounds"])
