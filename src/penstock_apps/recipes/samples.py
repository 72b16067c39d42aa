"""A small site on this machine to try the app with: two recipes, each written in its own way, and one without."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from uuid import UUID

import orjson

from penstock import JobState
from penstock.samples import SampleJob, Samples, Visitor
from penstock_apps.loopback import serve_locally
from penstock_apps.recipes.settings import RecipeSettings

_SOUP = {
    "@context": "https://schema.org",
    "@type": "Recipe",
    "name": "Miller's soup",
    "recipeIngredient": ["2 tbsp rye flour", "1 ½ l water", "3-4 potatoes, diced", "Salt, to taste"],
    "recipeInstructions": [
        {"@type": "HowToStep", "text": "Brown the flour in a dry pot."},
        {"@type": "HowToStep", "text": "Add the water slowly, then the potatoes, and simmer until they are soft."},
    ],
    "recipeYield": "Serves 4",
    "totalTime": "PT35M",
}
_BREAD = """<article itemscope itemtype="https://schema.org/Recipe"><h1 itemprop="name">Bread from the mill</h1>
<ul><li itemprop="recipeIngredient">500 g flour</li><li itemprop="recipeIngredient">350 ml water</li>
<li itemprop="recipeIngredient">10 g salt</li><li itemprop="recipeIngredient">1 tsp yeast</li></ul>
<ol itemprop="recipeInstructions"><li>Mix everything and wait a night.</li><li>Bake for 45 minutes.</li></ol>
<meta itemprop="cookTime" content="PT45M"></article>"""
PAGES = {
    "/soup": f'<script type="application/ld+json">{orjson.dumps(_SOUP).decode()}</script><h1>Soup</h1>',
    "/bread": _BREAD,
    "/mill": "<h1>The mill</h1><p>It stands where the stream leaves the hills. There is nothing to eat here.</p>",
}
WITHOUT_RECIPE = "/mill"


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        page = PAGES.get(self.path)
        body = f"<!doctype html><html><body>{page}</body></html>".encode() if page else b"there is no such page"
        self.send_response(200 if page else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def sample_site() -> Iterator[str]:
    """The site for the length of a ``with`` block; its host and port, which somebody has to allow."""
    with serve_locally(_Handler) as port:
        yield f"127.0.0.1:{port}"


class RecipeSamples(Samples):
    """Two pages with a recipe, and one without, on a site on this machine."""

    _site = ""

    @contextmanager
    def set_up(self, settings: RecipeSettings) -> Iterator[RecipeSettings]:
        """Open the site, on a port which this program may fetch from."""
        with sample_site() as self._site:
            yield settings.model_copy(update={"fetch_allow_hosts": (*settings.fetch_allow_hosts, self._site)})

    def submit(self, visitor: Visitor) -> Iterator[SampleJob]:
        """Ask for each page."""
        for path in PAGES:
            request = {"url": f"http://{self._site}{path}", "use_llm_fallback": False}
            job = UUID(visitor.send("/recipes/parse-url/async", request)["id"])
            if path == WITHOUT_RECIPE:
                yield SampleJob(job, f"recipe: {path}", JobState.FAILED, "NOT_A_RECIPE")
            else:
                yield SampleJob(job, f"recipe: {path}")
