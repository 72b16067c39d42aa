"""Pages of 100 kB as sites have them: one recipe among menus, scripts, pictures and what readers say below it."""

from __future__ import annotations

import json

ADDRESS = "https://kitchen.example/soup"
SIZE = 100_000
_INGREDIENTS = [
    "2 tbsp olive oil", "1 ½ cups chopped tomatoes (400 g)", "3 cloves garlic, crushed", "1 onion, finely chopped",
    "750 ml vegetable stock", "1-2 tsp sugar", "a handful of basil leaves", "100 g cream", "Salt, to taste",
    "½ tsp black pepper", "4 slices bread", "1 bay leaf",
]  # fmt: skip
_STEPS = [
    "Warm the oil in a large pan over a medium heat, and fry the onion for five minutes until it is soft.",
    "Add the garlic and the bay leaf, and stir for a minute.",
    "Add the tomatoes, the stock and the sugar, bring it to the boil, and simmer for twenty minutes.",
    "Take out the bay leaf, blend the soup until it is smooth, and stir in the cream.",
    "Serve it hot with basil and toasted bread.",
]
_MENU = "".join(
    f'<li class="menu-item menu-item-{number}"><a href="/section/{number}" title="Section {number}">'
    f'<span class="label">Section {number}</span></a></li>'
    for number in range(60)
)
_SCRIPT = (
    "<script>window.settings = {" + ",".join(f'"key{one}": [{one}, "v{one}"]' for one in range(800)) + "};</script>"
)
_COMMENT = """<li class="comment depth-{depth}" id="comment-{number}"><div class="comment-body">
<div class="comment-author vcard"><img class="avatar" alt="" src="/avatars/{number}.png" width="48" height="48">
<b class="name">Reader {number}</b> <span class="says">says:</span></div>
<time class="when" datetime="2026-01-02">2 January</time>
<p>I made this last night &amp; everybody asked for more. I had no basil, so I took <em>parsley</em>; it works.</p>
<p>Next time with a little more garlic.<br>Thank you!</p>
<a class="reply" rel="nofollow" href="?reply={number}#respond">Reply</a></div></li>
"""


def json_ld() -> str:
    """The recipe in a script of the head."""
    node = {
        "@context": "https://schema.org", "@type": "Recipe", "name": "Tomato soup", "description": "Red and warm.",
        "recipeIngredient": _INGREDIENTS, "recipeInstructions": [{"@type": "HowToStep", "text": one} for one in _STEPS],
        "recipeYield": "Serves 4", "prepTime": "PT10M", "cookTime": "PT35M", "totalTime": "PT45M",
        "image": "/pictures/soup.jpg", "keywords": "soup, winter", "author": {"@type": "Person", "name": "A cook"},
    }  # fmt: skip
    listed = _listed("", "")
    return _page(f'<script type="application/ld+json">{json.dumps(node)}</script>', f"<article>{listed}</article>")


def microdata() -> str:
    """The recipe in the attributes of its elements, the comments inside of it as many themes have them."""
    return _marked(
        "itemprop", 'itemscope itemtype="https://schema.org/Recipe"', 'itemscope itemtype="https://schema.org/Person"'
    )


def rdfa() -> str:
    """The same by the attributes of RDFa."""
    return _marked("property", 'vocab="https://schema.org/" typeof="Recipe"', 'typeof="Person"')


PAGES = {"JSON-LD": json_ld, "microdata": microdata, "RDFa": rdfa}


def _marked(name: str, thing: str, person: str) -> str:
    facts = (
        f'<h1 {name}="name">Tomato soup</h1><p {name}="description">Red and warm.</p>'
        f'<span {name}="author" {person}><b {name}="name">A cook</b></span><span {name}="recipeYield">Serves 4</span>'
        f'<meta {name}="prepTime" content="PT10M"><meta {name}="cookTime" content="PT35M">'
        f'<meta {name}="totalTime" content="PT45M"><img {name}="image" src="/pictures/soup.jpg">'
        f'<span {name}="keywords">soup, winter</span>'
    )
    listed = _listed(f' {name}="recipeIngredient"', f' {name}="recipeInstructions"')
    return _page("", f"<article {thing}>{facts}{listed}", "</article>")


def _listed(ingredient: str, steps: str) -> str:
    ingredients = "".join(f"<li{ingredient}>{one}</li>" for one in _INGREDIENTS)
    return f"<ul>{ingredients}</ul><div{steps}><ol>{''.join(f'<li>{one}</li>' for one in _STEPS)}</ol></div>"


def _page(head: str, article: str, end: str = "") -> str:
    """Comments until the page has its size."""
    before = (
        f"<!doctype html><html lang=en><head><title>Tomato soup</title>{_SCRIPT}{head}</head><body>"
        f"<!-- the menu --><nav><ul>{_MENU}</ul></nav><main>{article}<section id=comments><ol>"
    )
    after = f"</ol></section>{end}</main><footer><nav><ul>{_MENU}</ul></nav></footer></body></html>"
    comments: list[str] = []
    missing = SIZE - len(before) - len(after)
    while missing > 0:
        comments.append(_COMMENT.format(number=len(comments), depth=len(comments) % 3))
        missing -= len(comments[-1])
    return before + "".join(comments) + after
