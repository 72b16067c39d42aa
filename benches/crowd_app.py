"""What is served while a hostile crowd is there: recipes, documents, products, and a kind that does nothing."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from benches.workload import KIND, RESULT
from penstock import Penstock, Settings
from penstock_apps.documents.application import documents as documents_application
from penstock_apps.documents.settings import DocumentSettings
from penstock_apps.products.application import products as products_application
from penstock_apps.products.settings import ProductSettings
from penstock_apps.recipes.application import recipes as recipes_application
from penstock_apps.recipes.settings import RecipeSettings


class Number(BaseModel):
    """The params of a job."""

    n: int


class Noop:
    """Nothing."""

    params_schema = Number

    async def process(self, _item: Any) -> dict[str, str]:
        """The result."""
        return RESULT


def build(settings: Settings) -> Penstock:
    """The application on a database."""
    app = Penstock(settings=settings)
    app.install(recipes_application, RecipeSettings())
    app.install(documents_application, DocumentSettings())
    app.install(products_application, ProductSettings())
    app.kind(KIND)(Noop)
    return app


# The user who works makes more requests than a person would.
app = build(Settings(submissions_per_minute=100_000))
