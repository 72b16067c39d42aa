"""What a language model is shown of a page, and what its answer says: both in a process with limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import orjson
from lxml import html
from lxml.etree import iterwalk

from penstock.lifecycle import JSON
from penstock_apps.recipes.parsing.markup import tree_of
from penstock_apps.recipes.parsing.recipe import ParsedRecipe
from penstock_apps.recipes.parsing.schema_org import read
from penstock_apps.recipes.parsing.texts import plain

_MAX_CHARACTERS = 24_000
_FENCE = "```"
_INVISIBLE = frozenset(("script", "style", "noscript", "svg", "template", "iframe"))


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What a model answered about the page at an address."""

    address: str
    body: bytes


def read_answer(answer: ModelAnswer) -> ParsedRecipe | None:
    """The recipe in a model's words; None where it sees none, or not a whole one."""
    node = _json_in(answer.body)
    if not isinstance(node, dict) or not node.get("name"):
        return None
    recipe = read(node, answer.address)
    return recipe if recipe.is_whole else None


def words_of(page: str) -> str:
    """What a person would read of a page."""
    tree = tree_of(page)
    if tree is None:
        return plain(page)[:_MAX_CHARACTERS]
    lines: list[str] = []
    room = _MAX_CHARACTERS
    for part in _visible_texts(tree):
        if text := plain(part):
            lines.append(text)
            room -= len(text) + 1
            if room < 0:
                break
    return "\n".join(lines)[:_MAX_CHARACTERS]


def _visible_texts(tree: html.HtmlElement) -> Iterator[str]:
    """The texts of a tree in their order, without those of elements that nobody sees."""
    walk = iterwalk(tree, events=("start", "end", "comment", "pi"))
    for event, element in walk:
        if event == "start" and element.tag in _INVISIBLE:
            walk.skip_subtree()
        elif event == "start":
            yield element.text or ""
        else:
            yield element.tail or ""


def _json_in(body: bytes) -> JSON:
    """The object in the model's words; None where there is none."""
    try:
        content = str(orjson.loads(body)["choices"][0]["message"]["content"])
        return orjson.loads(_inside_fences(content) or content[content.index("{") : content.rindex("}") + 1])
    except (ValueError, KeyError, IndexError, TypeError):
        return None


def _inside_fences(text: str) -> str | None:
    """What stands between the first two fences, which people and models put around code."""
    _, _, behind = text.partition(_FENCE)
    inside, fence, _ = behind.partition(_FENCE)
    return inside.removeprefix("json").strip() if fence else None
