"""The words in which an API shows the one lifecycle.

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
    """A word for each state, and another for a failure that something killed."""

    name: str
    words: Mapping[JobState, str]
    killed: str | None = None

    @classmethod
    def of(cls, name: str, *words: str, killed: str | None = None) -> Vocabulary:
        """One word for each state, in the states' own order."""
        return cls(name, dict(zip(JobState, words, strict=True)), killed)

    def __post_init__(self) -> None:
        missing = [state.value for state in JobState if state not in self.words]
        if missing:
            raise ValueError(f"vocabulary {self.name} has no word for: {', '.join(missing)}")

    def word(self, state: JobState, killed_by: KilledBy | None = None) -> str:
        """The public status of a job in ``state``."""
        if self.killed is not None and killed_by is not None and state is S.FAILED:
            return self.killed
        return self.words[state]


# created, queued, running, retrying, paused,
# succeeded, failed, canceled, committed, abandoned
TASKS = Vocabulary.of(
    "tasks",
    "queued", "queued", "running", "running", "queued",
    "completed", "failed", "killed", "completed", "completed",
    killed="killed",
)  # fmt: skip
QUEUE_STATE = Vocabulary.of(
    "queue_state",
    "QUEUED", "QUEUED", "RUNNING", "RUNNING", "PAUSED",
    "DONE", "FAILED", "FAILED", "DONE", "DONE",
)  # fmt: skip

VOCABULARIES: Mapping[str, Vocabulary] = {vocabulary.name: vocabulary for vocabulary in (TASKS, QUEUE_STATE)}
"""The engine's own; an application brings its words with it."""
