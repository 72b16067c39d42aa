"""The status of a Celery coordinator, as people should see it."""

from __future__ import annotations

import pytest

from penstock.lifecycle import EFFECTIVE_STATUSES, VOCABULARIES, effective_status


@pytest.mark.parametrize(
    ("state", "told", "shown"),
    [
        ("PENDING", None, "queued"),
        ("STARTED", None, "running"),
        ("STARTED", "completed", "running"),
        ("SUCCESS", "dispatched", "running"),
        ("SUCCESS", "processing", "running"),
        ("SUCCESS", "completed", "completed"),
        ("SUCCESS", "completed_with_errors", "completed"),
        ("SUCCESS", "requeued", "completed"),
        ("SUCCESS", None, "completed"),
        ("SUCCESS", "something else", "completed"),
        ("FAILURE", None, "failed"),
        ("FAILURE", "completed", "failed"),
        ("REVOKED", None, "killed"),
        ("REVOKED", "dispatched", "killed"),
        ("RETRY", None, "running"),
        ("PROGRESS", "completed", "running"),
    ],
)
def test_state_and_result_together_are_one_of_five(state: str, told: str | None, shown: str) -> None:
    assert effective_status(state, None if told is None else {"status": told, "total_items": 7}) == shown


@pytest.mark.parametrize("result", [None, 42, "dispatched", ["status"], {"status": None}, {"status": 7}, {}])
def test_a_result_that_says_nothing_leaves_the_state_alone(result: object) -> None:
    assert effective_status("SUCCESS", result) == "completed"
    assert effective_status("PENDING", result) == "queued"


def test_its_words_are_those_of_our_own_jobs() -> None:
    assert set(EFFECTIVE_STATUSES.values()) == {*VOCABULARIES["tasks"].words.values()}
