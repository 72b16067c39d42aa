"""Pages as sites really write them: each says the same soup in its own way, or something that is nearly a recipe."""

from __future__ import annotations

import json
from typing import Any

ADDRESS = "https://kitchen.example/soup"
SOUP: dict[str, Any] = {
    "@context": "https://schema.org",
    "@type": "Recipe",
    "name": "Tomato soup",
    "description": "Red &amp; warm.",
    "recipeIngredient": ["2 tbsp olive oil", "1 ½ cups chopped tomatoes (400 g)", "Salt, to taste"],
    "recipeInstructions": ["Warm the oil.", "Add the tomatoes and simmer."],
    "recipeYield": "Serves 4",
    "prepTime": "PT10M",
    "cookTime": "PT1H5M",
    "totalTime": "P0DT1H15M",
    "image": "/pictures/soup.jpg",
    "keywords": "soup, Winter, soup",
    "recipeCuisine": "Italian",
    "author": {"@type": "Person", "name": "A cook"},
}
STEPS = ["Warm the oil.", "Add the tomatoes and simmer."]


def script(value: Any, *, kind: str = 'type="application/ld+json"') -> str:
    """A page with a script in its head."""
    text = value if isinstance(value, str) else json.dumps(value)
    return (
        f"<!doctype html><html><head><title>Soup</title><script {kind}>{text}</script></head><body>Hello</body></html>"
    )


def soup(**changes: Any) -> dict[str, Any]:
    """The soup with something else about it."""
    return {**SOUP, **changes}


PAGES: dict[str, str] = {
    "plain": script(SOUP),
    "in a graph": script({"@context": "https://schema.org", "@graph": [{"@type": "WebSite", "name": "Kitchen"}, SOUP]}),
    "in an array": script([{"@type": "BreadcrumbList"}, SOUP]),
    "a list of types": script(soup(**{"@type": ["Recipe", "NewsArticle"]})),
    "a type with its address": script(soup(**{"@type": "http://schema.org/Recipe"})),
    "below another thing": script({"@type": "WebPage", "mainEntity": SOUP}),
    "odd quotes and case": script(SOUP, kind="TYPE='Application/LD+JSON' data-x=1"),
    "steps as things": script(soup(recipeInstructions=[{"@type": "HowToStep", "text": text} for text in STEPS])),
    "steps in sections": script(
        soup(
            recipeInstructions=[
                {
                    "@type": "HowToSection",
                    "name": "First",
                    "itemListElement": [{"@type": "HowToStep", "text": STEPS[0]}],
                },
                {"@type": "HowToSection", "name": "Then", "itemListElement": {"@type": "HowToStep", "text": STEPS[1]}},
            ]
        )
    ),
    "steps as a list of items": script(
        soup(
            recipeInstructions={
                "@type": "ItemList",
                "itemListElement": [
                    {"@type": "ListItem", "position": n, "item": {"text": t}} for n, t in enumerate(STEPS)
                ],
            }
        )
    ),
    "steps as marked text": script(soup(recipeInstructions=f"<ol><li>{STEPS[0]}</li><li>{STEPS[1]}</li></ol>")),
    "steps as numbered lines": script(soup(recipeInstructions=f"1. {STEPS[0]}\n2. {STEPS[1]}")),
    "yields as a list": script(soup(recipeYield=["4", "Serves 4"])),
    "images as things": script(
        soup(image=[{"@type": "ImageObject", "url": "https://kitchen.example/pictures/soup.jpg"}])
    ),
    "commas too many": script(json.dumps(SOUP).replace('"Salt, to taste"]', '"Salt, to taste",]')),
    "line ends inside texts": script(json.dumps(SOUP).replace("Add the tomatoes and", "Add the tomatoes\nand")),
    "inside a comment": script(f"<!-- {json.dumps(SOUP)} -->"),
    "escaped twice": script(soup(name="Tomato &amp;amp; soup")).replace("Tomato &amp;amp; soup", "Tomato soup"),
    "a broken script before": script("{not json").replace("</head>", script(SOUP) + "</head>"),
    "microdata": """
        <html><body><div itemscope itemtype="https://schema.org/Recipe">
        <h1 itemprop="name">Tomato soup</h1><meta itemprop="description" content="Red &amp; warm.">
        <ul><li itemprop="recipeIngredient">2 tbsp olive oil</li>
        <li itemprop="recipeIngredient">1 ½ cups chopped tomatoes (400 g)</li>
        <li itemprop="recipeIngredient">Salt, to taste</li></ul>
        <span itemprop="author" itemscope itemtype="https://schema.org/Person"><b itemprop="name">A cook</b></span>
        <span itemprop="recipeYield">Serves 4</span><time itemprop="prepTime" datetime="PT10M">10 min</time>
        <meta itemprop="cookTime" content="PT1H5M"><meta itemprop="totalTime" content="PT1H15M">
        <img itemprop="image" src="/pictures/soup.jpg"><span itemprop="keywords">soup, Winter</span>
        <span itemprop="recipeCuisine">Italian</span>
        <div itemprop="recipeInstructions"><ol><li>Warm the oil.</li><li>Add the tomatoes and simmer.</li></ol></div>
        </div></body></html>""",
    "rdfa": """
        <html><body vocab="https://schema.org/"><div typeof="Recipe">
        <h1 property="name">Tomato soup</h1><p property="description">Red &amp; warm.</p>
        <p property="recipeIngredient">2 tbsp olive oil</p>
        <p property="recipeIngredient">1 ½ cups chopped tomatoes (400 g)</p>
        <p property="recipeIngredient">Salt, to taste</p>
        <span property="author" typeof="Person"><b property="name">A cook</b></span>
        <span property="recipeYield">Serves 4</span><meta property="prepTime" content="PT10M">
        <meta property="cookTime" content="PT1H5M"><meta property="totalTime" content="PT1H15M">
        <img property="image" src="/pictures/soup.jpg"><span property="keywords">soup, Winter</span>
        <span property="recipeCuisine">Italian</span>
        <div property="recipeInstructions"><p>Warm the oil.</p><p>Add the tomatoes and simmer.</p></div>
        </div></body></html>""",
}
"""Pages that all say the same."""

H_RECIPE = """<html><body><article class="h-recipe"><h1 class="p-name">Tomato soup</h1>
<ul><li class="p-ingredient">2 tbsp olive oil</li><li class="p-ingredient">3 tomatoes</li></ul>
<div class="e-instructions"><ol><li>Warm the oil.</li><li>Simmer.</li></ol></div></article></body></html>"""
HEADINGS = """<html><head><title>Grandmother's</title></head><body><h1>Tomato soup</h1><h2>Ingredients:</h2>
<ul><li>2 tbsp olive oil</li><li>3 tomatoes</li></ul><h2>Method</h2><ol><li>Warm the oil.</li><li>Simmer.</li></ol>
</body></html>"""
SEVERAL = script([soup(name="A sauce", recipeIngredient=["1 onion"]), SOUP])
WITHOUT_STEPS = script(soup(recipeInstructions=[]))
NO_RECIPES = {
    "an article": script({"@type": "NewsArticle", "headline": "Soup is back"}),
    "an empty page": "<html><body></body></html>",
    "nothing": "",
    "a recipe without anything": script({"@type": "Recipe", "name": "Soup"}),
    "a very deep one": script("[" * 500 + "]" * 500),
    "types that are no types": script({"@type": {"a": 1}, "name": 3}),
}
