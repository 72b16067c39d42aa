"""Building each statement once, under a name: it takes longer to put one together than to run it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

from sqlalchemy import Executable

Arguments = ParamSpec("Arguments")
Statement = TypeVar("Statement", bound=Executable)
_NAME = "penstock_name"


def built_once(build: Callable[Arguments, Statement]) -> Callable[Arguments, Statement]:
    """Keep what ``build`` answers for each combination of arguments; values go in as parameters, so these are few.

    The statement is named like the query that it is built for: ``_claim_items`` builds what ``claim_items`` runs. It
    keeps its name when others are joined to it.
    """

    @wraps(build)
    def build_named(*arguments: Arguments.args, **options: Arguments.kwargs) -> Statement:
        return build(*arguments, **options).execution_options(**{_NAME: build.__name__.lstrip("_")})

    return cache(build_named)  # type: ignore[return-value]


def name_of(statement: Any) -> str:
    """What a statement is called; "unnamed" for one that was not built here.

    >>> from sqlalchemy import select, text
    >>> @built_once
    ... def _everything(): return select(text("*"))
    >>> name_of(_everything()), name_of(select(1))
    ('everything', 'unnamed')
    """
    name: str = statement.get_execution_options().get(_NAME, "unnamed")
    return name
