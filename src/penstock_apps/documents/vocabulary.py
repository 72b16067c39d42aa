"""The job lifecycle specification's words for the states of a document's job."""

from __future__ import annotations

from penstock import Vocabulary

# created, queued, running, retrying, paused,
# succeeded, failed, canceled, committed, abandoned
DOCUMENTS = Vocabulary.of(
    "documents",
    "CREATED", "QUEUED", "RUNNING", "RETRYING", "QUEUED",
    "SUCCEEDED", "FAILED", "FAILED", "SUCCEEDED", "SUCCEEDED",
)  # fmt: skip
