"""Finding a recipe in a page's elements: microdata, RDFa, the h-recipe classes, and headings that say what follows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from lxml import html
from lxml.etree import ParserError

from penstock_apps.recipes.parsing.ingredients import understood
from penstock_apps.recipes.parsing.parsed import ParsedRecipe
from penstock_apps.recipes.parsing.schema_org import Node, is_recipe
from penstock_apps.recipes.parsing.texts import plain

Properties = dict[html.HtmlElement, list[html.HtmlElement]]
_PARSER = html.HTMLParser(encoding="utf-8", collect_ids=False)
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
    # As bytes of an encoding that we name: quicker than text, and what the page says of its own encoding is not asked.
    try:
        return html.document_fromstring(page.encode("utf-8", "replace"), parser=_PARSER)
    except (ParserError, ValueError):
        return None


def recipe_nodes(tree: html.HtmlElement, words: Words) -> list[Node]:
    """Recipes that the elements' attributes tell of, in the shape JSON-LD has."""
    types = [one for one in tree.xpath(f"//@{words.type}") if is_recipe({"@type": one.split()})]
    if not types:
        return []
    properties = _properties(tree, words)
    return [_node(one.getparent(), words, properties, 0) for one in types]


def _properties(tree: html.HtmlElement, words: Words) -> Properties:
    """The elements that are properties, by the thing they are of: the nearest around them.

    Pages have thousands of elements and few properties. Asking the tree for those, once, is several times as fast as
    a walk through all elements; and each element around them is looked at once, however deep they are.
    """
    owners: dict[html.HtmlElement, html.HtmlElement | None] = {}
    properties: Properties = {}
    for found in tree.xpath(f"//@{words.property}"):
        element = found.getparent()
        path = []
        around = element.getparent()
        while around is not None and around not in owners:
            path.append(around)
            if around.get(words.thing) is not None or "Recipe" in around.get(words.type, ""):
                owners[around] = around
                break
            around = around.getparent()
        owner = None if around is None else owners[around]
        owners |= dict.fromkeys(path, owner)
        if owner is not None:
            properties.setdefault(owner, []).append(element)
    return properties


def _node(element: html.HtmlElement, words: Words, properties: Properties, depth: int) -> Node:
    node: Node = {"@type": element.get(words.type, "").split()}
    for child in properties.get(element, ()) if depth < _DEEPEST else ():
        value: Any = None
        if child.get(words.thing) is not None:
            value = _node(child, words, properties, depth + 1)
        if value is None or len(value) == 1:
            value = _value(child)
        for name in child.get(words.property).split():
            node.setdefault(name.rpartition(":")[2], []).append(value)
    return node


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
    items = element.xpath(".//li | .//p") if len(element) else ()
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
