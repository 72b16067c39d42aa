"""Finding schema.org's words as JSON-LD, also where the JSON is not quite JSON."""

from __future__ import annotations

import html
import json
import re

import orjson

from penstock.lifecycle import JSON
from penstock_apps.recipes.parsing.schema_org import Node, recipes_in

STRATEGY = "schema_org_json_ld"
_SCRIPT = re.compile(
    r"""<script\b[^>]{0,500}?type\s*=\s*["']?\s*application/ld\+json\b[^>]{0,500}>(.*?)</script\s*>""",
    re.IGNORECASE | re.DOTALL,
)
_WRAPPING = re.compile(
    r"^\s*(?:<!--|/\*\s*<!\[CDATA\[\s*\*/|//\s*<!\[CDATA\[|<!\[CDATA\[)|(?:-->|/?/?\*?\s*\]\]>\s*(?:\*/)?)\s*$"
)
_TRAILING_COMMA = re.compile(r",(\s*[\]}])")
_MAX_SCRIPTS = 50


def recipe_nodes(page: str) -> tuple[list[Node], bool]:
    """The recipes of a page's scripts, and whether one of the scripts could not be read."""
    nodes: list[Node] = []
    unread = False
    for number, script in enumerate(_SCRIPT.finditer(page)):
        if number >= _MAX_SCRIPTS:
            break
        value = read_json(script[1])
        unread = unread or value is None
        nodes += recipes_in(value)
    return nodes, unread


def read_json(text: str) -> JSON:
    """A script's value; None where nothing helps. What people get wrong most is put right."""
    text = text.strip()
    try:
        return orjson.loads(text)
    except ValueError:
        pass
    text = _WRAPPING.sub("", _WRAPPING.sub("", text)).strip().rstrip(";")
    for candidate in (text, _TRAILING_COMMA.sub(r"\1", text), _TRAILING_COMMA.sub(r"\1", html.unescape(text))):
        try:
            return json.loads(candidate, strict=False)  # raw line ends and tabs inside of texts
        except (ValueError, RecursionError):
            continue
    return None
