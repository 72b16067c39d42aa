"""What an exception means for an item, and what an item's end means for its job, as tables."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.exc import OperationalError

from penstock.errors import (
    InvalidInput,
    MemoryLimitExceeded,
    NotFound,
    PayloadTooLarge,
    Permanent,
    Retryable,
    Skip,
    StoreUnavailable,
    TimeLimitExceeded,
    WorkerCrashed,
)
from penstock.lifecycle import outcomes
from penstock.lifecycle.decisions import (
    AddFinalize,
    Fail,
    JobCounters,
    Next,
    Nothing,
    Retry,
    Succeed,
    next_step,
    outcome_for_error,
    retry_or_fail,
)
from penstock.lifecycle.outcomes import Outcome
from penstock.lifecycle.policy import Policy
from penstock.lifecycle.states import ErrorType, ItemStatus, KilledBy, Phase

POLICY = Policy(retries=2, backoff="10s fixed")
PENDING, ERROR = ItemStatus.PENDING, ItemStatus.ERROR

JUDGED: list[tuple[BaseException, int, ItemStatus, str, KilledBy | None]] = [
    (Skip("s"), 1, ItemStatus.SKIPPED, "SKIPPED", None),
    (Skip("s", code="SAME"), 9, ItemStatus.SKIPPED, "SAME", None),
    (NotFound("n"), 1, ItemStatus.NOT_FOUND, "NOT_FOUND", None),
    (Permanent("p"), 1, ERROR, "PERMANENT", None),
    (InvalidInput("i"), 1, ERROR, "INVALID_INPUT", None),
    (PayloadTooLarge("l"), 1, ERROR, "PAYLOAD_TOO_LARGE", None),
    (Retryable("r"), 1, PENDING, "RETRYABLE", None),
    (Retryable("r", code="BUSY"), 2, PENDING, "BUSY", None),
    (Retryable("r"), 3, ERROR, "RETRYABLE", None),
    (TimeLimitExceeded("t"), 2, PENDING, "WORKER_TIMEOUT", KilledBy.TIMEOUT),
    (TimeLimitExceeded("t"), 3, ERROR, "WORKER_TIMEOUT", KilledBy.TIMEOUT),
    (MemoryLimitExceeded("m"), 3, ERROR, "WORKER_OOM", KilledBy.OOM),
    (WorkerCrashed("c"), 3, ERROR, "WORKER_CRASH", KilledBy.WORKER_CRASH),
    (ZeroDivisionError("division"), 1, PENDING, "PROCESSING_ERROR", None),
    (ZeroDivisionError("division"), 3, ERROR, "PROCESSING_ERROR", None),
    (KeyboardInterrupt(), 3, ERROR, "PROCESSING_ERROR", None),
]


@pytest.mark.parametrize(("error", "attempt", "status", "code", "killed_by"), JUDGED)
def test_judge(error: BaseException, attempt: int, status: ItemStatus, code: str, killed_by: KilledBy | None) -> None:
    outcome = outcome_for_error(error, attempt, POLICY, traceback="trace")
    assert (outcome.status, outcome.code, outcome.killed_by) == (status, code, killed_by)
    assert outcome.is_over == (status is not PENDING)
    assert outcome.delay == (10.0 if status is PENDING else None)
    assert (outcome.error_type is ErrorType.RETRYABLE) == (status is PENDING)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ZeroDivisionError("division"), "ZeroDivisionError: division"),
        (ValueError(), "ValueError"),
        (Retryable("busy"), "busy"),
        (RuntimeError("a\0b\ud800"), "RuntimeError: a\ufffdb\ufffd"),
    ],
)
def test_the_words_of_an_error(error: BaseException, text: str) -> None:
    assert outcome_for_error(error, 1, POLICY).error == text


def test_a_server_that_asks_for_more_time_gets_it() -> None:
    assert outcome_for_error(Retryable("busy", retry_after=60), 1, POLICY).delay == 60
    assert outcome_for_error(Retryable("busy", retry_after=1), 1, POLICY).delay == 10
    assert outcome_for_error(Retryable("busy", retry_after=1e9), 1, POLICY).delay == 86400


def test_what_is_not_found_has_retries_of_its_own() -> None:
    policy = Policy(retries=0, not_found_retries=1, backoff="10s fixed")
    ends = [outcome_for_error(NotFound("n"), before + 1, policy, not_found_attempts=before) for before in (0, 1)]
    assert [(end.status, end.was_not_found) for end in ends] == [(PENDING, True), (ItemStatus.NOT_FOUND, True)]


def test_failures_use_up_no_try_of_what_is_not_found_and_the_other_way_round() -> None:
    policy = Policy(retries=2, not_found_retries=1, backoff="10s fixed")
    # Two outages, and the third try is the first that was answered.
    assert outcome_for_error(NotFound("n"), 3, policy).status is PENDING
    # Not found once; the failure that follows is the first of three.
    ends = [outcome_for_error(Retryable("away"), attempt, policy, not_found_attempts=1) for attempt in (2, 3, 4)]
    assert [end.status for end in ends] == [PENDING, PENDING, ItemStatus.ERROR]


def test_an_error_made_of_a_kill_still_says_who_killed() -> None:
    with pytest.raises(Permanent) as raised:
        raise Permanent("told apart by classify") from MemoryLimitExceeded("too much")
    assert outcome_for_error(raised.value, 1, POLICY).killed_by is KilledBy.OOM


@pytest.mark.parametrize(("retries", "attempt", "status"), [(0, 1, ERROR), (1, 1, PENDING), (1, 2, ERROR)])
def test_again_until_the_retries_are_used_up(retries: int, attempt: int, status: ItemStatus) -> None:
    assert retry_or_fail("x", "X", attempt, Policy(retries=retries)).status is status


def test_long_words_are_cut() -> None:
    outcome = outcomes.failed("e" * 3000, "C" * 100, traceback="t" * 20_000)
    assert outcome.error is not None
    assert outcome.code is not None
    assert outcome.traceback is not None
    assert (len(outcome.error), len(outcome.code), len(outcome.traceback)) == (2000, 64, 16_001)
    assert outcome.error.endswith("…")
    assert outcome.traceback.startswith("…")


DONE = outcomes.done('"r"')
FAILED = outcomes.failed("f", "F")
SKIPPED = outcomes.skipped("s", "S")
LATER = outcomes.retried("l", "L", 1.0)
RELEASED = outcomes.released()
GONE = outcomes.not_found("g", "G")


def ledger(**given: Any) -> JobCounters:
    return JobCounters(**{"single_step": False, "planned": True, "has_finalizer": True, "finalize_added": False,
                     "total": 2, "processed": 1} | given)  # fmt: skip


SINGLE = ledger(single_step=True, has_finalizer=False, total=1, processed=1)
FINALIZING = ledger(processed=2, finalize_added=True)

FOLLOWS: list[tuple[JobCounters, dict[str, Outcome], Next]] = [
    # A single step is its job.
    (SINGLE, {"single": DONE}, Succeed('"r"')),
    (SINGLE, {"single": SKIPPED}, Succeed(None)),
    (SINGLE, {"single": FAILED}, Fail(FAILED, Phase.PROCESSING)),
    (SINGLE, {"single": GONE}, Fail(GONE, Phase.PROCESSING)),
    (SINGLE, {"single": LATER}, Retry(LATER)),
    (SINGLE, {"single": RELEASED}, Nothing()),
    (SINGLE, {}, Nothing()),
    # Items: all of them first, then finalize or the end.
    (ledger(), {"single": DONE}, Nothing()),
    (ledger(), {"single": FAILED}, Nothing()),
    (ledger(processed=2), {"single": FAILED}, AddFinalize()),
    (ledger(processed=2), {}, AddFinalize()),
    (ledger(processed=2, has_finalizer=False), {}, Succeed(None)),
    (ledger(total=0, processed=0), {}, AddFinalize()),
    (ledger(total=0, processed=0, has_finalizer=False), {}, Succeed(None)),
    # The finalize item decides, and is added once.
    (FINALIZING, {}, Nothing()),
    (FINALIZING, {"finalize": DONE}, Succeed('"r"')),
    (FINALIZING, {"finalize": SKIPPED}, Succeed(None)),
    (FINALIZING, {"finalize": FAILED}, Fail(FAILED, Phase.FINALIZING)),
    (FINALIZING, {"finalize": GONE}, Fail(GONE, Phase.FINALIZING)),
    (FINALIZING, {"finalize": LATER}, Nothing()),
    (FINALIZING, {"finalize": RELEASED}, Nothing()),
    # Until the plan is done, nothing is complete; if it fails, so does the job.
    (ledger(planned=False, total=0, processed=0), {}, Nothing()),
    (ledger(planned=False, total=2, processed=2), {}, Nothing()),
    (ledger(planned=False), {"plan": LATER}, Nothing()),
    (ledger(planned=False), {"plan": FAILED}, Fail(FAILED, Phase.BATCHING)),
    (ledger(planned=True, processed=0), {"plan": DONE}, Nothing()),
    (ledger(planned=True, total=0, processed=0), {"plan": DONE}, AddFinalize()),
]


@pytest.mark.parametrize(("before", "deciding", "expected"), FOLLOWS)
def test_follows(before: JobCounters, deciding: dict[str, Outcome], expected: Next) -> None:
    assert next_step(before, **deciding) == expected


def test_errors_everybody_meets_have_codes_of_their_own() -> None:
    with pytest.raises(OSError, match="space") as full, Path("/dev/full").open("wb", buffering=0) as file:
        file.write(b"one byte too many")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(psycopg.OperationalError) as refused:
        psycopg.connect(host="127.0.0.1", port=port, connect_timeout=5)
    nowhere = create_engine(f"postgresql+psycopg://127.0.0.1:{port}/none")
    with pytest.raises(OperationalError) as wrapped:
        nowhere.connect()
    for error, code in (
        (full.value, "DISK_FULL"),
        (refused.value, "DB_CONN_REFUSED"),
        (wrapped.value, "DB_CONN_REFUSED"),
        (StoreUnavailable("gone"), "DB_CONN_REFUSED"),
        (ConnectionRefusedError(111, "Connection refused"), "PROCESSING_ERROR"),
    ):
        outcome = outcome_for_error(error, 1, Policy())
        assert (outcome.code, outcome.status) == (code, ItemStatus.PENDING), error
        assert outcome_for_error(error, 99, Policy()).status is ItemStatus.ERROR
