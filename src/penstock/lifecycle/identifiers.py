"""Ids as callers give them: a UUID, or its text."""

from __future__ import annotations

from uuid import UUID

from penstock.errors import FileNotFound, InvalidInput, JobNotFound

Identifier = UUID | str
"""An id: a UUID, or its text."""
_LIKE = "an id looks like 01890a5d-ac96-774b-bcce-b302099a8057"


def read_job_id(value: Identifier) -> UUID:
    """The id of a job that is looked for; a text that is no id names no job.

    >>> read_job_id("01890a5d-ac96-774b-bcce-b302099a8057")
    UUID('01890a5d-ac96-774b-bcce-b302099a8057')
    >>> read_job_id("12")
    Traceback (most recent call last):
    ...
    penstock.errors.JobNotFound: there is no job '12': an id looks like 01890a5d-ac96-774b-bcce-b302099a8057
    """
    if isinstance(value, UUID):
        return value
    job_id = _read(value, "job_id")
    if job_id is None:
        raise JobNotFound(f"there is no job {value!r}: {_LIKE}")
    return job_id


def read_file_id(value: Identifier) -> UUID:
    """The id of a file that is looked for."""
    file_id = _read(value, "file_id")
    if file_id is None:
        raise FileNotFound(f"there is no file {value!r}: {_LIKE}")
    return file_id


def read_new_id(value: Identifier, field: str) -> UUID:
    """The id that something is to have."""
    new_id = _read(value, field)
    if new_id is None:
        raise InvalidInput(f"{field} is {value!r}; {_LIKE}", field=field)
    return new_id


def _read(value: object, field: str) -> UUID | None:
    if isinstance(value, UUID):
        return value
    if not isinstance(value, str):
        raise InvalidInput(f"{field} is {value!r}; it must be a UUID or its text", field=field)
    try:
        return UUID(value)
    except ValueError:
        return None
