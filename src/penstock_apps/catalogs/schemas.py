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


class CatalogShown(BaseModel):
    """A catalog."""

    id: UUID
    name: str
    source_directories: list[str]
    created_at: datetime


class PhotoShown(BaseModel):
    """A photo, and what is known of it."""

    id: str = Field(description="Its name in the catalog.")
    path: str
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


class Started(BaseModel):
    """The job that does what was asked for."""

    job_id: UUID
    status: Literal["queued", "running"]


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
