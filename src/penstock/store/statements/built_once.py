"""Building each statement once: it takes longer to put one together than to run it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Statement = TypeVar("Statement")


def built_once(build: Callable[Arguments, Statement]) -> Callable[Arguments, Statement]:
    """Keep what ``build`` answers for each combination of arguments; values go in as parameters, so these are few."""
    return cache(build)  # type: ignore[return-value]
