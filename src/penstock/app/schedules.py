"""``app.schedules``: what is submitted again and again, for whoever operates it."""

from __future__ import annotations

import builtins
from functools import partial

from penstock.app.runtime import Runtime
from penstock.lifecycle.callers import Caller
from penstock.lifecycle.job import Job
from penstock.operations import schedules
from penstock.operations.schedules import ScheduleStatus


class Schedules:
    """The schedules that programs have declared; who may see them is for the caller of this to say."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def list(self) -> builtins.list[ScheduleStatus]:
        """All of them, by name, with when each comes next, and what it came to last."""
        return self._runtime.store.read(schedules.list_schedules, single_statement=True)

    def get(self, name: str) -> ScheduleStatus:
        """One of them."""
        return self._runtime.store.write(partial(schedules.get_schedule, name=name))

    def pause(self, name: str) -> None:
        """Submit nothing until it is resumed; also where a program that declares it starts anew."""
        self._runtime.store.write(partial(schedules.pause, name=name))

    def resume(self, name: str) -> None:
        """Go on with the next tick; those that came meanwhile were not wanted."""
        self._runtime.store.write(partial(schedules.resume, name=name))

    def run(self, name: str, caller: Caller) -> Job:
        """Submit its job now, besides its ticks."""
        runtime = self._runtime
        max_bytes = runtime.settings.max_payload_bytes
        return runtime.store.write(
            partial(schedules.run_now, kinds=runtime.kinds, name=name, caller=caller, max_bytes=max_bytes)
        )

    def remove(self, name: str) -> None:
        """Forget one that no program declares any more: a program that does writes it down again when it starts."""
        self._runtime.store.write(partial(schedules.remove, name=name))
