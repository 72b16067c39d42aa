"""A check on everything a worker holds, whatever may have gone wrong with it.

Runners end their calls at their time limit, and tell of each call exactly once. Should that fail for any reason (a
coroutine that will not be cancelled, a loop that a handler keeps, a fault of ours), the item would stay in hand, and
the heartbeat would keep it there for ever. So, from a thread of its own, the watchdog asks two questions that do not
depend on the reason:

- Is a call past its deadline, and the grace after it? Then its place is given to another and it ends as a timeout.
- Does its runner still know it? If not, twice in a row, nobody will ever tell how it ended: it ends as lost.

A call without a time limit that really runs is left alone, however long it takes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import structlog

from penstock.errors import TimeLimitExceeded
from penstock.worker.call_outcome import outcome_of_lost_call, outcome_of_slow_reading
from penstock.worker.loop import Loop

if TYPE_CHECKING:
    from penstock.runners.contract import Call
    from penstock.worker.lane import Lane

_DUTY_SECONDS = 60.0
_log = structlog.get_logger("penstock.watchdog")


def watch(lane: Lane, grace: float) -> None:
    """One look at everything a lane holds."""
    answers = lane.executor.answers
    hung = answers.give_up(grace)
    if hung is not None:
        call, _, error = hung
        _say("what an item's answer means was not decided in time", lane, call, seconds=grace)
        lane.executor.end(call, outcome_of_slow_reading(lane.kind, call.owner, error, grace))
    being_concluded = set(answers.calls())
    open_calls = [call for call in lane.executor.calls_in_hand() if call.is_open and call not in being_concluded]
    _end_overdue(lane, open_calls, time.monotonic() - grace)
    _end_lost(lane, open_calls, being_concluded)
    for runner in lane.executor.runners:
        runner.start_waiting()
        if runner.is_exhausted:
            runner.stop_waiting()


def _end_overdue(lane: Lane, open_calls: Sequence[Call], moment: float) -> None:
    for call in open_calls:
        if call.deadline is not None and call.deadline <= moment:
            _say("an item is past its time limit and did not end; it is given up", lane, call, timeout=call.timeout)
            if call.runner is not None:
                call.runner.abandon(call)
            lane.executor.overrun(call, TimeLimitExceeded(call.too_late()))


def _end_lost(lane: Lane, open_calls: Sequence[Call], being_concluded: set[Call]) -> None:
    """A call on its way between two threads may be missing once, but not at the next look."""
    known_calls = being_concluded.union(
        runner_call for runner in lane.executor.runners for runner_call in runner.calls()
    )
    missing = {call for call in open_calls if call not in known_calls and call is not lane.set_aside and call.is_open}
    for call in missing & lane.missing:
        _say("no runner knows this item's call any more", lane, call)
        lane.executor.end(call, outcome_of_lost_call(lane.kind, call.owner))
    lane.missing = missing


def look_at_duties(duties: Sequence[Loop], warned_duties: set[str]) -> None:
    """Log which duty has run for a minute: a subscriber or a gauge may hang in it."""
    now = time.monotonic()
    for duty in duties:
        since = duty.busy_since
        if since is None or now - since < _DUTY_SECONDS:
            warned_duties.discard(duty.name)
        elif duty.name not in warned_duties:
            warned_duties.add(duty.name)
            _log.error("a duty of the worker hangs", duty=duty.name, seconds=round(now - since))


def _say(what: str, lane: Lane, call: Call, **more: object) -> None:
    _log.error(what, kind=lane.kind.name, job=str(call.owner.job_id), item=call.owner.item_id, **more)
