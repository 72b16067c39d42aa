"""Finding a recipe in a page's elements: microdata, RDFa, the h-recipe classes, and headings that say what follows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from lxml import html
from lxml.etree import ParserError, iterwalk

from penstock.lifecycle import JSON
from penstock_apps.recipes.parsing.ingredients import read_ingredient
from penstock_apps.recipes.parsing.recipe import ParsedRecipe
from penstock_apps.recipes.parsing.schema_org import Node, is_recipe
from penstock_apps.recipes.parsing.texts import plain

Properties = dict[html.HtmlElement, list[html.HtmlElement]]
_MAX_CHARACTERS = 10_000_000
"""What is read of the texts of a page's elements in all. Elements lie in each other: each of two hundred has the text
of all that are in it, and a page of five megabytes would say a gigabyte."""
_COST_OF_AN_ITEM = 20
"""To come by an item takes as long as to read so many characters."""
_MAX_LINES = 500
_LONGEST_HEADING = 60
_ITEMS = ("li", "p")
_HEADINGS = ("h1", "h2", "h3", "h4", "h5", "strong", "b")
_LISTS = ("ul", "ol")
_PARSER = html.HTMLParser(encoding="utf-8", collect_ids=False)
_DEEPEST = 8
_INGREDIENTS = re.compile(r"(?:the )?ingredients?\b", re.IGNORECASE)
_STEPS = re.compile(r"(?:instructions?|directions?|method|preparation|steps?)\b", re.IGNORECASE)


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


class TextReader:
    """Reads the texts of one page's elements, until they are more than a page can have to say."""

    def __init__(self, max_characters: int = _MAX_CHARACTERS) -> None:
        self._characters_left = max_characters

    def text_of(self, element: html.HtmlElement) -> str:
        """All text in an element, plain; nothing once too much was read."""
        if self._characters_left <= 0:
            return ""
        text = str(element.text_content() or "")
        self._characters_left -= len(text) + 1
        return plain(text)

    def blocks_of(self, element: html.HtmlElement) -> list[str]:
        """The texts of the innermost items and paragraphs in an element, or its own where it has none."""
        inner = self._innermost(element) if len(element) else []
        texts = [self.text_of(item) for item in inner] if inner else [self.text_of(element)]
        return [text for text in texts if text]

    def _innermost(self, element: html.HtmlElement) -> list[html.HtmlElement]:
        """The items and paragraphs that have no others in them, in one walk."""
        inner: list[html.HtmlElement] = []
        last_opened: html.HtmlElement | None = None
        for event, item in iterwalk(element, events=("start", "end"), tag=_ITEMS):
            self._characters_left -= _COST_OF_AN_ITEM
            if self._characters_left <= 0 or len(inner) >= _MAX_LINES:
                break
            if item is element:
                continue
            if event == "start":
                last_opened = item
            elif item is last_opened:  # nothing has begun in it
                inner.append(item)
        return inner


def recipe_nodes(tree: html.HtmlElement, words: Words, texts: TextReader) -> list[Node]:
    """Recipes that the elements' attributes tell of, in the shape JSON-LD has."""
    types = [type_ for type_ in tree.xpath(f"//@{words.type}") if is_recipe({"@type": type_.split()})]
    if not types:
        return []
    properties = _properties(tree, words)
    return [_node(type_.getparent(), words, properties, texts, 0) for type_ in types]


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


def _node(element: html.HtmlElement, words: Words, properties: Properties, texts: TextReader, depth: int) -> Node:
    node: Node = {"@type": element.get(words.type, "").split()}
    for child in properties.get(element, ()) if depth < _DEEPEST else ():
        value: JSON = None
        if child.get(words.thing) is not None:
            value = _node(child, words, properties, texts, depth + 1)
        if value is None or len(value) == 1:
            value = _value(child, texts)
        for name in child.get(words.property).split():
            node.setdefault(name.rpartition(":")[2], []).append(value)
    return node


def _value(element: html.HtmlElement, texts: TextReader) -> str:
    """What an element stands for: the value of the attribute that has it, or its text."""
    for attribute in ("content", "datetime"):
        if element.get(attribute) is not None:
            return str(element.get(attribute))
    match element.tag:
        case "meta":
            return str(element.get("content", ""))
        case "img" | "source" | "embed" | "iframe" | "video" | "audio":
            return str(element.get("src", ""))
        case "a" | "link" if not texts.text_of(element):
            return str(element.get("href", ""))
        case _:
            # Blocks end lines: steps that are items of a list stay apart.
            return "\n".join(texts.blocks_of(element))


def microformat(tree: html.HtmlElement, texts: TextReader) -> ParsedRecipe | None:
    """A recipe by the classes of h-recipe or hrecipe."""
    elements = tree.xpath("//*[contains(concat(' ', normalize-space(@class), ' '), ' h-recipe ') or "
                          "contains(concat(' ', normalize-space(@class), ' '), ' hrecipe ')]")  # fmt: skip
    if not elements:
        return None
    element = elements[0]
    title = _by_class(element, texts, "p-name", "fn")
    steps = [text for part in _having(element, "e-instructions", "instructions") for text in texts.blocks_of(part)]
    ingredients = _by_class(element, texts, "p-ingredient", "ingredient")
    return ParsedRecipe(
        title[0] if title else "",
        ingredients=[read_ingredient(text) for text in ingredients],
        steps=steps[:_MAX_LINES],
    )


def _by_class(element: html.HtmlElement, texts: TextReader, *classes: str) -> list[str]:
    return [text for part in _having(element, *classes)[:_MAX_LINES] if (text := texts.text_of(part))]


def _having(element: html.HtmlElement, *classes: str) -> list[html.HtmlElement]:
    for name in classes:
        elements = element.xpath(f".//*[contains(concat(' ', normalize-space(@class), ' '), ' {name} ')]")
        if elements:
            return list(elements)
    return []


def by_headings(tree: html.HtmlElement, texts: TextReader) -> ParsedRecipe | None:
    """A page without any marks: the lists behind the headings that say ingredients, and instructions."""
    ingredients, steps = _list_behind(tree, _INGREDIENTS, texts), _list_behind(tree, _STEPS, texts)
    if not ingredients or not steps:
        return None
    title = next((text for text in _titles(tree, texts) if text), "")
    return ParsedRecipe(title[:500], ingredients=[read_ingredient(line) for line in ingredients], steps=steps)


def _titles(tree: html.HtmlElement, texts: TextReader) -> Iterator[str]:
    yield from (texts.text_of(heading) for heading in tree.iter("h1"))
    yield from (plain(content) for content in tree.xpath("//meta[@property='og:title']/@content"))
    yield from (texts.text_of(element) for element in tree.iter("title"))


def _list_behind(tree: html.HtmlElement, says: re.Pattern[str], texts: TextReader) -> list[str]:
    """The lines of the first list that stands behind a heading which says so; each element is looked at once."""
    is_announced = False
    for element in tree.iter(*_HEADINGS, *_LISTS):
        if element.tag in _HEADINGS:
            if not is_announced:
                heading = texts.text_of(element)
                is_announced = len(heading) <= _LONGEST_HEADING and says.match(heading) is not None
        elif is_announced:
            items = islice(element.iter("li"), _MAX_LINES)
            return [line for item in items if (line := texts.text_of(item))]
    return []
