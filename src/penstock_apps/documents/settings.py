"""What a document job may take, and how many may wait."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from penstock.application import ApplicationSettings, Bytes, Seconds


class DocumentSettings(ApplicationSettings):
    """The settings of the documents application."""

    timeout: Annotated[
        Seconds,
        Field(
            validation_alias="DOCUMENTS_TIMEOUT",
            description="The longest one document may take; its process is killed then, and the document tried again.",
        ),
    ] = 60.0
    memory_bytes: Annotated[
        Bytes,
        Field(
            validation_alias="DOCUMENTS_MEMORY",
            description="The most memory the process that reads a document may take; beyond it the document fails.",
        ),
    ] = 1024**3
    max_bytes: Annotated[
        Bytes,
        Field(
            validation_alias="DOCUMENTS_MAX_BYTES",
            description="The largest document; a larger one gets a job that fails with DOCUMENT_TOO_LARGE.",
        ),
    ] = 50 * 1024**2
    queue_limit: Annotated[
        int,
        Field(
            validation_alias="DOCUMENTS_QUEUE_LIMIT",
            ge=0,
            description="The most document jobs that may wait; one more fails at once with QUEUE_OVERLOAD.",
        ),
    ] = 1_000
    hold_limit: Annotated[
        Seconds,
        Field(
            validation_alias="DOCUMENTS_HOLD_LIMIT",
            description="The longest a document job that was only created waits to be submitted; then it is canceled.",
        ),
    ] = 86_400.0
    wait_limit: Annotated[
        Seconds,
        Field(
            validation_alias="DOCUMENTS_WAIT_LIMIT",
            description="The longest a document job may wait for a worker; then it fails with QUEUE_WAIT_EXCEEDED.",
        ),
    ] = 3600.0
