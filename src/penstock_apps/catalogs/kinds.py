"""What is done to one photo, in a process of its own: it knows files, and no database.

What reads pictures is loaded there, when it is needed: the command line and the server do without it.
"""

from __future__ import annotations

from array import array
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from penstock import ItemContext, storable_text
from penstock.settings import read_settings
from penstock_apps.catalogs.bounds import Bounds
from penstock_apps.catalogs.duplicates import near_pairs_of_part
from penstock_apps.catalogs.failures import PhotoFailure
from penstock_apps.catalogs.folders import inside
from penstock_apps.catalogs.tags import load_taggers, tags_of
from penstock_apps.counting import counted

_SMALL = 256


def scan_input(path: str) -> dict[str, Any]:
    """The input of a photo's scan; a name that is not UTF-8 cannot be kept, so its item says that and ends."""
    kept = storable_text(path)
    return {"path": kept} if kept == path else {"path": kept, "name_unreadable": True}


def scan(item: ItemContext) -> dict[str, Any]:
    """The facts of one photo."""
    from penstock_apps.catalogs.facts import facts_of

    if item.input.get("name_unreadable"):
        raise PhotoFailure.NAME_UNREADABLE.error()

    return facts_of(_file(item), _bounds(item))


def thumbnail(item: ItemContext) -> dict[str, Any]:
    """One photo's thumbnails, one for each size."""
    from penstock_apps.catalogs.thumbnails import make_thumbnails

    wanted, sha256 = _params(item), item.input["sha256"]
    targets = {edge: thumbnail_path(Path(wanted["directory"]), sha256, edge) for edge in wanted["sizes"]}
    made = make_thumbnails(_file(item), targets, quality=wanted["quality"], bounds=_bounds(item))
    return {str(edge): asdict(made[edge]) for edge in targets}


def tag(item: ItemContext) -> list[str]:
    """The words for one photo."""
    from PIL import ImageOps

    from penstock_apps.catalogs.perceptual_hash import flat
    from penstock_apps.catalogs.pictures import opened

    with opened(_file(item), _bounds(item)) as picture:
        picture.draft("RGB", (_SMALL, _SMALL))
        picture.thumbnail((_SMALL, _SMALL))
        upright = ImageOps.exif_transpose(flat(picture))
        return tags_of(item.input["facts"], upright, load_taggers(_taggers()))


def compare(item: ItemContext) -> list[list[str]]:
    """The pairs of hashes that are near each other, of one part of all that have to be compared."""
    part: dict[str, Any] = item.input
    hashes = array("Q")
    hashes.frombytes(item.kept_file(part["hashes"]).read_bytes())
    pairs = near_pairs_of_part(hashes, _params(item)["distance"], part["stretch"], part["part"], part["parts"])
    return [[f"{one:016x}", f"{other:016x}"] for one, other in sorted(set(pairs))]


@cache
def _taggers() -> tuple[str, ...]:
    """Who names tags, read once in each process: the functions cannot be handed over."""
    from penstock_apps.catalogs.settings import CatalogSettings

    return read_settings(CatalogSettings).taggers


def describe(result: Any) -> str:
    """What came of a job over photos, in a few words."""
    if not isinstance(result, dict):
        return ""
    if "groups" in result:
        first = f"{counted(result['groups'], 'group')} with {result['copies']} copies"
    else:
        first = f"{result.get('processed', 0):,} done"
    errors = result.get("errors")
    return f"{first}, {errors:,} could not be read" if errors else first


def thumbnail_path(directory: Path, sha256: str, edge: int) -> Path:
    """Where a photo's thumbnail is: by its content, so that copies share one."""
    return directory / str(edge) / sha256[:2] / f"{sha256}.jpg"


def _file(item: ItemContext) -> Path:
    path = str(item.input["path"])
    if not inside(path, _params(item)["directories"]):
        raise PhotoFailure.OUTSIDE.error()
    return Path(path)


def _bounds(item: ItemContext) -> Bounds:
    return Bounds(**_params(item)["bounds"])


def _params(item: ItemContext) -> dict[str, Any]:
    params = item.params
    assert isinstance(params, dict)
    return params
