"""Finding schema.org's words as JSON-LD, also where the JSON is not quite JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice

import orjson

from penstock.lifecycle import JSON
from penstock_apps.recipes.parsing.schema_org import Node, recipes_in
from penstock_apps.recipes.parsing.texts import unescape

STRATEGY = "schema_org_json_ld"
_OPENING = re.compile(r"<script\b([^<>]{0,1000}+)>", re.IGNORECASE)
_TYPE = re.compile(r"""type\s*+=\s*+["']?\s*+application/ld\+json\b""", re.IGNORECASE)
_CLOSING = re.compile(r"</script\s*+>", re.IGNORECASE)
_BEFORE = re.compile(r"<!--|(?:/\*\s*+)?<!\[CDATA\[(?:\s*+\*/)?|//\s*+<!\[CDATA\[")
"""What was put around scripts for browsers that knew none."""
_TRAILING_COMMA = re.compile(r",(\s*+[\]}])")
_MAX_SCRIPTS = 50


def recipe_nodes(page: str) -> tuple[list[Node], bool]:
    """The recipes of a page's scripts, and whether one of the scripts could not be read."""
    nodes: list[Node] = []
    unread = False
    for script in islice(_scripts(page), _MAX_SCRIPTS):
        value = read_json(script)
        unread = unread or value is None
        nodes += recipes_in(value)
    return nodes, unread


def _scripts(page: str) -> Iterator[str]:
    """The scripts of JSON-LD; behind one that never ends there is no other."""
    position = 0
    while (opening := _OPENING.search(page, position)) is not None:
        position = opening.end()
        if _TYPE.search(opening[1]) is None:
            continue
        closing = _CLOSING.search(page, position)
        if closing is None:
            return
        yield page[position : closing.start()]
        position = closing.end()


def read_json(text: str) -> JSON:
    """A script's value; None where nothing helps. What people get wrong most is put right."""
    text = text.strip()
    try:
        return orjson.loads(text)
    except ValueError:
        pass
    text = _unwrap(_unwrap(text)).rstrip(";")
    for candidate in (text, _TRAILING_COMMA.sub(r"\1", text), _TRAILING_COMMA.sub(r"\1", unescape(text))):
        try:
            return json.loads(candidate, strict=False)  # raw line ends and tabs inside of texts
        except (ValueError, RecursionError):
            continue
    return None


def _unwrap(text: str) -> str:
    """Without one layer of what is around a script."""
    before = _BEFORE.match(text)
    text = (text if before is None else text[before.end() :]).strip()
    if text.endswith("-->"):
        return text.removesuffix("-->").rstrip()
    inside = text.removesuffix("*/").rstrip()
    # JSON ends with neither of them: they begin the comment that the mark stands in.
    return inside.removesuffix("]]>").rstrip().rstrip("/*").rstrip() if inside.endswith("]]>") else text
