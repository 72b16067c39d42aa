"""What a lane has in hand: the calls of claimed items, the runners that make them, and how each of them ended.

A call is in hand from the moment it is started until its outcome is written. It ends once: as its runner says, or as
the watchdog or a stopping lane decides before that; what comes later changes nothing. Outcomes go to the completion
buffer, from which the lane writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import groupby
from uuid import UUID

import structlog

from penstock.errors import Stopped
from penstock.lifecycle import outcomes
from penstock.lifecycle.job import ClaimedItem
from penstock.lifecycle.kind import Kind
from penstock.lifecycle.outcomes import Outcome
from penstock.lifecycle.policy import RunsIn
from penstock.lifecycle.states import ItemRole
from penstock.operations.record import ItemResult
from penstock.runners.contract import Call, EndedCall, Runner, Unread
from penstock.worker.answer_reader import AnswerReader
from penstock.worker.call_outcome import outcome_of_call
from penstock.worker.completion_buffer import CompletionBuffer
from penstock.worker.quarantine import App, Quarantine

RunnerFor = Callable[[Kind, RunsIn, Callable[[Sequence[EndedCall]], None]], Runner]
_log = structlog.get_logger("penstock.lane")


class ItemExecutor:
    """Runs the items of one kind."""

    def __init__(self, kind: Kind, runner_for: RunnerFor, app: App | None, *, max_result_bytes: int) -> None:
        self.kind = kind
        self.completions = CompletionBuffer()
        self._max_result_bytes = max_result_bytes
        self._runner_for = runner_for
        self._runners: dict[RunsIn, Runner] = {}
        self._by_role: dict[ItemRole, Runner] = {}
        self._calls: dict[int, Call] = {}
        self._quarantine = Quarantine(kind, app, self.take_in)
        self._items_elsewhere: set[int] = set()
        self.answers = AnswerReader(self._conclude_apart, name=f"penstock-outcomes-{kind.name}")
        """Where what an answer means is decided, if that runs code that is not ours."""
        self.items_runner = self._runner(ItemRole.ITEM)

    # What is in hand ----------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._calls)

    def calls_in_hand(self) -> list[Call]:
        """What is in hand now; for any thread."""
        return list(self._calls.values())

    @property
    def calls_elsewhere(self) -> int:
        """How many of these take no place of the items' runner: in a process of their own, or a plan in a thread.

        Those that wait for a place elsewhere do not count: nothing more is to be claimed for them.
        """
        if not self._items_elsewhere:
            return 0
        places = sum(runner.concurrency for runner in self.runners if runner is not self.items_runner)
        return min(len(self._items_elsewhere), places)

    def calls_of(self, results: Sequence[ItemResult]) -> list[Call | None]:
        """The calls that ended so; None for one that is not ours any more, or that was claimed again since."""
        calls = [self._calls.get(result.item_id) for result in results]
        return [
            call if call is not None and call.owner.lease is result.lease else None
            for call, result in zip(calls, results, strict=True)
        ]

    def forget(self, call: Call) -> None:
        """The call's outcome is written, or was too late: it is not in hand any more."""
        item_id = call.owner.item_id
        if self._calls.get(item_id) is call:
            del self._calls[item_id]
            self._items_elsewhere.discard(item_id)

    def forget_all(self) -> None:
        """Nothing is in hand any more."""
        self._calls.clear()
        self._items_elsewhere.clear()

    # Starting -----------------------------------------------------------------------------------------------------

    def start(self, calls: Sequence[Call]) -> None:
        """Hand calls to the runners of their roles."""
        self.completions.hand_out(len(calls))
        for role, alike in groupby(calls, _role_of):
            self._start_alike(role, list(alike))

    def _start_alike(self, role: ItemRole, calls: Sequence[Call]) -> None:
        """Start calls of one role. What fails here (the kind has lost a step, say) is the outcome of these items."""
        self._calls.update((call.owner.item_id, call) for call in calls)
        try:
            runner = self._runner(role)
            for call in calls:
                call.runner = runner
            if runner is not self.items_runner:
                self._items_elsewhere.update(call.owner.item_id for call in calls)
            runner.start(calls)
        except Exception as error:  # noqa: BLE001 - whatever keeps a call from starting is its outcome
            self.take_in([(call, None, error) for call in calls])

    def start_suspect(self, call: Call, deaths: int) -> bool:
        """Start a suspect in a process of its own; False where there can be none, and it waits to be run alone."""
        item: ClaimedItem = call.owner
        if self.kind.runs_in(item.role) is RunsIn.PROCESSES:
            self.start([call])  # a process of its own is what it gets there anyway
            return True
        _log.warning(
            "an item is a suspect and is run alone", kind=self.kind.name, item=item.item_id, worker_deaths=deaths
        )
        self.completions.hand_out(1)
        self._calls[item.item_id] = call
        try:
            apart = self._quarantine.call(item, deaths, call.renew_at)
            if apart is None or apart.runner is None:
                call.runner = self._runner(item.role)
                return False
            self._calls[item.item_id] = call = apart
            self._items_elsewhere.add(item.item_id)
            apart.runner.start([apart])
        except Exception as error:  # noqa: BLE001 - whatever keeps a call from starting is its outcome
            self.take_in([(call, None, error)])
        return True

    @property
    def runners(self) -> tuple[Runner, ...]:
        """The runners there are now; the lane's thread may add one at any time."""
        apart = self._quarantine.runner
        return tuple(self._runners.values()) if apart is None else (*self._runners.values(), apart)

    def _runner(self, role: ItemRole) -> Runner:
        runner = self._by_role.get(role)
        if runner is None:
            place = self.kind.runs_in(role)
            runner = self._runners.get(place) or self._runner_for(self.kind, place, self.take_in)
            self._by_role[role] = runner
            # Another thread may be going through those there are: it keeps the ones it has begun with.
            self._runners = {**self._runners, place: runner}
        return runner

    # Ending -------------------------------------------------------------------------------------------------------

    def take_in(self, ended_calls: Sequence[EndedCall]) -> None:
        """Calls ended; in the runner's thread, while the lane's is with the database."""
        results: list[ItemResult] = []
        for ended_call in ended_calls:
            if self._runs_foreign_code(ended_call):
                self.answers.put(ended_call)
            else:
                results += self._conclude(ended_call)
        self.completions.put(results)

    def end(self, call: Call, outcome: Outcome) -> None:
        """End a call whatever its runner does; in any thread."""
        self.completions.put(self.end_call(call, outcome))

    def overrun(self, call: Call, error: BaseException) -> None:
        """A call was ended from outside for this reason; the kind may know better what that means."""
        self.take_in([(call, None, error)])

    def put_off(self, call: Call, why: str, delay: float) -> None:
        """A call that was not made: its item comes again later."""
        self.end(call, outcomes.postponed(why, "POSTPONED", delay))

    def end_call(self, call: Call, outcome: Outcome) -> Sequence[ItemResult]:
        """The end of a call, to be written; nothing when it has ended already."""
        item: ClaimedItem = call.owner
        if not call.end():
            if outcome != outcomes.released():  # of one that was told to stop, that is what is expected
                _log.info(
                    "a call that was given up has ended, which changes nothing",
                    kind=self.kind.name,
                    job=str(item.job_id),
                    item=item.item_id,
                )
            return ()
        return (ItemResult(item.item_id, item.lease, item.job_id, item.role, outcome),)

    def _runs_foreign_code(self, ended_call: EndedCall) -> bool:
        """Does concluding it run code that is not ours, and that others must not wait for?"""
        _, value, error = ended_call
        if error is None:
            return type(value) is Unread
        return self.kind.classify is not None and type(error) is not Stopped

    def _conclude(self, ended_call: EndedCall) -> Sequence[ItemResult]:
        call, value, error = ended_call
        apart = self._quarantine.judge if self._quarantine.has(call) else None
        return self.end_call(call, outcome_of_call(self.kind, call, value, error, self._max_result_bytes, apart=apart))

    def _conclude_apart(self, ended_call: EndedCall) -> None:
        self.completions.put(self._conclude(ended_call))

    # Stopping -----------------------------------------------------------------------------------------------------

    def drop(self, *, jobs: Collection[UUID] = (), items: Collection[int] = ()) -> None:
        """Stop the calls of jobs that were stopped, or of items that are not ours any more."""
        self.interrupt(
            [call for call in self.calls_in_hand() if call.owner.job_id in jobs or call.owner.item_id in items]
        )

    def interrupt(self, calls: Sequence[Call]) -> None:
        """Have the runners stop these calls."""
        by_runner: dict[Runner, list[Call]] = {}
        for call in calls:
            if call.runner is not None:
                by_runner.setdefault(call.runner, []).append(call)
        for runner, runner_calls in by_runner.items():
            runner.stop(runner_calls)

    def stop_waiting(self) -> None:
        """Hand back the calls that wait for a place; what runs goes on."""
        for runner in self.runners:
            runner.stop_waiting()

    def give_up(self) -> None:
        """What could not be stopped is handed back all the same: its runner hangs, or what is made of its answer."""
        open_calls = [call for call in self.calls_in_hand() if call.is_open]
        if open_calls:
            _log.warning(
                "handlers did not stop; their items are handed back", kind=self.kind.name, items=len(open_calls)
            )
        for call in open_calls:
            if call.runner is not None:
                call.runner.abandon(call)
            self.end(call, outcomes.released())

    @property
    def abandoned(self) -> int:
        """Calls that were given up and still run."""
        return sum(runner.abandoned for runner in self.runners) + self.answers.abandoned

    def close(self) -> None:
        """Let go of the runners."""
        for runner in self.runners:
            runner.close()


def _role_of(call: Call) -> ItemRole:
    role: ItemRole = call.owner.role
    return role
