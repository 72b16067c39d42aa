"""What a page shows below its headings: lists of ingredients with their sections, and steps, in many languages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from lxml import html

from penstock_apps.recipes.parsing.markup import TextReader
from penstock_apps.recipes.parsing.recipe import ParsedRecipe
from penstock_apps.recipes.parsing.sections import Part, is_general, is_method, read_parts, split_steps
from penstock_apps.recipes.parsing.texts import plain
from penstock_apps.recipes.parsing.titles import without_recipe

_MAX_LINES = 5_000
_LONGEST_HEADING = 80
_LEVELS = {
    "h1": 1,
    "h2": 2,
    "h3": 3,
    "h4": 4,
    "h5": 5,
    "h6": 6,
    "legend": 6,
    "caption": 6,
    "dt": 6,
    "strong": 7,
    "b": 7,
}
_ITEMS = ("li", "tr")
_BULLETS = "▢☐□◦•·*- "


@dataclass(slots=True)
class PageLists:
    """The lists behind the first heading that says ingredients, and behind the one that says steps."""

    ingredients: list[Part] = field(default_factory=list)
    steps: list[Part] = field(default_factory=list)


def lists_of(tree: html.HtmlElement, texts: TextReader) -> PageLists:
    """The lists of a page; each element is looked at once."""
    lists = PageLists()
    goal: list[Part] | None = None
    around: html.HtmlElement | None = None
    level = 0
    section: str | None = None
    for element in tree.iter(*_LEVELS, *_ITEMS):
        if element.tag in _LEVELS:
            heading = _heading(element, texts)
            own_level = _LEVELS[element.tag]
            if heading is None:
                continue
            if is_general(heading) and not lists.ingredients:
                goal, around, level, section = lists.ingredients, None, own_level, None
            elif is_method(heading) and not lists.steps:
                goal, around, level, section = lists.steps, None, own_level, None
            elif goal and own_level <= level:
                goal = None  # the list has ended; one that has not begun may have its title in between
            else:
                section = heading.rstrip(" :") or None
        elif goal is not None and len(goal) < _MAX_LINES and (new_lines := _lines(element, texts)):
            around = _container(element) if around is None else around
            if around in element.iterancestors():
                goal.extend((line, section) for line in new_lines)
    return lists


def _container(item: html.HtmlElement) -> html.HtmlElement:
    """What the lists of one kind are in together: around a list, and around the group that it is one of."""
    return next(islice(item.iterancestors(), 2, 3), item.getroottree().getroot())


def lines_with_headings(tree: html.HtmlElement, texts: TextReader) -> Iterator[Part]:
    """All items of a page's lists, each with the heading it stands below, unless that is the one of all ingredients."""
    section: str | None = None
    for element in tree.iter(*_LEVELS, *_ITEMS):
        if element.tag in _LEVELS:
            heading = _heading(element, texts)
            if heading is not None:
                section = None if is_general(heading) or is_method(heading) else heading.rstrip(" :") or None
        else:
            yield from ((line, section) for line in _lines(element, texts))


def by_headings(tree: html.HtmlElement, texts: TextReader, lists: PageLists) -> ParsedRecipe | None:
    """A page without any marks: the lists behind the headings that say ingredients, and instructions."""
    if not lists.ingredients or not lists.steps:
        return None
    title = next((text for text in page_titles(tree, texts) if text), "")
    steps, step_sections = split_steps(lists.steps)
    return ParsedRecipe(
        without_recipe(title)[:500],
        ingredients=read_parts(lists.ingredients),
        steps=steps,
        step_sections=step_sections,
    )


def page_titles(tree: html.HtmlElement, texts: TextReader) -> Iterator[str]:
    """What a page is called: by its headings, by its meta data, by its title."""
    yield from (texts.text_of(heading) for heading in tree.iter("h1"))
    yield from (plain(content) for content in tree.xpath("//meta[@property='og:title']/@content"))
    yield from (texts.text_of(element) for element in tree.iter("title"))


def _heading(element: html.HtmlElement, texts: TextReader) -> str | None:
    """A heading's text; None of what is only strong in the middle of a sentence, or far too long for a heading."""
    if element.tag in ("strong", "b"):
        around = element.getparent()
        if around is None or around.tag in ("li", "td", "span", "a") or (element.tail or "").strip(" :"):
            return None
    text = texts.text_of(element)
    return text if 0 < len(text) <= _LONGEST_HEADING else None


def _lines(element: html.HtmlElement, texts: TextReader) -> list[str]:
    """An item's lines; none of one that has others in it, or is a row of headings."""
    if next(element.iterdescendants("li", "tr"), None) is not None or element.find("th") is not None:
        return []
    return [line for text in texts.lines_of(element) if (line := text.lstrip(_BULLETS))]
