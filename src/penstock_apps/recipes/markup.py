"""Finding a recipe in a page's elements: microdata, RDFa, the h-recipe classes, and headings that say what follows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lxml import html
from lxml.etree import ParserError

from penstock_apps.recipes.ingredients import understood
from penstock_apps.recipes.parsed import ParsedRecipe
from penstock_apps.recipes.schema_org import Node, is_recipe
from penstock_apps.recipes.texts import plain

_DEEPEST = 8
_INGREDIENTS = re.compile(r"^\s*(?:the\s+)?ingredients?\b", re.IGNORECASE)
_STEPS = re.compile(r"^\s*(?:instructions?|directions?|method|preparation|steps?)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Words:
    """The attributes that mark a thing, its type and its properties."""

    strategy: str
    thing: str
    type: str
    property: str


MICRODATA = Words("schema_org_microdata", "itemscope", "itemtype", "itemprop")
RDFA = Words("schema_org_rdfa", "typeof", "typeof", "property")


def tree_of(page: str) -> html.HtmlElement | None:
    """The page as a tree; None where there is nothing to make one of."""
    try:
        return html.document_fromstring(page)
    except (ParserError, ValueError):
        # An encoding in an XML declaration is refused in text that is decoded already.
        try:
            return html.document_fromstring(re.sub(r"^\s*<\?xml[^>]*\?>", "", page))
        except (ParserError, ValueError):
            return None


def recipe_nodes(tree: html.HtmlElement, words: Words) -> list[Node]:
    """Recipes that the elements' attributes tell of, in the shape JSON-LD has."""
    things = tree.xpath(f"//*[contains(@{words.type}, 'Recipe')]")
    return [node for one in things if is_recipe(node := _node(one, words, 0))]


def _node(element: html.HtmlElement, words: Words, depth: int) -> Node:
    node: Node = {"@type": element.get(words.type, "").split()}
    if depth < _DEEPEST:
        for name, value in _properties(element, words, depth):
            node.setdefault(name, []).append(value)
    return node


def _properties(element: html.HtmlElement, words: Words, depth: int) -> Iterator[tuple[str, Any]]:
    for child in element.iterchildren(tag=html.etree.Element):
        names = [one.rpartition(":")[2] for one in child.get(words.property, "").split()]
        is_thing = child.get(words.thing) is not None
        if names:
            value = _node(child, words, depth + 1) if is_thing else _value(child)
            if is_thing and len(value) == 1:
                value = _value(child)
            yield from ((name, value) for name in names)
        if not is_thing:
            yield from _properties(child, words, depth)


def _value(element: html.HtmlElement) -> str:
    """What an element stands for: the value of the attribute that has it, or its text."""
    for attribute in ("content", "datetime"):
        if element.get(attribute) is not None:
            return str(element.get(attribute))
    match element.tag:
        case "meta":
            return str(element.get("content", ""))
        case "img" | "source" | "embed" | "iframe" | "video" | "audio":
            return str(element.get("src", ""))
        case "a" | "link" if not (element.text_content() or "").strip():
            return str(element.get("href", ""))
        case _:
            # Blocks end lines: steps that are items of a list stay apart.
            return "\n".join(_blocks(element))


def _blocks(element: html.HtmlElement) -> list[str]:
    items = element.xpath(".//li | .//p")
    inner = [one for one in items if not one.xpath(".//li | .//p")]
    texts = [plain(one.text_content()) for one in inner] if inner else [plain(element.text_content())]
    return [one for one in texts if one]


def microformat(tree: html.HtmlElement) -> ParsedRecipe | None:
    """A recipe by the classes of h-recipe or hrecipe."""
    found = tree.xpath("//*[contains(concat(' ', normalize-space(@class), ' '), ' h-recipe ') or "
                       "contains(concat(' ', normalize-space(@class), ' '), ' hrecipe ')]")  # fmt: skip
    if not found:
        return None
    one = found[0]
    title = _by_class(one, "p-name", "fn")
    steps = [text for part in _having(one, "e-instructions", "instructions") for text in _blocks(part)]
    ingredients = _by_class(one, "p-ingredient", "ingredient")
    return ParsedRecipe(title[0] if title else "", ingredients=[understood(text) for text in ingredients], steps=steps)


def _by_class(element: html.HtmlElement, *classes: str) -> list[str]:
    return [text for one in _having(element, *classes) if (text := plain(one.text_content()))]


def _having(element: html.HtmlElement, *classes: str) -> list[html.HtmlElement]:
    for name in classes:
        found = element.xpath(f".//*[contains(concat(' ', normalize-space(@class), ' '), ' {name} ')]")
        if found:
            return list(found)
    return []


def by_headings(tree: html.HtmlElement) -> ParsedRecipe | None:
    """A page without any marks: the lists behind the headings that say ingredients, and instructions."""
    ingredients, steps = _list_behind(tree, _INGREDIENTS), _list_behind(tree, _STEPS)
    if not ingredients or not steps:
        return None
    titles = [plain(one.text_content()) for one in tree.xpath("//h1")]
    titles += [plain(one) for one in tree.xpath("//meta[@property='og:title']/@content")]
    titles += [plain(one.text_content()) for one in tree.xpath("//title")]
    title = next((one for one in titles if one), "")
    return ParsedRecipe(title[:500], ingredients=[understood(one) for one in ingredients], steps=steps)


def _list_behind(tree: html.HtmlElement, says: re.Pattern[str]) -> list[str]:
    for heading in tree.xpath("//h1 | //h2 | //h3 | //h4 | //h5 | //strong | //b"):
        text = heading.text_content() or ""
        if len(text) > 60 or not says.match(text):
            continue
        behind = heading.xpath("following::*[self::ul or self::ol][1]")
        if behind:
            return [one for item in behind[0].xpath(".//li") if (one := plain(item.text_content()))]
    return []
