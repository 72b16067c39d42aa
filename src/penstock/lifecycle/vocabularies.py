"""The words in which each API family shows the one lifecycle.

Each vocabulary is a table, total over the states (a missing state fails at import), and nothing else decides a public
status.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.lifecycle.states import JobState, KilledBy

S = JobState


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """One family's word for each state, and another for a failure that something killed."""

    name: str
    words: Mapping[JobState, str]
    killed: str | None = None

    def __post_init__(self) -> None:
        missing = [state.value for state in JobState if state not in self.words]
        if missing:
            raise ValueError(f"vocabulary {self.name} has no word for: {', '.join(missing)}")

    def word(self, state: JobState, killed_by: KilledBy | None = None) -> str:
        """The public status of a job in ``state``."""
        if self.killed is not None and killed_by is not None and state is S.FAILED:
            return self.killed
        return self.words[state]


def _table(*words: str) -> dict[JobState, str]:
    return dict(zip(JobState, words, strict=True))


# created, queued, running, retrying, paused,
# succeeded, failed, canceled, committed, abandoned
RECIPES = Vocabulary(
    "recipes",
    _table(
        "PENDING", "PENDING", "RUNNING", "RUNNING", "PENDING",
        "COMPLETE", "ERROR", "CANCELED", "COMMITTED", "ABANDONED",
    ),
)  # fmt: skip
PARSE_REQUESTS = Vocabulary(
    "parse-requests",
    _table(
        "PENDING", "PENDING", "PROCESSING", "PROCESSING", "PENDING",
        "COMPLETED", "FAILED", "FAILED", "COMPLETED", "COMPLETED",
    ),
)  # fmt: skip
TASKS = Vocabulary(
    "tasks",
    _table(
        "queued", "queued", "running", "running", "queued",
        "completed", "failed", "killed", "completed", "completed",
    ),
    killed="killed",
)  # fmt: skip
QUEUE_STATE = Vocabulary(
    "queue_state",
    _table(
        "QUEUED", "QUEUED", "RUNNING", "RUNNING", "PAUSED",
        "DONE", "FAILED", "FAILED", "DONE", "DONE",
    ),
)  # fmt: skip
DOCUMENTS = Vocabulary(
    "documents",
    _table(
        "CREATED", "QUEUED", "RUNNING", "RETRYING", "QUEUED",
        "SUCCEEDED", "FAILED", "FAILED", "SUCCEEDED", "SUCCEEDED",
    ),
)  # fmt: skip

VOCABULARIES: Mapping[str, Vocabulary] = {
    vocabulary.name: vocabulary for vocabulary in (RECIPES, PARSE_REQUESTS, TASKS, QUEUE_STATE, DOCUMENTS)
}
