"""Failures are told of: in the log within bounds, to hooks that cannot harm a lane, and in figures."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any
from uuid import uuid4

from structlog.testing import capture_logs

from penstock import ItemContext, JobContext, NotFound, Penstock, Permanent, Retryable
from penstock.errors import Postponed
from penstock.lifecycle.states import ItemRole
from penstock.worker import Failure
from penstock.worker.failures import FailureLog

PATIENCE = 60.0


def failing(item: ItemContext) -> str:
    """Fail in the way the input names."""
    match item.input:
        case "raise":
            raise KeyError("nowhere")
        case "retry" if item.attempt == 1:
            raise Retryable("later", code="LATER")
        case "permanent":
            raise Permanent("never", code="NEVER")
        case "missing":
            raise NotFound("gone")
        case "put off" if not item.params:
            raise Postponed("not now", retry_after=0.05)
        case "bytes":
            return b"\xff"  # type: ignore[return-value]
    return "well"


def worked(app: Penstock, inputs: list[str], **hooks: Any) -> Any:
    app.kind("failing", retries=1, backoff="10ms fixed")(type("Failing", (), {"process": staticmethod(failing)}))
    for hook in hooks.values():
        app.on_failure(hook)
    job = app.submit("failing", items=inputs, owner="ada").job
    assert app.drain(timeout=PATIENCE)
    return app.jobs.get(job.id)


def test_hooks_hear_of_each_failed_try_once_it_is_recorded(app: Penstock) -> None:
    heard: list[Failure] = []
    job = worked(app, ["well", "raise", "retry", "permanent", "missing", "bytes"], hook=heard.append)
    told = sorted((one.position, one.attempt, one.code, one.will_retry, type(one.exception).__name__) for one in heard)
    assert told == [
        (2, 1, "PROCESSING_ERROR", True, "KeyError"),
        (2, 2, "PROCESSING_ERROR", False, "KeyError"),
        (3, 1, "LATER", True, "Retryable"),
        (4, 1, "NEVER", False, "Permanent"),
        (6, 1, "PAYLOAD_NOT_STORABLE", False, "NoneType"),
    ]
    first = next(one for one in heard if one.position == 2)
    assert (first.job_id, first.kind, first.owner, first.role) == (job.id, "failing", "ada", ItemRole.ITEM)
    assert first.traceback is not None
    assert "raise KeyError" in first.traceback
    assert first.exception is not None
    assert first.exception.__traceback__ is not None


def test_a_hook_that_raises_is_logged_and_the_others_hear(app: Penstock) -> None:
    heard: list[Failure] = []

    def broken(failure: Failure) -> None:
        raise SystemExit("hook")

    with capture_logs() as lines:
        job = worked(app, ["permanent", "permanent"], broken=broken, hook=heard.append)
    assert (len(heard), job.state.value) == (2, "succeeded")
    assert [one["log_level"] for one in lines if one["event"] == "an on_failure hook failed"] == ["error", "error"]


def test_a_hook_that_hangs_holds_up_no_work_and_what_it_misses_is_said(app: Penstock) -> None:
    let_go = threading.Event()
    with capture_logs() as lines:
        job = worked(app, ["permanent"] * 1_200, hook=lambda failure: let_go.wait())
    let_go.set()
    assert (job.state.value, job.progress.failed) == ("succeeded", 1_200)
    events = [one["event"] for one in lines]
    assert events.count("on_failure hooks are too slow: failures are dropped") == 1
    [missed] = [one for one in lines if one["event"] == "on_failure hooks did not get every failure"]
    assert missed["dropped"] >= 199


def test_a_thousand_failures_are_a_few_lines_and_a_count(app: Penstock) -> None:
    with capture_logs() as lines:
        worked(app, ["raise"] * 500 + ["permanent"] * 5 + ["missing"] * 5)
    failed = [one for one in lines if one["log_level"] == "warning" and one["event"].startswith("an item failed")]
    assert [one["code"] for one in failed].count("PROCESSING_ERROR") == 3
    assert [one["code"] for one in failed].count("NEVER") == 3
    unexpected = next(one for one in failed if one["code"] == "PROCESSING_ERROR")
    assert unexpected["traceback"].splitlines()[-1] == "KeyError: 'nowhere'"
    assert "NOT_FOUND" not in [one["code"] for one in failed]
    more: Counter[str] = Counter()
    for one in lines:
        if one["event"] == "more items failed in the same way":
            more[one["code"]] += one["items"]
    assert more == {"PROCESSING_ERROR": 997, "NEVER": 2}


def test_a_failure_is_told_of_though_its_item_is_claimed_again_while_it_is_recorded(app: Penstock) -> None:
    """Beside a database server a lane claims while it records, and a retry without a wait may come back at once."""
    heard: list[tuple[int, int]] = []
    app.kind("again", retries=4, backoff="0s fixed")(type("Again", (), {"process": staticmethod(failing)}))
    app.on_failure(lambda failure: heard.append((failure.position, failure.attempt)))
    app.submit("again", items=["raise"] * 200)
    assert app.drain(timeout=PATIENCE)
    assert sorted(heard) == [(position, attempt) for position in range(1, 201) for attempt in range(1, 6)]


def test_after_a_minute_there_are_lines_again() -> None:
    now = 0.0
    log = FailureLog(clock=lambda: now)
    failure = Failure(
        uuid4(),
        "kind",
        None,
        ItemRole.ITEM,
        1,
        1,
        "CODE",
        "error",
        "\n".join("abcdefghijklmnopqrstuvwxyz"),
        False,
        None,
    )
    with capture_logs() as lines:
        for _ in range(10):
            log.add(failure)
        log.flush()
        now = 61.0
        log.add(failure)
    assert [one.get("items") for one in lines] == [None, None, None, 7, None]
    assert lines[0]["traceback"].splitlines()[0] == "g"


def test_a_failed_job_is_logged_as_an_error_with_its_reason(app: Penstock) -> None:
    @app.kind("broken", retries=0)
    class Broken:
        def plan(self, job: JobContext) -> Any:
            raise Permanent("no such table", code="NO_TABLE")

        def process(self, item: ItemContext) -> None: ...

    job = app.submit("broken").job
    with capture_logs() as lines:
        assert app.drain(timeout=PATIENCE)
    [failed] = [one for one in lines if one["log_level"] == "error"]
    assert (failed["event"], failed["first"], failed["reason"]) == ("fail: failed", str(job.id), "no such table")
