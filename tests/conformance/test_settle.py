"""What a job becomes when outcomes of its items are written: finalized, succeeded or failed."""

from __future__ import annotations

import pytest

from penstock.lifecycle import outcomes
from penstock.lifecycle.states import ErrorType, ItemRole, JobState, KilledBy, Phase
from penstock.testing.drive import Workbench
from tests.conformance.steps import DONE, FAILED, history

pytestmark = pytest.mark.usefixtures("rows_are_true_in_the_end")
S = JobState


def test_finalize_runs_once_after_the_last_item(bench: Workbench) -> None:
    job = bench.submit("bulk", items=[1, 2]).job
    first, second = bench.claim("bulk")
    bench.record([first], DONE)
    assert bench.claim("bulk") == []
    bench.record([second], FAILED)
    assert bench.job(job.id).phase is Phase.FINALIZING
    [finalize] = bench.claim("bulk")
    assert (finalize.role, finalize.position) == (ItemRole.FINALIZE, 3)
    bench.record([finalize], outcomes.done('"sum"'))
    ended = bench.job(job.id)
    assert (ended.state, ended.result, ended.completed_at) == (S.SUCCEEDED, "sum", bench.clock.held())
    assert bench.claim("bulk") == []


def test_a_failed_single_step_fails_its_job(bench: Workbench) -> None:
    job = bench.submit("single").job
    bench.record(bench.claim("single"), outcomes.failed("boom", "BOOM"))
    failed = bench.job(job.id)
    assert (failed.state, failed.last_error, failed.error_code, failed.error_type, failed.failed_phase) == (
        S.FAILED, "boom", "BOOM", ErrorType.TERMINAL, Phase.PROCESSING,
    )  # fmt: skip
    assert failed.killed_by is None
    assert history(bench, job.id)[-1].reason == "boom"


def test_a_failed_finalize_fails_its_job(bench: Workbench) -> None:
    job = bench.submit("bulk", items=[]).job
    bench.record(bench.claim("bulk"), outcomes.failed("boom", "BOOM", killed_by=KilledBy.TIMEOUT))
    failed = bench.job(job.id)
    assert (failed.state, failed.failed_phase, failed.killed_by, failed.killed_reason) == (
        S.FAILED, Phase.FINALIZING, KilledBy.TIMEOUT, "boom",
    )  # fmt: skip


def test_words_too_long_or_unkeepable_are_cut_to_fit(bench: Workbench) -> None:
    job = bench.submit("single").job
    bench.record(bench.claim("single"), outcomes.failed("a\0b" * 5000, "C\0" * 100, traceback="t\0" * 20_000))
    failed = bench.job(job.id)
    assert failed.error_code is not None
    assert failed.last_error is not None
    assert (len(failed.error_code), len(failed.last_error)) == (64, 2000)
    assert "\0" not in failed.error_code + failed.last_error
