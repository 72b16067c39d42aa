"""Bodies of the products' addresses, as clients write and read them."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

JobType = Literal["csv", "image"]
_SOURCE = "A folder path, `s3://bucket/prefix` or `ftp://host/path` that an operator has allowed this user."


class _Shape(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class ScanAsked(_Shape):
    """A source to look at."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        json_schema_extra={"examples": [{"source": "s3://incoming/products"}]},
    )

    source: str = Field(min_length=1, max_length=2_000, description=_SOURCE, examples=["s3://incoming/products"])
    job_type: JobType | None = Field(default=None, description="Files of another type are refused.")


class FileRefused(BaseModel):
    """A file of which no job was made."""

    name: str
    code: str = Field(description="Stable, for programs.", examples=["FILE_TYPE_UNKNOWN"])
    message: str = Field(description="For people.")


class FileTaken(_Shape):
    """A file and its job."""

    name: str
    job_id: UUID


class FieldChoice(BaseModel):
    """A field that a column may be taken for."""

    id: str = Field(description="As `mapping` names it.", examples=["sku"])
    name: str = Field(description="For people.", examples=["Article number"])


class TableColumn(BaseModel):
    """A column of a table."""

    name: str = Field(description="Its header; one that is missing or not the first of its name is made up.")
    choice: str | None = Field(description="The field it is taken for; null where nobody needs it.")
    examples: list[str] = Field(description="Some of what it holds.")


class TableColumns(BaseModel):
    """What was found out about a table."""

    columns: list[TableColumn]
    choices: list[FieldChoice]
    note: str = Field(description="How the file is read, for people.", examples=["Read as utf-8, split at ';'."])


class Scanned(BaseModel):
    """What was found at a source."""

    taken: list[FileTaken]
    already: int = Field(ge=0, description="Files whose jobs were there already.")
    failed: list[FileRefused]
    more: bool = Field(description="Do more files wait than one request takes in? Ask again for them.")
