"""A kind: how one type of job is planned, processed and finalized, and under which policy."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import ConfigurationError, KindUnknown
from penstock.lifecycle.bounds import require_kind_name
from penstock.lifecycle.intake import Intake
from penstock.lifecycle.policy import Policy, RunsIn
from penstock.lifecycle.states import ItemRole
from penstock.lifecycle.vocabularies import Vocabulary

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
    summary: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """What tells people which item it is, beside its title: a name, and the members of the input that may hold it."""
    gauges: Callable[[], Any] | None = None
    """Figures of its own (a provider's throttle rate), which are sampled with those of its workers."""
    words: Vocabulary | None = None
    """The words in which the command line shows its jobs' states."""
    describe: Callable[[Any], str] | None = None
    """A result in a few words, for people."""
    params_schema: type[Any] | None = None
    """What its params look like; a kind that says so may be submitted at ``POST /api/kinds/{kind}/jobs``."""
    intake: Intake | None = None
    """Makes jobs of files; a kind that has one takes uploads at ``POST /api/jobs`` and files at the command line."""

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
            summary=tuple(getattr(steps, "summary", {}).items()),
            gauges=getattr(steps, "gauges", None),
            words=getattr(steps, "words", None),
            describe=getattr(steps, "describe", None),
            params_schema=getattr(steps, "params_schema", None),
            intake=getattr(steps, "intake", None),
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
    absent: dict[str, str] = field(default_factory=dict)
    """Kinds of applications that are not here, and why they are not."""

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
            if name in self.absent:
                raise KindUnknown(f"there is no kind {name!r} here: {self.absent[name]}") from None
            known = ", ".join(sorted(self._by_name)) or "none"
            raise KindUnknown(f"no kind {name!r} is registered here; known: {known}") from None

    def gauges(self) -> Mapping[str, Callable[[], Any]]:
        """What reads the figures of each kind that has some."""
        return {kind.name: kind.gauges for kind in self if kind.gauges is not None}

    def summary(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The summaries of all kinds together: a list of what waits shows items of several."""
        return tuple(dict.fromkeys(member for kind in self for member in kind.summary))

    def __iter__(self) -> Iterator[Kind]:
        return iter(tuple(self._by_name.values()))

    def __contains__(self, name: str) -> bool:
        return name in self._by_name
