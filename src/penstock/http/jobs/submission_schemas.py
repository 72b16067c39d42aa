"""Bodies of what submits jobs, as clients write and read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import orjson
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from penstock.errors import InvalidInput
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
    mapping: dict[str, str | None] | None = Field(
        default=None,
        max_length=1_000,
        description="What columns of a table are to be taken for; null for one that is not to be used.",
        examples=[{"Name": "title", "Shelf": None}],
    )


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


def read_mapping(text: str | None) -> dict[str, str | None] | None:
    """What a form says of columns, which is JSON; None where it says nothing.

    >>> read_mapping('{"Regal": null}')
    {'Regal': None}
    """
    if text is None:
        return None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise _no_mapping(f"it is not JSON ({error})") from error
    if not isinstance(value, dict) or not all(isinstance(field, str | None) for field in value.values()):
        raise _no_mapping("it is no object of names of columns to texts or null")
    return value


def _no_mapping(why: str) -> InvalidInput:
    return InvalidInput(
        f'mapping cannot be read: {why}; send for instance {{"Name": "title"}}',
        field="mapping",
        code="MAPPING_INVALID",
    )


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
        "mapping": {
            "type": "string",
            "contentMediaType": "application/json",
            "description": "What columns of a table are to be taken for, as a JSON object: names of columns to fields, "
            "or null for one that is not to be used. Columns that are left out are found.",
            "example": '{"Name": "title", "Shelf": null}',
        },
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
