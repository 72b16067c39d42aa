"""Whose limits hold when programs differ: those of the program that sweeps, and only for kinds it knows."""

from __future__ import annotations

from typing import Any

from penstock.lifecycle import outcomes
from penstock.lifecycle.kind import Kind
from penstock.lifecycle.policy import Policy
from penstock.lifecycle.states import JobState
from penstock.testing.drive import Workbench
from tests.properties.engine_kinds import process

DONE = outcomes.done("1")


def deployed(bench: Workbench, **policy: Any) -> Workbench:
    """A program on the same database that has the kind with these limits."""
    return Workbench(bench.store, bench.clock, [Kind.of("k", process, Policy(**policy))])


def test_a_deployment_that_changes_a_limit_changes_it_for_the_jobs_that_are_there(bench: Workbench) -> None:
    before = deployed(bench, wait_limit=60, run_limit=60, abandon_after=60)
    finished = before.submit("k").job
    before.record(before.claim("k"), DONE)
    running = before.submit("k").job
    before.claim("k", lease=1e6)
    waiting = before.submit("k").job
    bench.clock.advance(50)
    longer = deployed(bench, wait_limit=90, run_limit=90, abandon_after=90)
    bench.clock.advance(20)
    assert longer.sweep().total == 0, "a limit that was raised keeps what is there"
    shorter = deployed(bench, wait_limit=30, run_limit=30, abandon_after=30)
    assert shorter.sweep().total == 3
    states = [bench.job(one.id).state for one in (finished, running, waiting)]
    assert states == [JobState.ABANDONED, JobState.FAILED, JobState.FAILED]
    assert "30 s" in str(bench.job(running.id).last_error), "the limit in force is the one that is named"


def test_the_number_of_retries_is_the_jobs_own(bench: Workbench) -> None:
    job = deployed(bench, retries=7).submit("k").job
    assert (job.max_retries, deployed(bench, retries=0).claim("k")[0].max_retries) == (7, 7)


def test_a_program_that_does_not_know_a_kind_leaves_its_limits_alone(bench: Workbench) -> None:
    knowing = deployed(bench, wait_limit=60)
    waiting = knowing.submit("k").job
    bench.clock.advance(1e6)
    assert bench.sweep().total == 0
    assert bench.job(waiting.id).state is JobState.QUEUED
    assert knowing.sweep().waited_too_long == 1
