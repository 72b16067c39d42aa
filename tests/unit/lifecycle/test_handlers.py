"""A handler that could not run is refused when it is registered, with its place."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypedDict

import pytest

from penstock import ItemContext, JobContext, Kind, Penstock, Policy
from penstock.errors import ConfigurationError


def double(item: Any) -> int:
    """Twice the input."""
    return 2 * int(item.input)


def add(more: Any, item: Any) -> int:
    """The input and more."""
    return int(item.input) + int(more)


class Adder:
    """A class that needs something."""

    def __init__(self, more: Any) -> None:
        self.more = more

    def process(self, item: Any) -> int:
        """The input and more."""
        return int(item.input) + int(self.more)


class Planner:
    """A class that needs nothing."""

    columns = ("sum",)

    def plan(self, job: Any, after: int) -> Iterator[int]:
        """Three."""
        yield from range(after, 3)

    def process(self, item: Any) -> int:
        """The input."""
        return int(item.input)


def no_argument() -> None:
    """Takes nothing."""


class NoProcess:
    """Has no step."""


class BadPlan:
    """Its plan takes nothing."""

    def plan(self) -> None:
        """Takes nothing."""

    def process(self, item: Any) -> None:
        """Fine."""


class BadFinalize:
    """Its finalizer takes too much."""

    def process(self, item: Any) -> None:
        """Fine."""

    def finalize(self, job: Any, more: int) -> None:
        """Takes too much."""


def line_of(definition: Any) -> str:
    """Where it is written."""
    return f"{__file__}:{inspect.getsourcelines(definition)[1]}"


@pytest.mark.parametrize(
    ("definition", "words", "place"),
    [
        (no_argument, "'process' of kind 'k' takes no argument; it is called with the item", line_of(no_argument)),
        (lambda item, more: None, "'process' of kind 'k' takes (item, more)", f"{__file__}:"),
        (NoProcess, "kind 'k' has no method 'process'", line_of(NoProcess)),
        (NoProcess(), "kind 'k' has no method 'process'", line_of(NoProcess)),
        (BadPlan, "'plan' of kind 'k' takes no argument; it is called with the job", line_of(BadPlan.plan)),
        (BadFinalize, "'finalize' of kind 'k' takes (job, more)", line_of(BadFinalize.finalize)),
        (Adder, "needs arguments (missing a required argument: 'more'): register an instance", line_of(Adder)),
        (7, "kind 'k' has no method 'process'", "int"),
    ],
)
def test_it_is_refused_with_its_place(definition: Any, words: str, place: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Penstock("sqlite://").kind("k")(definition)
    assert words in refused.value.message
    assert place in refused.value.message


@pytest.fixture
def app() -> Iterator[Penstock]:
    """A Penstock that works, in memory."""
    app = Penstock("sqlite://")
    yield app
    app.close()


def test_a_decorator_without_a_name_is_refused() -> None:
    app: Any = Penstock("sqlite://")
    with pytest.raises(ConfigurationError) as refused:
        app.kind(double)
    assert "needs the kind's name: @app.kind('…')" in refused.value.message
    assert line_of(double) in refused.value.message


def test_a_second_kind_of_the_name_is_refused_with_its_place() -> None:
    app = Penstock("sqlite://")
    app.kind("k")(double)
    with pytest.raises(ConfigurationError) as refused:
        app.kind("k")(Planner)
    assert "registered twice" in refused.value.message
    assert f"{__file__}:" in refused.value.message


def test_functions_classes_and_instances(app: Penstock) -> None:
    assert app.kind("function")(double) is double
    assert app.kind("class")(Planner) is Planner
    app.kind("instance")(Adder(2))
    app.kind("partial")(functools.partial(add, 3))
    assert app.kinds.get("class").columns == ("sum",)
    jobs = {name: app.submit(name, 1).job.id for name in ("function", "instance", "partial")}
    planned = app.submit("class").job.id
    assert app.drain()
    assert {name: app.jobs.get(job).result for name, job in jobs.items()} == {
        "function": 2,
        "instance": 3,
        "partial": 4,
    }
    assert app.jobs.get(planned).progress.done == 3
    app.close()


def in_a_function() -> Callable[[Any], int]:
    """What another process cannot import."""

    def local(item: Any) -> int:
        return 1

    return local


@pytest.mark.parametrize(
    ("definition", "words"),
    [
        (in_a_function(), "in_a_function.<locals>.local cannot be imported there"),
        (lambda item: 1, "<lambda> cannot be imported there"),
        (functools.partial(in_a_function()), "cannot be imported there"),
        (Adder(threading.Lock()), "what Adder was given cannot be sent there"),
        (functools.partial(add, threading.Lock()), "what add was given cannot be sent there"),
        (type("Local", (Adder,), {"__qualname__": "f.<locals>.Local"})(1), "f.<locals>.Local cannot be imported"),
    ],
)
def test_what_runs_in_a_process_can_get_there(definition: Any, words: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Kind.of("k", definition, Policy(runs_in="processes"))
    assert words in refused.value.message
    assert f"{__file__}:" in refused.value.message or "Lock" in refused.value.message
    Kind.of("k", definition, Policy())  # elsewhere it is fine


@pytest.mark.parametrize("definition", [double, functools.partial(add, 3), Adder(2), Planner])
def test_what_may_run_in_a_process(definition: Any) -> None:
    Kind.of("k", definition, Policy(runs_in="processes"))


def test_rules_are_arguments_or_a_policy_and_not_both() -> None:
    app = Penstock("sqlite://")
    app.kind("a", policy=Policy(retries=1, timeout="5m"))(double)
    app.kind("b", retries=1, timeout="5m")(double)
    assert app.kinds.get("a").policy == app.kinds.get("b").policy
    with pytest.raises(ConfigurationError, match="kind 'c' has a policy already; retries"):
        app.kind("c", policy=Policy(), retries=1)
    with pytest.raises(ConfigurationError, match="a kind has no option 'retry'; there are retries, backoff"):
        app.kind("c", retry=1)  # type: ignore[call-arg]


class Page(TypedDict):
    """What a job is submitted with."""

    url: str


def test_a_kind_knows_its_types(app: Penstock) -> None:
    """For the type checker: the payloads are what the kind says."""

    class Read:
        def plan(self, job: JobContext[Page]) -> Iterator[str]:
            url: str = job.params["url"]
            yield url

        def process(self, item: ItemContext[Page, str]) -> int:
            return len(item.input) + len(item.params["url"])

        def finalize(self, job: JobContext[Page, int]) -> int:
            return sum(job.results())

    kind: Kind[Page, str, int] = Kind.of("read", Read(), Policy(retries=0))
    app.kinds.add(kind)
    job_id = app.submit(kind, Page(url="abc")).job.id
    assert app.drain()
    job = app.jobs.get(job_id)
    params: Page = kind.params(job)
    result: int | None = kind.result(job)
    assert (params, result) == ({"url": "abc"}, 6)
    other = Kind.of("other", double, Policy())
    with pytest.raises(ValueError, match="is of kind 'read', not 'other'"):
        other.params(job)
    app.close()
