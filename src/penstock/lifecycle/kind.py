"""A kind: how one type of job is planned, processed and finalized, and under which policy."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, cast

from penstock.errors import ConfigurationError, KindUnknown, LibraryMissing
from penstock.lifecycle.bounds import require_kind_name
from penstock.lifecycle.generic import Generic, Input, Params, Result
from penstock.lifecycle.handlers import place_of, require_handler, require_importable
from penstock.lifecycle.intake import Intake
from penstock.lifecycle.job import Job
from penstock.lifecycle.policy import Policy, RunsIn
from penstock.lifecycle.states import ItemRole
from penstock.lifecycle.vocabularies import Vocabulary

Handler = Callable[..., Any]
Classify = Callable[[BaseException], BaseException]


@dataclass(frozen=True, slots=True)
class Kind(Generic[Params, Input, Result]):
    """One type of job: its steps and its rules.

    ``Kind[Params, Input, Result]`` says what its jobs are submitted with, what its items hold and what comes of a job:
    the type checker then knows what :meth:`params` and :meth:`result` give, and what may be submitted.
    """

    name: str
    policy: Policy
    process: Handler
    plan: Handler | None = None
    finalize: Handler | None = None
    classify: Classify | None = None
    columns: tuple[str, ...] = ()
    """What grids and exports show of each item: members of its result, or of its canonical input until then."""
    number_columns: tuple[str, ...] = ()
    """Those of its columns whose texts are numbers, and are so in a workbook: amounts, but no article numbers."""
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
    def of(
        cls, name: str, definition: object, policy: Policy, classify: Classify | None = None
    ) -> Kind[Params, Input, Result]:
        """Read a kind from a function, or from a class or an instance with ``process`` and perhaps ``plan`` and
        ``finalize``; one that could not run is refused, with its place.
        """
        require_kind_name(name)
        steps = _instantiate(name, definition) if inspect.isclass(definition) else definition
        # A function of one step is its own process; everything else has steps.
        is_function = not inspect.isclass(definition) and not hasattr(definition, "process") and callable(definition)
        process = steps if is_function else getattr(steps, "process", None)
        if process is None:
            raise ConfigurationError(f"kind {name!r} has no method 'process' ({place_of(definition)})")
        plan, finalize = (None if is_function else getattr(steps, step, None) for step in ("plan", "finalize"))
        require_handler(name, "process", process, gives="the item")
        if plan is not None:
            require_handler(name, "plan", plan, gives="the job", may_take=2)
        if finalize is not None:
            require_handler(name, "finalize", finalize, gives="the job")
        if policy.runs_in is RunsIn.PROCESSES:
            require_importable(name, process)
        return cls(
            name,
            policy,
            cast("Handler", process),
            plan=plan,
            finalize=finalize,
            classify=classify or (None if is_function else getattr(steps, "classify", None)),
            **({} if is_function else _of_people(steps)),
        )

    def params(self, job: Job) -> Params:
        """What a job of this kind was submitted with."""
        self._require(job)
        return cast("Params", job.params)

    def result(self, job: Job) -> Result | None:
        """What came of a job of this kind; None until something did."""
        self._require(job)
        return cast("Result | None", job.result)

    def _require(self, job: Job) -> None:
        if job.kind != self.name:
            raise ValueError(f"job {job.id} is of kind {job.kind!r}, not {self.name!r}")

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


def _of_people(steps: object) -> dict[str, Any]:
    """What a class or an instance says of its items and jobs, for people."""
    return {
        "columns": tuple(getattr(steps, "columns", ())),
        "number_columns": tuple(getattr(steps, "number_columns", ())),
        "summary": tuple(getattr(steps, "summary", {}).items()),
        "gauges": getattr(steps, "gauges", None),
        "words": getattr(steps, "words", None),
        "describe": getattr(steps, "describe", None),
        "params_schema": getattr(steps, "params_schema", None),
        "intake": getattr(steps, "intake", None),
    }


def _instantiate(name: str, definition: type) -> object:
    """An instance of a class that needs nothing; one that needs something is registered as an instance."""
    try:
        inspect.signature(definition).bind()
    except TypeError as error:
        raise ConfigurationError(
            f"the class of kind {name!r} needs arguments ({error}): register an instance that has them, "
            f"app.kind({name!r})({definition.__name__}(…)) ({place_of(definition)})"
        ) from None
    except ValueError:  # a class without a signature that Python can tell
        pass
    return definition()


@dataclass(slots=True)
class Kinds:
    """The kinds one application knows, by name."""

    _by_name: dict[str, Kind] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    """Kinds of applications that are not here, and why they are not."""

    def add(self, kind: Kind[Params, Input, Result]) -> Kind[Params, Input, Result]:
        """Register a kind and answer with it; a second one of the same name is a mistake."""
        if kind.name in self._by_name:
            first, second = place_of(self._by_name[kind.name].process), place_of(kind.process)
            raise ConfigurationError(
                f"kind {kind.name!r} is registered twice, at {first} and at {second}: give one of them another name",
                code="KIND_REGISTERED_TWICE",
            )
        self._by_name[kind.name] = kind
        return kind

    def get(self, name: str) -> Kind:
        """The kind of that name."""
        kind = self._by_name.get(name)
        if kind is None:
            self.require_installed(name)
            known_names = ", ".join(sorted(self._by_name)) or "none"
            similar_names = get_close_matches(name, self._by_name, n=1)
            question = f"; did you mean {similar_names[0]!r}?" if similar_names else ""
            raise KindUnknown(f"no kind {name!r} is registered here{question} (known: {known_names})")
        return kind

    def require_installed(self, name: str) -> None:
        """Refuse a kind of an application that lacks a library, with the extra that brings it."""
        if name in self.absent:
            raise LibraryMissing(f"there is no kind {name!r} here: {self.absent[name]}")

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
