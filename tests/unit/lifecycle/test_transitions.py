"""The transition table is the design's, line for line."""

from __future__ import annotations

from itertools import product

import pytest

from penstock.lifecycle.states import ACTIVE, FINISHED, Actor, JobState
from penstock.lifecycle.transitions import ENTRY, TRANSITIONS, actions, is_legal, transitions_from
from penstock.store.tables import jobs

# DESIGN.md, section 2.
MAY_GO_TO = {
    "created": {"queued", "failed", "canceled"},
    "queued": {"running", "paused", "failed", "canceled"},
    "running": {"running", "succeeded", "failed", "retrying", "paused", "canceled"},
    "retrying": {"queued", "paused", "canceled"},
    "paused": {"queued", "canceled"},
    "succeeded": {"committed", "abandoned", "queued"},
    "failed": {"queued"},
    "canceled": set(),
    "committed": set(),
    "abandoned": set(),
}
ONLY_BY_REPROCESS = {("succeeded", "queued"), ("failed", "queued")}


def test_the_design_names_every_state() -> None:
    assert set(MAY_GO_TO) == {state.value for state in JobState}


@pytest.mark.parametrize(("source", "target"), list(product(JobState, JobState)))
def test_a_change_is_legal_exactly_where_the_design_says(source: JobState, target: JobState) -> None:
    assert is_legal(source, target) == (target.value in MAY_GO_TO[source.value])


def test_only_a_reprocess_leaves_a_finished_state_for_the_queue() -> None:
    for source, target in ONLY_BY_REPROCESS:
        names = [one.name for one in transitions_from(JobState(source)) if one.target.value == target]
        assert names == ["reprocess"]
    assert [one.name for one in TRANSITIONS if one.opens_run] == ["reprocess"]


def test_a_record_begins_created_or_queued() -> None:
    assert {state for state in JobState if is_legal(None, state)} == {JobState.CREATED, JobState.QUEUED}
    assert set(ENTRY) == {JobState.CREATED, JobState.QUEUED}


def test_each_state_is_active_or_finished() -> None:
    assert set(JobState) == ACTIVE | FINISHED
    assert not ACTIVE & FINISHED


def test_every_state_can_be_reached_and_every_active_one_can_end() -> None:
    reached = set(ENTRY)
    for _ in JobState:
        reached |= {one.target for state in reached for one in transitions_from(state)}
    assert reached == set(JobState)
    for state in ACTIVE:
        assert JobState.CANCELED in {one.target for one in transitions_from(state)}


def test_names_are_unique_and_lead_to_one_place_from_each_state() -> None:
    names = [one.name for one in TRANSITIONS]
    assert len(names) == len(set(names))
    for state in JobState:
        targets = [one.target for one in transitions_from(state)]
        assert len(targets) == len(set(targets)), f"two ways from {state} to the same state"


def test_what_a_transition_stamps_and_clears_are_columns() -> None:
    for one in TRANSITIONS:
        assert set(one.stamps) | set(one.clears) <= set(jobs.c.keys())
        assert not set(one.stamps) & set(one.clears)


def test_whoever_stops_flowing_leaves_the_line() -> None:
    """A job without a turn is not claimed: that is what makes pause and cancel O(1)."""
    for one in TRANSITIONS:
        stops = one.target in FINISHED | {JobState.PAUSED} and not one.sources <= FINISHED
        assert ("next_claim_at" in one.clears) == stops, one.name


@pytest.mark.parametrize(
    ("state", "who", "reprocessable", "expected"),
    [
        (JobState.CREATED, Actor.OWNER, False, ("submit", "cancel")),
        (JobState.QUEUED, Actor.OWNER, False, ("pause", "cancel")),
        (JobState.RUNNING, Actor.ADMIN, True, ("pause", "cancel")),
        (JobState.RETRYING, Actor.OWNER, False, ("pause", "cancel")),
        (JobState.PAUSED, Actor.OWNER, False, ("resume", "cancel")),
        (JobState.SUCCEEDED, Actor.OWNER, False, ("commit", "abandon")),
        (JobState.SUCCEEDED, Actor.OWNER, True, ("commit", "abandon", "reprocess")),
        (JobState.FAILED, Actor.OWNER, False, ()),
        (JobState.FAILED, Actor.OWNER, True, ("reprocess",)),
        (JobState.CANCELED, Actor.OWNER, True, ()),
        (JobState.COMMITTED, Actor.ADMIN, True, ()),
        (JobState.ABANDONED, Actor.OWNER, True, ()),
        (JobState.SUCCEEDED, Actor.SYSTEM, True, ("commit", "abandon", "reprocess")),
        (JobState.RUNNING, Actor.WORKER, True, ("succeed", "fail", "retry")),
    ],
)
def test_the_actions_offered(state: JobState, who: Actor, reprocessable: bool, expected: tuple[str, ...]) -> None:
    assert actions(state, who, reprocessable=reprocessable) == expected


def test_nobody_but_the_engine_decides_how_work_ends() -> None:
    for one in TRANSITIONS:
        if one.target in (JobState.RUNNING, JobState.SUCCEEDED, JobState.FAILED, JobState.RETRYING):
            assert not one.who & {Actor.OWNER, Actor.ADMIN}, one.name
