"""The applications that ship with Penstock, each written against its public API alone.

``penstock_apps:app`` is what the command line and the workers use unless ``PENSTOCK_APP`` names another: a Penstock
with the kinds of every application. It is put together when it is first asked for, so that the processes in which
handlers run do not pay for a database they never touch.
"""

from __future__ import annotations

import importlib.util
import os
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock import Penstock
    from penstock_apps.documents.service import Documents


@cache
def build() -> tuple[Penstock, Documents]:
    """The one Penstock of this process, with its applications."""
    from penstock import Penstock
    from penstock_apps.documents.service import Documents, Limits

    app = Penstock()
    return app, Documents(app, Limits.from_environment(dict(os.environ)))


def missing_libraries() -> dict[str, str]:
    """The applications that lack a library here, and the extra that brings it."""
    needed = {"documents": ("cryptography", "docx", "lxml", "pypdf")}
    return {
        name: f"penstock[{name}]"
        for name, modules in needed.items()
        if any(importlib.util.find_spec(module) is None for module in modules)
    }


def __getattr__(name: str) -> object:
    if name == "app":
        return build()[0]
    if name == "documents_app":
        return build()[1]
    if name == "routes":
        from penstock_apps.documents.routes import routes_of

        return [routes_of(build()[1])]
    raise AttributeError(f"module 'penstock_apps' has no attribute {name!r}")
