"""A site with pages, and a server with the recipes application that may fetch from it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest

from penstock import Penstock, Settings
from penstock_apps.recipes.application import recipes as recipes_application
from penstock_apps.recipes.events import Results
from penstock_apps.recipes.service import Recipes
from penstock_apps.recipes.settings import RecipeSettings
from tests.applications.recipes.site import Site, open_site
from tests.http.conftest import Served, serving, settings

__all__ = ["settings"]


@dataclass
class Kitchen:
    """Everything a test of recipes needs."""

    app: Penstock
    recipes: Recipes
    results: Results
    served: Served
    site: Site


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """A site that may be fetched from."""
    with open_site() as one:
        monkeypatch.setenv("PENSTOCK_FETCH_ALLOW_HOSTS", one.host)
        yield one


@pytest.fixture
def recipe_settings() -> RecipeSettings:
    """A test that wants others overrides this."""
    return RecipeSettings()


@pytest.fixture
def kitchen(settings: Settings, site: Site, recipe_settings: RecipeSettings) -> Iterator[Kitchen]:
    """The application on each database, with a worker."""
    with open_kitchen(settings, site, recipe_settings) as one:
        yield one


@contextmanager
def open_kitchen(settings: Settings, site: Site, recipe_settings: RecipeSettings) -> Iterator[Kitchen]:
    """The application with a server and a worker, for the length of a ``with`` block."""
    app = Penstock(settings=settings.model_copy(update={"sweep_seconds": 600.0}))  # tests sweep when they want to
    recipes = app.install(replace(recipes_application, install=Recipes), recipe_settings)
    results = Results(app, recipes)
    app.system.migrate()
    with serving(app, worker=True) as served:
        yield Kitchen(app, recipes, results, served, site)
    app.close()
