"""The words in which the two families of recipe clients know the states of a job."""

from __future__ import annotations

from penstock import Vocabulary

# created, queued, running, retrying, paused,
# succeeded, failed, canceled, committed, abandoned
RECIPES = Vocabulary.of(
    "recipes",
    "PENDING", "PENDING", "RUNNING", "RUNNING", "PENDING",
    "COMPLETE", "ERROR", "CANCELED", "COMMITTED", "ABANDONED",
)  # fmt: skip
PARSE_REQUESTS = Vocabulary.of(
    "parse-requests",
    "PENDING", "PENDING", "PROCESSING", "PROCESSING", "PENDING",
    "COMPLETED", "FAILED", "FAILED", "COMPLETED", "COMPLETED",
)  # fmt: skip
