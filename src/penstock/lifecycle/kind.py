"""A kind: how one type of job is planned, processed and finalized, and under which policy."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import ConfigurationError, KindUnknown
from penstock.lifecycle.bounds import require_kind_name
from penstock.lifecycle.policy import Policy, RunsIn
from penstock.lifecycle.states import ItemRole

Handler = Callable[..., Any]
Classify = Callable[[BaseException], BaseException]


@dataclass(frozen=True, slots=True)
class Kind:
    """One type of job: its steps and its rules."""

    name: str
    policy: Policy
    process: Handler
    plan: Handler | None = None
    finalize: Handler | None = None
    classify: Classify | None = None
    columns: tuple[str, ...] = ()
    """What grids and exports show of each item: members of its result, or of its canonical input until then."""

    @classmethod
    def of(cls, name: str, definition: Handler | type, policy: Policy, classify: Classify | None = None) -> Kind:
        """Read a kind from a plain function, or from a class with ``process`` and perhaps ``plan`` and ``finalize``."""
        require_kind_name(name)
        if not inspect.isclass(definition):
            return cls(name, policy, definition, classify=classify)
        steps = definition()
        process = getattr(steps, "process", None)
        if process is None:
            raise ConfigurationError(f"the class of kind {name!r} has no method 'process'")
        return cls(
            name,
            policy,
            process,
            plan=getattr(steps, "plan", None),
            finalize=getattr(steps, "finalize", None),
            classify=classify or getattr(steps, "classify", None),
            columns=tuple(getattr(steps, "columns", ())),
        )

    @property
    def single_step(self) -> bool:
        """Is a job of this kind one item and nothing else, unless it is given items?"""
        return self.plan is None and self.finalize is None

    def handler(self, role: ItemRole) -> Handler:
        """The step that runs an item of ``role``."""
        step = {ItemRole.PLAN: self.plan, ItemRole.ITEM: self.process, ItemRole.FINALIZE: self.finalize}[role]
        if step is None:
            raise KindUnknown(f"kind {self.name!r} has no {role.value} step any more, but a recorded job needs it")
        return step

    def runs_in(self, role: ItemRole) -> RunsIn:
        """Where the step runs: plan and finalize talk to the store, so never in another process."""
        if role is ItemRole.ITEM and self.policy.runs_in is not None:
            return self.policy.runs_in
        step = self.handler(role)
        is_async = inspect.iscoroutinefunction(step) or inspect.isasyncgenfunction(step)
        return RunsIn.EVENT_LOOP if is_async else RunsIn.THREADS


@dataclass(slots=True)
class Kinds:
    """The kinds one application knows, by name."""

    _by_name: dict[str, Kind] = field(default_factory=dict)

    def add(self, kind: Kind) -> None:
        """Register a kind; a second one of the same name is a mistake."""
        if kind.name in self._by_name:
            raise ConfigurationError(f"kind {kind.name!r} is registered twice")
        self._by_name[kind.name] = kind

    def get(self, name: str) -> Kind:
        """The kind of that name."""
        try:
            return self._by_name[name]
        except KeyError:
            known = ", ".join(sorted(self._by_name)) or "none"
            raise KindUnknown(f"no kind {name!r} is registered here; known: {known}") from None

    def __iter__(self) -> Iterator[Kind]:
        return iter(tuple(self._by_name.values()))

    def __contains__(self, name: str) -> bool:
        return name in self._by_name
