"""Schedules that have shown a fault once: each stays here, and shows none any more."""

from __future__ import annotations

import pytest

from tests.interleavings.explorer import Explorer
from tests.interleavings.schedule import Schedule

KEPT = {
    "a plan's batch lands after its lease is gone": "planning_expired / rescue + plan more p1 / 000100000",
    "a job that just succeeded gets an empty second run": "lead_running / reprocess L + done h1 / 0011111110",
    "a refusal names a reason that is none": "paused / pause L + resume L / 011111110",
    "a result that comes in between is not used": "lead_running / submit by dora, if not fresh + done h1 / 011111110",
    "messages of one key change places": "messages_out_of_order / relay + relay + publish elsewhere / 0221111100",
    "reprocess and record lock in opposite orders": "given_timed_out_finalizing / reprocess L + done h2 / 00100100",
    "a follower fails alone": "limited_waited / claim of L + fail waiting / 011110",
    "a result is copied twice for one owner": (
        "succeeded / submit by dora, if not fresh + submit by dora, if not fresh / 011111100000"
    ),
    "a job is run again while it is reprocessed": "kept_succeeded / reprocess all of L + rerun L / 0001111000000001111",
    "more wait than the bound allows": "bounded / submit without key + submit without key / 0101",
}


@pytest.mark.parametrize("schedule", KEPT.values(), ids=KEPT)
def test_it_shows_no_fault_any_more(on_postgresql: Explorer, schedule: str) -> None:
    assert on_postgresql.replay(Schedule.parse(schedule)) is not None
    assert not on_postgresql.findings, "\n".join(map(str, on_postgresql.findings.values()))
