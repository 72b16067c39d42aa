"""What a client saw of a page becomes a page that every reader understands."""

from __future__ import annotations

import json

import pytest

from penstock.errors import InvalidInput, PayloadTooLarge
from penstock_apps.recipes.client_pages import ClientPage
from tests.applications.recipes.pages import ADDRESS, HEADINGS, soup
from tests.applications.recipes.readers import recipe_of


def test_a_block_stays_whole_whatever_is_written_in_it() -> None:
    block = json.dumps(soup(description="Hot </script> &amp; <b>red</b>"))
    page = ClientPage(ADDRESS, ["", "{broken", block]).as_html(max_bytes=10_000)
    read = recipe_of(page.decode(), ADDRESS)
    assert (read.strategy, read.recipe.description) == ("schema_org_json_ld", "Hot & red")


def test_a_snippet_is_read_where_the_blocks_say_nothing() -> None:
    page = ClientPage(ADDRESS, ['{"@type": "WebSite"}'], HEADINGS).as_html(max_bytes=10_000)
    assert recipe_of(page.decode(), ADDRESS).recipe.title == "Tomato soup"


def test_a_page_has_bounds_and_only_characters_that_can_be_written() -> None:
    assert ClientPage(ADDRESS, (), "s\ud800p").as_html(max_bytes=10).endswith(b"s?p")
    for blocks, snippet in (((), None), (("", " \n"), " ")):
        with pytest.raises(InvalidInput) as refused:
            ClientPage(ADDRESS, blocks, snippet).as_html(max_bytes=10)
        assert (refused.value.code, refused.value.field) == ("PAGE_EMPTY", "input")
    with pytest.raises(PayloadTooLarge, match="11 bytes, and 10 are allowed"):
        ClientPage(ADDRESS, (), "x" * 11).as_html(max_bytes=10)
