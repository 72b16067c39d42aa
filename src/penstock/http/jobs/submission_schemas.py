"""Bodies of what submits jobs, as clients write and read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from penstock.lifecycle.vocabularies import QUEUE_STATE

SOURCE = "A folder path, `s3://bucket/prefix` or `ftp://host/path` that an operator has allowed."


class JobAccepted(BaseModel):
    """The job that was submitted."""

    job_id: UUID
    status: str = Field(description="As `GET /api/jobs/{job_id}` says it.", examples=["queued"])


class SourceAsked(BaseModel):
    """A source of files, instead of an upload."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid")

    source: str = Field(min_length=1, max_length=2_000, description=SOURCE, examples=["/inbox/table.csv"])
    job_type: str | None = Field(
        default=None, max_length=100, description="A kind that takes files; found from the content when it is missing."
    )
    encoding: str | None = Field(default=None, max_length=40, description="Of a CSV; found when it is missing.")
    delimiter: str | None = Field(default=None, min_length=1, max_length=1, description="Of a CSV.")
    sheet: str | None = Field(default=None, max_length=100, description="Of a workbook; the first one with rows.")


class FilesRefused(BaseModel):
    """A file of which no job was made."""

    name: str
    code: str = Field(description="Stable, for programs.", examples=["FILE_TYPE_UNKNOWN"])
    message: str = Field(description="For people.")


class FilesTaken(BaseModel):
    """The job of an upload; `jobIds` and `failed` are there for a source alone."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)

    job_id: UUID
    job_type: str
    queue_state: str = Field(json_schema_extra={"enum": list(QUEUE_STATE.statuses)})
    files: list[str] = Field(description="The files' names, as they are kept.")
    mapping: dict[str, str | None] | None = Field(
        description="What each column of a table was taken for; null for a column that is not used."
    )
    job_ids: list[UUID] | None = Field(default=None, description="One for each file that waited.")
    failed: list[FilesRefused] | None = Field(default=None, description="Files of which no job could be made.")


def upload_body(kinds: Sequence[str]) -> dict[str, Any]:
    """The two bodies of an upload, for the API's description: FastAPI can only be told one."""
    text = {"type": "string"}
    parts = {
        "file": {
            "type": "array",
            "items": {"type": "string", "format": "binary"},
            "minItems": 1,
            "description": "The files; those that are sent together become one job.",
        },
        "jobType": {"type": "string", "enum": list(kinds)},
        "encoding": text,
        "delimiter": text,
        "sheet": text,
    }
    form = {"type": "object", "required": ["file"], "properties": parts}
    source = SourceAsked.model_json_schema(by_alias=True)
    return {
        "requestBody": {
            "required": True,
            "content": {
                "multipart/form-data": {"schema": form, "example": {"file": "the file's bytes"}},
                "application/json": {"schema": source, "example": {"source": "/inbox/table.csv", "jobType": kinds[0]}},
            },
        }
    }
