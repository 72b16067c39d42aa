"""Bodies of the documents' addresses, as clients read them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class DocumentJob(BaseModel):
    """A document's job, as the job lifecycle specification has it."""

    model_config = ConfigDict(alias_generator=to_camel)

    job_id: UUID
    state: Literal["CREATED", "QUEUED", "RUNNING", "SUCCEEDED", "FAILED", "RETRYING"]
    created_at: datetime
    started_at: datetime | None = Field(description="When processing began.")
    completed_at: datetime | None = Field(description="When it succeeded or failed.")
    retry_count: int = Field(ge=0, le=3)
    max_retries: int = Field(examples=[3])
    last_error: str | None
    error_type: Literal["RETRYABLE", "TERMINAL"] | None
