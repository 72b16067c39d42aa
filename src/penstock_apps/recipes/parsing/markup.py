"""Finding a recipe in a page's elements: microdata, RDFa, and the h-recipe classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lxml import html
from lxml.etree import ParserError, iterwalk

from penstock.lifecycle import JSON
from penstock_apps.recipes.limits import MAX_LINES
from penstock_apps.recipes.parsing.ingredient_lists import ingredient_lines
from penstock_apps.recipes.parsing.recipe import ParsedRecipe
from penstock_apps.recipes.parsing.repetitions import said_once
from penstock_apps.recipes.parsing.schema_org import Node, is_recipe
from penstock_apps.recipes.parsing.sections import read_ingredients
from penstock_apps.recipes.parsing.texts import plain

Properties = dict[html.HtmlElement, list[html.HtmlElement]]
_MAX_CHARACTERS = 10_000_000
"""What is read of the texts of a page's elements in all. Elements lie in each other: each of two hundred has the text
of all that are in it, and a page of five megabytes would say a gigabyte."""
_COST_OF_AN_ITEM = 20
"""To come by an item takes as long as to read so many characters."""
_MAX_LINES = MAX_LINES + 1
"""One more than are kept: who reads them sees that there were more."""
_MAX_NESTED = 2_000
"""Properties of a thing that are looked at for being in each other."""
_ITEMS = ("li", "p")
_LINE_END = "\x00"
"""Which no text has: the line ends of a page's source mean nothing."""
_PARSER = html.HTMLParser(encoding="utf-8", collect_ids=False)
_DEEPEST = 8


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
    # Line ends are one character, as HTML has it: they would come out of the tree as escapes.
    data = page.encode("utf-8", "replace").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    try:
        return html.document_fromstring(data, parser=_PARSER)
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
        """The texts of the innermost items and paragraphs in an element, or its own lines where it has none."""
        inner = self._innermost(element) if len(element) else []
        texts = [self.text_of(item) for item in inner] if inner else self.lines_of(element)
        return [text for text in texts if text]

    def lines_of(self, element: html.HtmlElement) -> list[str]:
        """The text of an element, apart where it says that a line ends."""
        if next(element.iter("br"), None) is None:
            return [self.text_of(element)]
        if self._characters_left <= 0:
            return []
        parts: list[str] = []
        for event, part in iterwalk(element, events=("start", "end", "comment", "pi")):
            if event == "start":
                parts.append(_LINE_END if part.tag == "br" else part.text or "")
            elif part is not element:
                parts.append(part.tail or "")
        self._characters_left -= sum(map(len, parts)) + _COST_OF_AN_ITEM
        return [plain(line) for line in "".join(parts).split(_LINE_END)]

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
    for child in _outermost_left_out(properties.get(element, ()), words) if depth < _DEEPEST else ():
        value: JSON = None
        if child.get(words.thing) is not None:
            value = _node(child, words, properties, texts, depth + 1)
        if value is None or len(value) == 1:
            value = _value(child, texts)
        for name in child.get(words.property).split():
            values = node.setdefault(name.rpartition(":")[2], [])
            values.append(value)
            if name.endswith("Time") and len(child):
                values.append(texts.text_of(child))  # where its attribute says nothing
    return node


def _outermost_left_out(children: Sequence[html.HtmlElement], words: Words) -> Sequence[html.HtmlElement]:
    """Without those that have the same property inside of them: a list that is one, and so are its items."""
    if not 1 < len(children) <= _MAX_NESTED:
        return children
    with_others: set[html.HtmlElement] = set()
    all_children = set(children)
    for child in children:
        for around in child.iterancestors():
            if around in all_children and around.get(words.property) == child.get(words.property):
                with_others.add(around)
            if around.get(words.thing) is not None:
                break
    return [child for child in children if child not in with_others]


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
    ingredients = ingredient_lines(
        [line for part in _having(element, "p-ingredient", "ingredient") for line in texts.blocks_of(part)]
    )
    return ParsedRecipe(
        title[0] if title else "",
        ingredients=read_ingredients(said_once(ingredients)[:MAX_LINES]),
        steps=steps[:MAX_LINES],
        is_cut=max(len(ingredients), len(steps)) > MAX_LINES,
    )


def _by_class(element: html.HtmlElement, texts: TextReader, *classes: str) -> list[str]:
    return [text for part in _having(element, *classes)[:_MAX_LINES] if (text := texts.text_of(part))]


def _having(element: html.HtmlElement, *classes: str) -> list[html.HtmlElement]:
    for name in classes:
        elements = element.xpath(f".//*[contains(concat(' ', normalize-space(@class), ' '), ' {name} ')]")
        if elements:
            return list(elements)
    return []
