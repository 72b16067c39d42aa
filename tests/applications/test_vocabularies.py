"""Each vocabulary is the design's column, total over the states, and never shows a step back that did not happen."""

from __future__ import annotations

import pytest

from penstock.lifecycle.states import JobState, KilledBy
from penstock.lifecycle.transitions import TRANSITIONS
from penstock.lifecycle.vocabularies import QUEUE_STATE, TASKS, Vocabulary
from penstock.lifecycle.vocabularies import VOCABULARIES as OURS
from penstock_apps.documents.vocabulary import DOCUMENTS
from penstock_apps.recipes.vocabularies import PARSE_REQUESTS, RECIPES

VOCABULARIES = {words.name: words for words in (RECIPES, PARSE_REQUESTS, TASKS, QUEUE_STATE, DOCUMENTS)}
NAMES = ["recipes", "parse-requests", "tasks", "queue_state", "documents"]
# DESIGN.md, section 2.
TABLE = """
created   PENDING   PENDING    queued    QUEUED  CREATED
queued    PENDING   PENDING    queued    QUEUED  QUEUED
running   RUNNING   PROCESSING running   RUNNING RUNNING
retrying  RUNNING   PROCESSING running   RUNNING RETRYING
paused    PENDING   PENDING    queued    PAUSED  QUEUED
succeeded COMPLETE  COMPLETED  completed DONE    SUCCEEDED
failed    ERROR     FAILED     failed    FAILED  FAILED
canceled  CANCELED  FAILED     killed    FAILED  FAILED
committed COMMITTED COMPLETED  completed DONE    SUCCEEDED
abandoned ABANDONED COMPLETED  completed DONE    SUCCEEDED
"""
ROWS = [line.split() for line in TABLE.split("\n") if line]


def test_the_five_families_are_there() -> None:
    assert list(VOCABULARIES) == NAMES
    assert list(OURS) == ["tasks", "queue_state"], "the engine's own; the others are applications'"
    assert [row[0] for row in ROWS] == [state.value for state in JobState]


@pytest.mark.parametrize(("column", "name"), list(enumerate(NAMES, 1)))
def test_every_word_is_the_designs(column: int, name: str) -> None:
    assert {row[0]: row[column] for row in ROWS} == {state.value: VOCABULARIES[name].word(state) for state in JobState}


def test_only_tasks_tell_a_killed_failure_apart() -> None:
    for name in NAMES:
        word = VOCABULARIES[name].word(JobState.FAILED, KilledBy.OOM)
        assert word == ("killed" if name == "tasks" else VOCABULARIES[name].word(JobState.FAILED))
        assert VOCABULARIES[name].word(JobState.SUCCEEDED, KilledBy.OOM) == VOCABULARIES[name].word(JobState.SUCCEEDED)


def test_a_vocabulary_without_a_word_for_a_state_is_refused() -> None:
    words: dict[JobState, str] = {state: "x" for state in JobState if state is not JobState.PAUSED}
    with pytest.raises(ValueError, match="has no word for: paused"):
        Vocabulary("short", words)


@pytest.mark.parametrize("name", NAMES)
def test_a_status_never_goes_back_unless_somebody_asked_or_it_is_tried_again(name: str) -> None:
    """Ranks: waiting, working, over. Only a pause, a retry's way to the queue and a reprocess may lower them."""
    vocabulary = VOCABULARIES[name]
    waiting = {vocabulary.word(state) for state in (JobState.CREATED, JobState.QUEUED, JobState.PAUSED)}
    working = {vocabulary.word(state) for state in (JobState.RUNNING, JobState.RETRYING)}

    def rank(state: JobState) -> int:
        word = vocabulary.word(state)
        return 0 if word in waiting else 1 if word in working else 2

    backwards = {one.name for one in TRANSITIONS for source in one.sources if rank(one.target) < rank(source)}
    assert backwards <= {"pause", "requeue", "reprocess"}


def test_words_are_read_by_state_not_by_order() -> None:
    assert RECIPES.words[JobState.ABANDONED] == "ABANDONED"
