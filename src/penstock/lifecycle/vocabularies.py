"""The words in which each API family shows the one lifecycle.

Each vocabulary is a table, total over the states (a missing state fails at import), and nothing else decides a public
status. A state that is shown as another one has that one's word, unless the vocabulary says otherwise.
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
        words = {state: self.words.get(state) or self.words.get(state.shown_as) for state in JobState}
        missing = [state.value for state, word in words.items() if word is None]
        if missing:
            raise ValueError(f"vocabulary {self.name} has no word for: {', '.join(missing)}")
        object.__setattr__(self, "words", words)

    @property
    def statuses(self) -> tuple[str, ...]:
        """Every word it has, in the order of the states."""
        return tuple(dict.fromkeys([*self.words.values(), *([self.killed] if self.killed else [])]))

    def word(self, state: JobState, killed_by: KilledBy | None = None) -> str:
        """The public status of a job in ``state``."""
        if self.killed is not None and killed_by is not None and state is S.FAILED:
            return self.killed
        return self.words[state]


def _table(*words: str) -> dict[JobState, str]:
    known = [state for state in JobState if state.shown_as is state]
    return dict(zip(known, words, strict=True))


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

CELERY = Vocabulary(
    "celery",
    _table(
        "PENDING", "PENDING", "STARTED", "RETRY", "PENDING",
        "SUCCESS", "FAILURE", "REVOKED", "SUCCESS", "SUCCESS",
    ),
)  # fmt: skip
"""What Celery would say of a task that does the same; shown for debugging alone."""
