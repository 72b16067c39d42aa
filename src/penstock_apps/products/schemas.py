"""Bodies of the products' addresses, as clients write and read them."""

from __future__ import annotations

from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

JobType = Literal["csv", "image"]
_SOURCE = "A folder path, `s3://bucket/prefix` or `ftp://host/path` that an operator has allowed."


class _Shape(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class SourceAsked(_Shape):
    """Files that wait somewhere, instead of an upload."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid")

    source: str = Field(min_length=1, max_length=2_000, description=_SOURCE, examples=["/inbox/products.csv"])
    job_type: JobType | None = Field(default=None, description="Found from the content when it is missing.")
    encoding: str | None = Field(default=None, max_length=40, description="Of a CSV; found when it is missing.")
    delimiter: str | None = Field(default=None, min_length=1, max_length=1, description="Of a CSV.")
    sheet: str | None = Field(default=None, max_length=100, description="Of a workbook; the first one with rows.")


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


class JobTaken(_Shape):
    """The job of an upload; `jobIds` and `failed` are there for a source alone."""

    job_id: UUID
    job_type: JobType
    queue_state: Literal["QUEUED", "RUNNING", "PAUSED", "DONE", "FAILED"]
    files: list[str] = Field(description="The files' names, as they are kept.")
    mapping: dict[str, str | None] | None = Field(
        description="What each column of a table was taken for; null for a column that is not used."
    )
    job_ids: list[UUID] | None = Field(default=None, description="One for each file that waited.")
    failed: list[FileRefused] | None = Field(default=None, description="Files of which no job could be made.")


class FileTaken(_Shape):
    """A file and its job."""

    name: str
    job_id: UUID


class Scanned(BaseModel):
    """What was found at a source."""

    taken: list[FileTaken]
    already: int = Field(ge=0, description="Files whose jobs were there already.")
    failed: list[FileRefused]


def upload_body() -> dict[str, Any]:
    """The two bodies of an upload, for the API's description: FastAPI can only be told one."""
    text = {"type": "string"}
    parts = {
        "file": {
            "type": "array",
            "items": {"type": "string", "format": "binary"},
            "description": "One table (CSV, TSV, XLSX), up to 1,000 pictures, or one ZIP of pictures.",
        },
        "jobType": {"type": "string", "enum": ["csv", "image"]},
        "encoding": text,
        "delimiter": text,
        "sheet": text,
    }
    form = {"type": "object", "required": ["file"], "properties": parts}
    return {
        "requestBody": {
            "required": True,
            "content": {
                "multipart/form-data": {"schema": form, "example": {"file": "the file's bytes"}},
                "application/json": {
                    "schema": SourceAsked.model_json_schema(by_alias=True),
                    "example": {"source": "/inbox/products.csv", "jobType": "csv"},
                },
            },
        }
    }
