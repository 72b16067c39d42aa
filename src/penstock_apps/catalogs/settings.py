"""Where catalogs may be, and which functions name tags."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from penstock.application import ApplicationSettings, Folders, Names


def _resolve(folders: tuple[Path, ...]) -> tuple[Path, ...]:
    for folder in folders:
        if not folder.is_absolute():
            raise ValueError(f"{str(folder)!r} is no whole path; write one like /srv/photos")
    return tuple(folder.resolve() for folder in folders)


class CatalogSettings(ApplicationSettings):
    """The settings of the catalogs application."""

    roots: Annotated[
        Folders,
        AfterValidator(_resolve),
        Field(
            validation_alias="PENSTOCK_CATALOG_ROOTS",
            description="Folders below which catalogs may lie, separated by ':'.",
        ),
    ] = ()
    removed_share: Annotated[
        float,
        Field(
            validation_alias="PENSTOCK_CATALOG_REMOVED_SHARE",
            ge=0,
            le=1,
            description="The share of the photos below one of a catalog's folders that a scan may forget without "
            "asking; 1 never asks.",
        ),
    ] = 0.5
    thumbnails_directory: Annotated[
        Path | None,
        Field(
            validation_alias="PENSTOCK_THUMBNAILS_DIRECTORY",
            description="The folder that keeps thumbnails; penstock-thumbnails beside the folder of kept files, "
            "unless it is set.",
        ),
    ] = None
    taggers: Annotated[
        Names,
        Field(
            validation_alias="PENSTOCK_TAGGERS",
            description="Functions that name tags for a photo, each as module:function, separated by commas.",
        ),
    ] = ()
