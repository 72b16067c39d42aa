"""From a page to a recipe: however a site writes it, the same comes out; and what is no recipe is said to be none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock import Permanent
from penstock_apps.recipes.parsing.durations import minutes
from penstock_apps.recipes.parsing.texts import decode_page, lines, plain
from tests.applications.recipes.pages import (
    ADDRESS,
    H_RECIPE,
    HEADINGS,
    NO_RECIPES,
    PAGES,
    SEVERAL,
    SOUP,
    STEPS,
    WITHOUT_STEPS,
    script,
    soup,
)
from tests.applications.recipes.readers import recipe_of


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_read_however_it_is_written(name: str) -> None:
    found = recipe_of(PAGES[name], ADDRESS)
    one = found.recipe
    assert one.title == "Tomato soup"
    assert one.description == "Red & warm."
    assert [(line.quantity, line.unit, line.name) for line in one.ingredients] == [
        (2.0, "tablespoon", "olive oil"), (1.5, "cup", "chopped tomatoes"), (None, None, "Salt"),
    ]  # fmt: skip
    assert [line.text for line in one.ingredients] == SOUP["recipeIngredient"]
    assert one.steps == STEPS
    assert (one.servings, one.yields) == (4, "Serves 4")
    assert (one.prep_minutes, one.cook_minutes, one.total_minutes) == (10, 65, 75)
    assert one.image_url == "https://kitchen.example/pictures/soup.jpg"
    assert one.tags == ["soup", "Winter", "Italian"]
    assert one.author == "A cook"
    assert not found.used_llm
    expected = {"microdata": "schema_org_microdata", "rdfa": "schema_org_rdfa"}.get(name, "schema_org_json_ld")
    assert found.strategy == expected


@pytest.mark.parametrize(("page", "strategy"), [(H_RECIPE, "h_recipe"), (HEADINGS, "headings")])
def test_pages_without_schema_org_are_read_by_their_classes_or_headings(page: str, strategy: str) -> None:
    found = recipe_of(page, ADDRESS)
    assert found.strategy == strategy
    assert found.recipe.title == "Tomato soup"
    assert [one.name for one in found.recipe.ingredients] == ["olive oil", "tomatoes"]
    assert found.recipe.steps == ["Warm the oil.", "Simmer."]


def test_what_is_odd_about_a_page_is_a_warning() -> None:
    assert recipe_of(SEVERAL, ADDRESS).recipe.title == "Tomato soup"
    assert recipe_of(SEVERAL, ADDRESS).warnings == ("The page has several recipes; this is the fullest of them.",)
    assert recipe_of(WITHOUT_STEPS, ADDRESS).warnings == ("No steps were found.",)
    assert "could not be read" in recipe_of(PAGES["a broken script before"], ADDRESS).warnings[0]


@pytest.mark.parametrize("name", NO_RECIPES)
def test_what_is_no_recipe_is_said_to_be_none(name: str) -> None:
    with pytest.raises(Permanent) as refused:
        recipe_of(NO_RECIPES[name], ADDRESS)
    assert refused.value.code == "NOT_A_RECIPE"


def test_a_result_has_the_fields_the_clients_know() -> None:
    result = recipe_of(PAGES["plain"], ADDRESS).as_json(ADDRESS)
    assert result.keys() == {"success", "recipe", "used_llm", "parser_strategy", "warnings", "parsed_at"}
    assert result["recipe"]["source_url"] == ADDRESS
    assert result["recipe"]["ingredients"][0] == {
        "text": "olive oil", "quantity": "2", "quantity_display": "2", "quantity_value": 2.0, "quantity_to": None,
        "unit": "tablespoon", "name": "olive oil", "note": None, "line": "2 tbsp olive oil", "section": None,
    }  # fmt: skip


JSON = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(max_size=20),
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(some.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(some.dictionaries(some.sampled_from(sorted(SOUP)), JSON))
def test_whatever_a_property_is_the_others_are_read(changes: dict[str, object]) -> None:
    changes.pop("@type", None)
    page = script(soup(**changes))
    # The library takes some things for steps that we do not.
    assert outcome(page).partition(":")[0] in ("schema_org_json_ld", "site_rules", "NOT_A_RECIPE")


@given(some.text(max_size=400))
def test_any_text_is_a_page(text: str) -> None:
    for page in (text, script(text), f"<div itemscope itemtype='https://schema.org/Recipe'>{text}</div>"):
        assert outcome(page) == "NOT_A_RECIPE"


def outcome(page: str) -> str:
    """How a page was read, or why not."""
    try:
        return recipe_of(page, ADDRESS).strategy
    except Permanent as refused:
        return refused.code


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PT30M", 30), ("pt1h", 60), ("P1DT2H", 1560), ("PT90S", 2), ("PT1.5H", 90), ("30", 30), ("45 minutes", 45),
        ("1 hour 5 mins", 65), ("PT", None), ("P", None), ("", None), ("PT0M", None), ("-PT5M", None), (25, 25),
        (True, None), ("PT99999999999M", None), (["PT5M"], None), ("x" * 1000, None),
    ],
)  # fmt: skip
def test_how_long_it_takes(text: object, expected: int | None) -> None:
    assert minutes(text) == expected


@pytest.mark.parametrize(
    ("body", "told", "expected"),
    [
        ("Crème".encode(), None, "Crème"),
        ("Crème".encode("latin-1"), None, "Crème"),
        ("Crème".encode("latin-1"), "iso-8859-1", "Crème"),
        ("Суп".encode("cp1251"), "windows-1251", "Суп"),
        ('<meta charset="windows-1251">Суп'.encode("cp1251"), None, '<meta charset="windows-1251">Суп'),
        ('<meta http-equiv="Content-Type" content="text/html; charset=shift_jis">汁'.encode("shift_jis"), None,
         '<meta http-equiv="Content-Type" content="text/html; charset=shift_jis">汁'),
        (b"\xef\xbb\xbfsoup", "latin-1", "soup"),
        ("soup".encode("utf-16"), None, "soup"),
        ("Crème".encode(), "no-such-charset", "Crème"),
        ("Crème".encode(), "base64", "Crème"),
        *(
            (f'<meta charset="{name}">Crème'.encode(), None, f'<meta charset="{name}">Crème')
            for name in ("idna", "punycode", "undefined", "utf-16")
        ),
        (b"\x81\xff", "utf-8", "\ufffd\ufffd"),
    ],
)  # fmt: skip
def test_a_page_is_text_in_whatever_charset(body: bytes, told: str | None, expected: str) -> None:
    assert decode_page(body, told) == expected


def test_texts_lose_their_marks_and_numbers() -> None:
    assert plain(" <b>A</b>&nbsp;&amp;amp; <i>B</i>\n") == "A & B"
    assert lines("<p>1. Mix.</p><p>Step 2: Bake.<br>Cool.</p>") == ["Mix.", "Bake.", "Cool."]
