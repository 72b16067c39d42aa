"""A page as the ways of reading look at it: each form of it is made once, when somebody asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from lxml import html

from penstock_apps.recipes.addresses import host_of
from penstock_apps.recipes.parsing import library, markup
from penstock_apps.recipes.parsing.headings import PageLists, lists_of, page_titles
from penstock_apps.recipes.parsing.library import SiteRules
from penstock_apps.recipes.parsing.recipe import ParsedRecipe
from penstock_apps.recipes.parsing.sections import key_of
from penstock_apps.recipes.parsing.texts import plain


@dataclass
class PageView:
    """The text of a page, and what it comes down to."""

    text: str
    address: str
    texts: markup.TextReader = field(default_factory=markup.TextReader)

    @cached_property
    def tree(self) -> html.HtmlElement | None:
        """Its elements; None where it has none."""
        return markup.tree_of(self.text)

    @cached_property
    def lists(self) -> PageLists:
        """The lists behind its headings."""
        return PageLists() if self.tree is None else lists_of(self.tree, self.texts)

    @cached_property
    def rules(self) -> SiteRules | None:
        """What the rules of its site say; they have a tree of their own, because they change it."""
        tree = markup.tree_of(self.text)
        return None if tree is None else library.read_by_rules(tree, self.address)

    @cached_property
    def site_names(self) -> list[str]:
        """How the site is called, by itself and by its host."""
        names = [] if self.tree is None else self.tree.xpath("//meta[@property='og:site_name']/@content")
        host = host_of(self.address).removeprefix("www.")
        return [*map(plain, names), host, host.partition(".")[0]]

    def recipe_it_is_called_by(self, recipes: Mapping[str, ParsedRecipe]) -> ParsedRecipe | None:
        """The one recipe that a title of the page names."""
        if self.tree is None:
            return None
        for title in page_titles(self.tree, self.texts):
            key = key_of(title)
            matches = [recipe for name, recipe in recipes.items() if (own := key_of(name)) and (own in key)]
            if matches:
                return max(matches, key=lambda recipe: len(recipe.title))
        return None
