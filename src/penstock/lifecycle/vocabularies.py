"""The words in which an API shows the one lifecycle.

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
    """A word for each state, and another for a failure that something killed."""

    name: str
    words: Mapping[JobState, str]
    killed: str | None = None

    @classmethod
    def of(cls, name: str, *words: str, killed: str | None = None) -> Vocabulary:
        """One word for each known state, in the states' own order."""
        states = [state for state in JobState if state.shown_as is state]
        return cls(name, dict(zip(states, words, strict=True)), killed)

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

CELERY = Vocabulary.of(
    "celery",
    "PENDING", "PENDING", "STARTED", "RETRY", "PENDING",
    "SUCCESS", "FAILURE", "REVOKED", "SUCCESS", "SUCCESS",
    killed="REVOKED",
)  # fmt: skip
"""What Celery would say of a task that does the same; shown for debugging alone."""

VOCABULARIES: Mapping[str, Vocabulary] = {vocabulary.name: vocabulary for vocabulary in (TASKS, QUEUE_STATE)}
"""The engine's own; an application brings its words with it."""
