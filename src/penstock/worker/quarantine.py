"""Suspects: items that several workers held when they died; they are run apart before they are blamed.

A suspect is run in a process of its own, as its kind would run it: the same step, its time and its memory limit. That
process dies with its worker, so three things can happen:

- It answers or raises. Then the item ends as any other, and nobody was blamed.
- It dies, and the worker lives to see it. Then it was the item: it fails with WORKER_CRASH, alone.
- The worker dies too (a deployment, a power cut). Then it was not the item: it stays a suspect, with one more death.

The process needs the app. It imports the module that defines the kind's step and the module in which the app is a
variable. An app that is made in a function or in the program's main module cannot be had there, nor can a database in
memory; then :mod:`penstock.worker.solitude` runs the suspect in the worker itself, with nothing beside it.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from penstock.errors import PayloadNotStorable, StoreUnavailable, WorkerCrashed
from penstock.lifecycle import outcomes
from penstock.lifecycle.error_text import class_name
from penstock.lifecycle.job import ClaimedItem
from penstock.lifecycle.kind import Kind, Kinds
from penstock.lifecycle.outcomes import Outcome
from penstock.lifecycle.states import ItemRole, KilledBy
from penstock.runners.contract import Call, EndedCall
from penstock.runners.in_processes import ProcessRunner
from penstock.runners.processes import NotStarted
from penstock.settings import Settings
from penstock.store.engine import Store
from penstock.worker.calls import Calls
from penstock.worker.controllers import Controllers
from penstock.worker.host_load import HostLoad

_TRIED_AGAIN_SECONDS = 1.0


class App(Protocol):
    """What a process of its own needs of the app."""

    @property
    def kinds(self) -> Kinds:
        """The kinds it knows."""

    @property
    def store(self) -> Store:
        """The database."""

    @property
    def settings(self) -> Settings:
        """The settings."""


class AppNotLoaded(Exception):
    """The process could not load the app, or the app does not know the kind there."""

    code = "APP_NOT_LOADED"


class Suspect(NamedTuple):
    """What travels to the process: where the app and the step are, and the item."""

    app_module: str
    app_name: str
    step_module: str
    claimed_item: ClaimedItem
    deaths: int


class Quarantine:
    """Where one lane's suspects run, each in a process of its own."""

    def __init__(self, kind: Kind, app: App | None, on_ended: Callable[[Sequence[EndedCall]], None]) -> None:
        self._kind = kind
        self._app = app
        self._on_ended = on_ended
        self.runner: ProcessRunner | None = None
        """Its processes, once there was a suspect; the lane stops, watches and closes it like its others."""

    def call(self, claimed_item: ClaimedItem, deaths: int, renew_at: float) -> Call | None:
        """The call that runs a suspect in a process of its own; None where that cannot be."""
        place = None if self._app is None else find_app(self._app)
        if place is None:
            return None
        if self.runner is None:
            self.runner = ProcessRunner(
                os.cpu_count() or 1, self._on_ended, memory_bytes=self._kind.policy.memory_limit, calls_per_process=1
            )
        step = self._kind.handler(claimed_item.role)
        suspect = Suspect(*place, step.__module__, claimed_item, deaths)
        # A plan may take as long as it goes on yielding, which cannot be seen from outside of the process.
        timeout = None if claimed_item.role is ItemRole.PLAN else self._kind.policy.timeout
        return Call(claimed_item, run_suspect, suspect, timeout, runner=self.runner, renew_at=renew_at)

    def judge(self, call: Call, error: BaseException) -> Outcome | None:
        """How a suspect ended whose process answered with an error; None where that is like any other."""
        if isinstance(error, AppNotLoaded | NotStarted | PayloadNotStorable):
            if not isinstance(error, NotStarted):
                self._app = None
            return outcomes.postponed(f"it could not be run apart: {error}", error.code, _TRIED_AGAIN_SECONDS)
        if isinstance(error, WorkerCrashed):
            suspect: Suspect = call.argument
            text = f"the item was in hand in {suspect.deaths} deaths of workers; run alone, {error}"
            return outcomes.failed(text, error.code, killed_by=KilledBy.WORKER_CRASH).of_class(class_name(error))
        return None

    def has(self, call: Call) -> bool:
        """Is this call one of a suspect in a process of its own?"""
        return call.function is run_suspect


def find_app(app: App) -> tuple[str, str] | None:
    """The module and the name under which another process finds this app; None where there is none."""
    if app.store.is_in_memory:
        return None
    for module_name, module in tuple(sys.modules.items()):
        if module_name != "__main__":
            for name, value in tuple(getattr(module, "__dict__", {}).items()):
                if value is app:
                    return module_name, name
    return None


def run_suspect(suspect: Suspect) -> Any:
    """In the process of its own: run the item's step; what an async one answers is awaited by whoever called."""
    claimed_item = suspect.claimed_item
    try:
        importlib.import_module(suspect.step_module)
        app: App = getattr(importlib.import_module(suspect.app_module), suspect.app_name)
        kind = app.kinds.get(claimed_item.kind)
        controllers = Controllers(kind, app.settings, app.store.latency, HostLoad(), slots=1, max_slots=1)
        call = Calls(app.store, kind, app.settings, controllers).call(claimed_item)
    except StoreUnavailable as error:
        raise NotStarted(error.message) from error
    except Exception as error:
        raise AppNotLoaded(f"{type(error).__name__}: {error}") from error
    return call.function(call.argument)
