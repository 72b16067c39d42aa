"""The applications that ship with Penstock, each written against its public API alone.

``penstock_apps:app`` is what the command line and the workers use unless ``PENSTOCK_APP`` names another: a Penstock
with the kinds of every application. It is put together when it is first asked for, so that the processes in which
handlers run do not pay for a database they never touch.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi import APIRouter

    from penstock import Penstock, Settings
    from penstock_apps.catalogs.service import Catalogs
    from penstock_apps.documents.service import Documents
    from penstock_apps.products.service import Products
    from penstock_apps.recipes.service import Recipes


@dataclass(frozen=True, slots=True)
class Built:
    """The one Penstock of this process, and its applications."""

    app: Penstock
    documents: Documents
    catalogs: Catalogs | None
    """None where Pillow is not installed."""
    recipes: Recipes | None
    """None where lxml or httpx2 is not installed."""
    products: Products | None = None
    """None where httpx2, Pillow or zxing-cpp is not installed."""


@cache
def build() -> Built:
    """Put together what this process needs, once."""
    return assemble(None, os.environ)


def assemble(settings: Settings | None, environment: Mapping[str, str]) -> Built:
    """A Penstock with every application whose libraries are here, by the applications' own environment variables."""
    from penstock import Penstock
    from penstock_apps.documents.service import Documents, Limits

    app = Penstock(settings=settings)
    catalogs = None
    if "catalogs" not in missing_libraries():
        from penstock_apps.catalogs.service import Catalogs, CatalogSettings

        catalogs = Catalogs(app, CatalogSettings.from_environment(environment))
    recipes = None
    if "recipes" not in missing_libraries():
        from penstock_apps.recipes.events import Results
        from penstock_apps.recipes.service import Recipes, RecipeSettings

        recipes = Recipes(app, RecipeSettings.from_environment(environment))
        Results(app, recipes)
    products = None
    if "products" not in missing_libraries():
        from penstock_apps.products.service import Products, ProductSettings

        products = Products(app, ProductSettings.from_environment(environment), environment)
    return Built(app, Documents(app, Limits.from_environment(environment)), catalogs, recipes, products)


def missing_libraries() -> dict[str, str]:
    """The applications that lack a library here, and the extra that brings it."""
    needed = {
        "catalogs": ("PIL",),
        "documents": ("cryptography", "docx", "lxml", "pypdf"),
        "products": ("PIL", "h2", "httpx2", "zxingcpp"),
        "recipes": ("h2", "httpx2", "lxml"),
    }
    return {
        name: f"penstock[{name}]"
        for name, modules in needed.items()
        if any(importlib.util.find_spec(module) is None for module in modules)
    }


def routes_of_all(built: Built) -> list[APIRouter]:
    """The addresses of every application."""
    from penstock_apps.documents.routes import routes_of

    routes = [routes_of(built.documents)]
    if built.catalogs is not None:
        from penstock_apps.catalogs.routes import routes_of as routes_of_catalogs

        routes.append(routes_of_catalogs(built.catalogs))
    if built.recipes is not None:
        from penstock_apps.recipes.routes import routes_of as routes_of_recipes

        routes.append(routes_of_recipes(built.recipes))
    if built.products is not None:
        from penstock_apps.products.routes import routes_of as routes_of_products

        routes.append(routes_of_products(built.products))
    return routes


def __getattr__(name: str) -> object:
    match name:
        case "app":
            return build().app
        case "documents_app":
            return build().documents
        case "routes":
            return routes_of_all(build())
        case _:
            raise AttributeError(f"module 'penstock_apps' has no attribute {name!r}")
