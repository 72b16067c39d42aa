"""Bodies of the catalogs' addresses, as clients write and read them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from penstock.lifecycle import JSON
from penstock_apps.numbers import NUMBER


class NewCatalog(BaseModel):
    """What a catalog is made of."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "Holidays", "source_directories": ["/srv/photos/2024"]}]}
    )

    name: str = Field(min_length=1, max_length=255)
    source_directories: list[Annotated[str, Field(max_length=4096)]] = Field(
        min_length=1, max_length=100, description="Folders below the allowed roots."
    )


class CatalogChange(BaseModel):
    """What is to be different; what is left out stays as it is."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "Holidays by the sea"}]})

    name: str | None = Field(default=None, min_length=1, max_length=255)
    source_directories: list[Annotated[str, Field(max_length=4096)]] | None = Field(
        default=None, min_length=1, max_length=100, description="Folders below the allowed roots."
    )


class ScanShown(BaseModel):
    """How the last scan has ended."""

    job_id: UUID
    ended_at: datetime
    photos: int = Field(description="Those the catalog has.")
    unreadable: int = Field(description="Those that could not be read.")
    missing: int = Field(
        description="Those that are not there any more, and are kept until a scan is started with `max_removed`."
    )
    out_of_sight: int = Field(description="Those that are kept because their folder could not be read.")
    unreadable_folders: list[str] = Field(description="The first of the folders that could not be read.")


class CatalogShown(BaseModel):
    """A catalog."""

    id: UUID
    name: str
    source_directories: list[str]
    created_at: datetime
    last_scan: ScanShown | None = Field(description="Null before the first, and when the folders have changed.")


class PhotoShown(BaseModel):
    """A photo, and what is known of it."""

    id: str = Field(description="Its name in the catalog.")
    path: str = Field(description="For people; what is not UTF-8 in it is U+FFFD.")
    path_base64: str | None = Field(description="The bytes of the path, where it is not UTF-8; else null.")
    size: int
    sha256: str
    facts: dict[str, JSON] = Field(
        description="What the scan found: format, width, height, when and where it was taken."
    )
    tags: list[str] | None = Field(description="Once it has been tagged.")
    group: str | None = Field(description="The same for photos that are copies of each other.")


class PhotosShown(BaseModel):
    """A page of photos."""

    photos: list[PhotoShown]
    next: str | None = Field(description="What to ask for as `after` to see the next page; null on the last.")


class UnreadablePhotoShown(BaseModel):
    """A photo that the last scan could not read."""

    id: str = Field(description="Its name in the catalog.")
    path: str
    path_base64: str | None = Field(description="The bytes of the path, where it is not UTF-8; else null.")
    error_code: str | None
    error: str | None


class UnreadablePhotosShown(BaseModel):
    """A page of photos that could not be read."""

    photos: list[UnreadablePhotoShown]
    next: str | None = Field(description="What to ask for as `after` to see the next page; null on the last.")


class Started(BaseModel):
    """The job that does what was asked for."""

    job_id: UUID
    status: Literal["queued", "running"]


class ScanOptions(BaseModel):
    """What a scan may do."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"max_removed": 120}]})

    max_removed: Annotated[int, Field(ge=1, le=2**31 - 1), NUMBER] | None = Field(
        default=None,
        description="How many photos that are not there any more may be forgotten. Without it a scan that would forget "
        "a large part of a folder keeps them, and says how many they are as `missing`.",
    )


class ThumbnailOptions(BaseModel):
    """How thumbnails are made."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"sizes": [128, 512], "quality": 80}]})

    sizes: list[Annotated[int, Field(ge=16, le=4096), NUMBER]] | None = Field(
        default=None, max_length=8, description="Longer edges in pixels, 16 to 4096."
    )
    quality: Annotated[int, Field(ge=1, le=95), NUMBER] | None = Field(default=None, description="JPEG's.")


class DuplicateOptions(BaseModel):
    """What counts as a near copy."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"distance": 4}]})

    distance: Annotated[int, Field(ge=0, le=10), NUMBER] = Field(
        default=4, description="In how many of 64 bits two pictures may differ."
    )
