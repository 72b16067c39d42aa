"""What is wrong with a handler is said when it is registered, with the place where it is written."""

from __future__ import annotations

import functools
import inspect
import pickle
from typing import Any

from penstock.errors import ConfigurationError


def place_of(definition: object) -> str:
    """Where a function, a class or an instance is written: ``shop.py:12``."""
    target: Any = definition
    while isinstance(target, functools.partial):
        target = target.func
    target = inspect.unwrap(getattr(target, "__func__", target))
    code = getattr(target, "__code__", None)
    if code is not None:
        return f"{code.co_filename}:{code.co_firstlineno}"
    of = target if inspect.isclass(target) else type(target)
    try:
        return f"{inspect.getsourcefile(of)}:{inspect.getsourcelines(of)[1]}"
    except (OSError, TypeError):
        return f"in {of.__module__}.{of.__qualname__}"


def require_handler(kind: str, step: str, handler: object, *, gives: str, may_take: int = 1) -> None:
    """Refuse a step that cannot be called with what it is given: one argument, or up to ``may_take``."""
    if not callable(handler):
        raise ConfigurationError(f"{step!r} of kind {kind!r} is {handler!r}, not a function ({place_of(handler)})")
    try:
        signature = inspect.signature(handler)
    except ValueError:
        return  # a builtin that does not say what it takes
    for count in range(1, may_take + 1):
        try:
            signature.bind(*range(count))
        except TypeError:
            continue
        return
    takes = "no argument" if not signature.parameters else f"({', '.join(signature.parameters)})"
    raise ConfigurationError(
        f"{step!r} of kind {kind!r} takes {takes}; it is called with {gives} ({place_of(handler)})"
    )


def require_importable(kind: str, handler: object) -> None:
    """Refuse a handler that another process cannot be given: it is found there by its name."""
    target: Any = handler
    values: list[object] = []
    while isinstance(target, functools.partial):
        values += [target.args, target.keywords]
        target = target.func
    owner = getattr(target, "__self__", None)
    if owner is not None and not inspect.ismodule(owner) and not inspect.isclass(owner):
        values.append(getattr(owner, "__dict__", {}))
        importable: Any = type(owner)
    else:
        importable = target
    name = getattr(importable, "__qualname__", type(importable).__qualname__)
    if "<" in name:  # <locals>, <lambda>
        raise ConfigurationError(
            f"kind {kind!r} runs in processes, and {name} cannot be imported there: write it at the top of its module "
            f"({place_of(target)})"
        )
    try:
        pickle.dumps(values)
    except Exception as error:  # noqa: BLE001 - whatever a value of the program raises
        raise ConfigurationError(
            f"kind {kind!r} runs in processes, and what {name} was given cannot be sent there ({error}) "
            f"({place_of(target)})"
        ) from None
