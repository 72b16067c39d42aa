"""Recipes from the web: parse a page once for everybody, keep what people save, forget what they don't."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.application import Application, Migrations

if TYPE_CHECKING:
    from penstock_apps.recipes.service import Recipes

recipes: Application[Recipes] = Application(
    name="recipes",
    settings="penstock_apps.recipes.settings:RecipeSettings",
    migrations=Migrations("penstock_apps.recipes", head="0003"),
    install="penstock_apps.recipes.events:install",
    routes="penstock_apps.recipes.routes:routes_of",
    pages="penstock_apps.recipes.web:pages",
    commands="penstock_apps.recipes.commands:commands",
    samples="penstock_apps.recipes.samples:RecipeSamples",
    kinds=("recipe",),
    addresses=("/recipes", "/parse-requests", "/api/v1/recipes", "/ui/mailbox"),
    needs=("h2", "httpx2", "lxml"),
    extra="penstock[recipes]",
)
