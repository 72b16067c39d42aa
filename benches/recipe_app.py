"""What ``penstock serve`` serves in the bench of recipes: the recipes application on ``PENSTOCK_DATABASE_URL``."""

from __future__ import annotations

from penstock import Penstock, Settings
from penstock_apps.recipes.application import recipes as recipes_application
from penstock_apps.recipes.settings import RecipeSettings

# One client makes all of the load: the limit of requests is counted for each of them, and never reached.
app = Penstock(settings=Settings(submissions_per_minute=100_000_000))
app.install(recipes_application, RecipeSettings())
