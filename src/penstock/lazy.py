"""Public names that are loaded when they are first used.

A package's ``__init__`` names what is public in it and where each name is at home. Importing the package, or a module
below it, loads none of them: a process that only needs an error class does not pay for a database, and modules below
may import each other.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping


def lazy_names(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package; ``homes`` has the names of each module, with spaces between."""
    module_of = {name: module for module, names in homes.items() for name in names.split()}

    def get(name: str) -> object:
        try:
            module = module_of[name]
        except KeyError:
            raise AttributeError(f"module {package!r} has no attribute {name!r}") from None
        return getattr(importlib.import_module(module), name)

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *module_of})

    return get, names
