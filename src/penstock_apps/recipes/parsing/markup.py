"""Finding a recipe in a page's elements: microdata, RDFa, the h-recipe classes, and headings that say what follows."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lxml import html
from lxml.etree import ParserError

from penstock.lifecycle import JSON
from penstock_apps.recipes.parsing.ingredients import read_ingredient
from penstock_apps.recipes.parsing.recipe import ParsedRecipe
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
    types = [type_ for type_ in tree.xpath(f"//@{words.type}") if is_recipe({"@type": type_.split()})]
    if not types:
        return []
    properties = _properties(tree, words)
    return [_node(type_.getparent(), words, properties, 0) for type_ in types]


def _properties(tree: html.HtmlElement, words: Words) -> Properties:
    """The elements that are properties, by the thing they are of: the nearest around them.

    Pages have thousands of elements and few properties. Asking the tree for those, once, is several times as fast as
    a walk through all elements; and each element around them is looked at once, however deep they are.
    """
    owners: dict[html.HtmlElement, html.HtmlElement | None] = {}
    properties: Properties = {}
    for attribute in tree.xpath(f"//@{words.property}"):
        element = attribute.getparent()
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
        value: JSON = None
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
    inner = [item for item in items if not item.xpath(".//li | .//p")]
    texts = [plain(item.text_content()) for item in inner] if inner else [plain(element.text_content())]
    return [text for text in texts if text]


def microformat(tree: html.HtmlElement) -> ParsedRecipe | None:
    """A recipe by the classes of h-recipe or hrecipe."""
    elements = tree.xpath("//*[contains(concat(' ', normalize-space(@class), ' '), ' h-recipe ') or "
                          "contains(concat(' ', normalize-space(@class), ' '), ' hrecipe ')]")  # fmt: skip
    if not elements:
        return None
    element = elements[0]
    title = _by_class(element, "p-name", "fn")
    steps = [text for part in _having(element, "e-instructions", "instructions") for text in _blocks(part)]
    ingredients = _by_class(element, "p-ingredient", "ingredient")
    return ParsedRecipe(
        title[0] if title else "", ingredients=[read_ingredient(text) for text in ingredients], steps=steps
    )


def _by_class(element: html.HtmlElement, *classes: str) -> list[str]:
    return [text for part in _having(element, *classes) if (text := plain(part.text_content()))]


def _having(element: html.HtmlElement, *classes: str) -> list[html.HtmlElement]:
    for name in classes:
        elements = element.xpath(f".//*[contains(concat(' ', normalize-space(@class), ' '), ' {name} ')]")
        if elements:
            return list(elements)
    return []


def by_headings(tree: html.HtmlElement) -> ParsedRecipe | None:
    """A page without any marks: the lists behind the headings that say ingredients, and instructions."""
    ingredients, steps = _list_behind(tree, _INGREDIENTS), _list_behind(tree, _STEPS)
    if not ingredients or not steps:
        return None
    titles = [plain(heading.text_content()) for heading in tree.xpath("//h1")]
    titles += [plain(content) for content in tree.xpath("//meta[@property='og:title']/@content")]
    titles += [plain(element.text_content()) for element in tree.xpath("//title")]
    title = next((text for text in titles if text), "")
    return ParsedRecipe(title[:500], ingredients=[read_ingredient(line) for line in ingredients], steps=steps)


def _list_behind(tree: html.HtmlElement, says: re.Pattern[str]) -> list[str]:
    for heading in tree.xpath("//h1 | //h2 | //h3 | //h4 | //h5 | //strong | //b"):
        text = heading.text_content() or ""
        if len(text) > 60 or not says.match(text):
            continue
        behind = heading.xpath("following::*[self::ul or self::ol][1]")
        if behind:
            return [line for item in behind[0].xpath(".//li") if (line := plain(item.text_content()))]
    return []
