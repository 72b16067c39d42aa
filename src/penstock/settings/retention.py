"""How long what is over is kept, where a kind says nothing."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from pydantic_settings import BaseSettings

FOREVER = "forever"
_DURATION = r"^(forever|\d+(\.\d+)?(s|m|h|d))$"


class RetentionSettings(BaseSettings):
    """How long what is over is kept, where a kind says nothing."""

    keep_jobs_for: Annotated[
        str,
        Field(
            validation_alias="PENSTOCK_KEEP_JOBS_FOR",
            pattern=_DURATION,
            description="How long jobs of kinds without keep_for are kept after their work was done: 30d, or forever.",
        ),
    ] = FOREVER
    keep_failed_jobs_for: Annotated[
        str | None,
        Field(
            validation_alias="PENSTOCK_KEEP_FAILED_JOBS_FOR",
            pattern=_DURATION,
            description="The same for those that failed; as long as the others unless it is set.",
        ),
    ] = None
    keep_idempotency_keys_for: Annotated[
        str,
        Field(
            validation_alias="PENSTOCK_KEEP_IDEMPOTENCY_KEYS_FOR",
            pattern=_DURATION,
            description="How long a request with an idempotency key is answered with the job it led to: 30d, or "
            "forever. A key goes with its job at the latest, and not before that is over.",
        ),
    ] = "30d"
