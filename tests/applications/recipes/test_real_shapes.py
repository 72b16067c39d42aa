"""Pages in the shapes in which pages of real sites were read wrongly; each is written for its fault."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import recipe_scrapers

from penstock_apps.recipes.parsing import library
from penstock_apps.recipes.parsing.recipe import FoundRecipe
from tests.applications.recipes.pages import ADDRESS, script, soup
from tests.applications.recipes.readers import recipe_of

SITE = "https://www.101cookbooks.com/soup"
"""A page of a site that the library has rules for; each test says what they are."""
LINES = ["100 g flour", "2 eggs", "1 tsp salt"]
STEPS = "<h2>Method</h2><ol><li>Mix.</li><li>Bake.</li></ol>"


def lines(found: FoundRecipe) -> list[str]:
    """The ingredients as the page has them."""
    return [ingredient.text for ingredient in found.recipe.ingredients]


def microdata(ingredients: str) -> str:
    return f"""<body><div itemscope itemtype="https://schema.org/Recipe"><h1 itemprop="name">Cake</h1>{ingredients}
        <div itemprop="recipeInstructions"><p>Mix.</p><p>Bake.</p></div></div></body>"""


# All ingredients in one text, or only some of them ---------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        "100 g flour\n2 eggs\n1 tsp salt", ["100 g flour\r\n2 eggs\r\n1 tsp salt"],
        "100 g flour<br>2 eggs<br/>1 tsp salt",
        ["&lt;li&gt;100 g flour&lt;/li&gt;&lt;li&gt;2 eggs&lt;/li&gt;&lt;li&gt;1 tsp salt&lt;/li&gt;"],
        "100 g flour, 2 eggs, 1 tsp salt", [["100 g flour", "2 eggs"], ["1 tsp salt"]],
        ["100 g  flour", "2\n   eggs", "1 tsp salt"],
        [{"@type": "PropertyValue", "name": "flour", "value": "100", "unitText": "g"}, "2 eggs",
         {"@type": "HowToSupply", "name": "salt", "requiredQuantity": {"value": "1", "unitText": "tsp"}}],
    ],
)  # fmt: skip
def test_each_ingredient_is_a_line_however_the_marks_put_them(given: Any) -> None:
    assert lines(recipe_of(script(soup(recipeIngredient=given)), ADDRESS)) == LINES


def test_an_ingredient_among_others_stays_one_wherever_its_lines_end() -> None:
    given = ["1 cup flour,\n   sifted twice", "2 eggs", "1 lemon, juice and zest, grated"]
    expected = ["1 cup flour, sifted twice", "2 eggs", "1 lemon, juice and zest, grated"]
    assert lines(recipe_of(script(soup(recipeIngredient=given)), ADDRESS)) == expected


@pytest.mark.parametrize(
    "ingredients",
    [
        '<p itemprop="ingredients">100 g flour<br>2 eggs<br>\n 1 tsp salt</p>',
        f'<ul itemprop="ingredients">{"".join(f"""<li itemprop="ingredients">{line}</li>""" for line in LINES)}</ul>',
        '<h2>Ingredients</h2><ul><li itemprop="ingredients">100 g flour</li><li>2 eggs</li><li>1 tsp salt</li></ul>',
    ],
    ids=["line breaks", "a list that is one itself", "only the first is marked"],
)
def test_microdata_that_mark_too_much_or_too_little(ingredients: str) -> None:
    assert lines(recipe_of(microdata(ingredients), ADDRESS)) == LINES


@pytest.mark.parametrize("heading", ["Ingredients", "Zutaten für 4 Personen", "Ingrédients", "Ingredienser:", "材料"])
def test_the_page_s_own_list_wins_where_it_knows_more(heading: str) -> None:
    marked = script(soup(recipeIngredient=["flour, eggs"]))
    shown = f"<h3>{heading}</h3><ul>{''.join(f'<li>▢ {line}</li>' for line in LINES)}</ul>"
    assert lines(recipe_of(marked.replace("Hello", shown), ADDRESS)) == LINES


@pytest.mark.parametrize(
    "others",
    [
        "<li>Calories</li><li>Fat</li>",  # which are no ingredients
        "<li>3½ oz flour</li><li>2 large eggs</li><li>½ dr salt</li>",  # the same once more, in other units
    ],
)
def test_the_page_s_own_list_does_not_win_with_something_else(others: str) -> None:
    shown = f"<h3>Ingredients</h3><ul>{''.join(f'<li>{line}</li>' for line in LINES)}{others}</ul>"
    page = script(soup(recipeIngredient=LINES)).replace("Hello", shown)
    assert lines(recipe_of(page, ADDRESS)) == LINES


def test_what_marks_lack_is_taken_from_below_the_headings() -> None:
    shown = f"<h2>Ingredients</h2><table>{''.join(f'<tr><td>{line}</td></tr>' for line in LINES)}</table>{STEPS}"
    found = recipe_of(script(soup(recipeIngredient=[""], recipeInstructions=[])).replace("Hello", shown), ADDRESS)
    assert (lines(found), found.recipe.steps) == (LINES, ["Mix.", "Bake."])
    assert (found.strategy, found.warnings) == ("schema_org_json_ld", ())
    assert (found.recipe.total_minutes, found.recipe.servings) == (75, 4)  # which the marks do say


# Rules of sites ---------------------------------------------------------------------------------------------------


def rules(monkeypatch: pytest.MonkeyPatch, **answers: Any) -> None:
    """Let the library have rules for the site that answer so, or raise."""

    def method(answer: Any) -> Any:
        def read(_self: object) -> Any:
            if isinstance(answer, BaseException):
                raise answer
            return answer

        read.__qualname__ = "OurSite.read"
        return read

    base = recipe_scrapers.AbstractScraper
    site = type("OurSite", (base,), {name: method(answer) for name, answer in answers.items()})
    site.host = classmethod(lambda _class: "101cookbooks.com")  # type: ignore[attr-defined]
    monkeypatch.setitem(recipe_scrapers.SCRAPERS, "101cookbooks.com", site)


def test_the_rules_of_a_site_win_where_they_know_more_than_its_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    rules(monkeypatch, title="Good soup", ingredients=[*LINES, "Pepper"], total_time="1 hour 5 mins")
    found = recipe_of(script(soup(name="Soup of 2019", recipeIngredient=["flour"])), SITE)
    assert (found.recipe.title, lines(found)) == ("Good soup", [*LINES, "Pepper"])
    assert (found.recipe.prep_minutes, found.recipe.total_minutes) == (10, 65)


def test_rules_that_find_less_do_not_win(monkeypatch: pytest.MonkeyPatch) -> None:
    rules(monkeypatch, title="", ingredients=["1 tsp salt"])
    found = recipe_of(script(soup(recipeIngredient=LINES)), SITE)
    assert (found.recipe.title, lines(found)) == ("Tomato soup", LINES)


@pytest.mark.parametrize("answer", [RuntimeError("a rule's fault"), 7, None, [None, 3], {"a": 1}, SimpleNamespace()])
@pytest.mark.parametrize("is_marked", [True, False])
def test_whatever_a_rule_raises_or_answers_the_page_is_read(
    monkeypatch: pytest.MonkeyPatch, answer: Any, is_marked: bool
) -> None:
    names = "title ingredients ingredient_groups instructions_list total_time prep_time yields image author description"
    rules(monkeypatch, **dict.fromkeys(names.split(), answer))
    shown = f"<h1>Tomato soup</h1><h2>Ingredients</h2><ul>{''.join(f'<li>{x}</li>' for x in LINES)}</ul>{STEPS}"
    page = script(soup(recipeIngredient=LINES)) if is_marked else f"<html><body>{shown}</body></html>"
    found = recipe_of(page, SITE)
    assert (found.recipe.title, lines(found)) == ("Tomato soup", LINES)


def test_a_rule_that_fails_as_a_whole_is_as_if_it_were_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(*_args: object, **_options: object) -> None:
        raise RecursionError("a page that is deep")

    rules(monkeypatch, title="Good soup")
    monkeypatch.setattr(recipe_scrapers, "scrape_html", raising)
    assert recipe_of(script(soup()), SITE).recipe.title == "Tomato soup"


def test_everything_works_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "recipe_scrapers", None)
    assert not library.has_own_rules(SITE)
    assert recipe_of(script(soup()), SITE).recipe.title == "Tomato soup"
    assert recipe_of(f"<h1>Cake</h1><h2>Ingredients</h2><ul><li>1 egg</li></ul>{STEPS}", SITE).strategy == "headings"


# Said twice -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [[*LINES, *LINES], [line for line in LINES for _ in range(2)], LINES * 3])
def test_a_list_that_is_marked_twice_is_one(given: list[str]) -> None:
    assert lines(recipe_of(script(soup(recipeIngredient=given)), ADDRESS)) == LINES


def test_salt_may_be_needed_twice() -> None:
    given = ["100 g flour", "Salt", "2 eggs", "Salt"]
    assert lines(recipe_of(script(soup(recipeIngredient=given)), ADDRESS)) == given


def test_steps_that_repeat_are_kept_and_the_whole_method_said_twice_is_not() -> None:
    steps = ["Knead.", "Rest 10 minutes.", "Knead.", "Rest 10 minutes."]
    things = [{"@type": "HowToStep", "text": text} for text in steps]
    assert recipe_of(script(soup(recipeInstructions=things)), ADDRESS).recipe.steps == steps
    long_steps = [f"{number}, and {'stir until it is thick, ' * 6}then wait." for number in ("First", "Last")]
    page = script(soup(recipeInstructions=[*long_steps, *long_steps]))
    assert recipe_of(page, ADDRESS).recipe.steps == long_steps


# Titles, times and sections ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Tomato soup | Our Kitchen", "Tomato soup"), ("Tomato soup - kitchen.example", "Tomato soup"),
        ("Tomatsoppa – Recept", "Tomatsoppa"), ("Tomato soup - Recipe | Our Kitchen", "Tomato soup"),
        ("Tomato soup - hot and red", "Tomato soup - hot and red"), ("Recipe", "Recipe"),
        ("Grandma's Soup Recipe", "Grandma's Soup Recipe"),  # its author calls it so
    ],
)  # fmt: skip
def test_a_title_has_no_site_behind_it(name: str, expected: str) -> None:
    page = script(soup(name=name)).replace("</head>", '<meta property="og:site_name" content="Our Kitchen"></head>')
    assert recipe_of(page, ADDRESS).recipe.title == expected


def test_a_page_s_title_is_that_of_a_dish() -> None:
    page = f"<h1>Chilli con carne recipe</h1><h2>Ingredients</h2><ul><li>1 onion</li></ul>{STEPS}"
    assert recipe_of(page, ADDRESS).recipe.title == "Chilli con carne"


def test_of_several_recipes_the_page_is_called_by_one() -> None:
    longer = soup(name="A sauce", recipeIngredient=[*LINES, *"abcdefg"])
    page = script([longer, soup(name="Rice")]).replace("<title>Soup", "<title>Rice in ten minutes")
    found = recipe_of(page, ADDRESS)
    assert (found.recipe.title, found.warnings) == (
        "Rice", ("The page has several recipes; this is the one that it is called by.",)
    )  # fmt: skip


def test_the_total_time_is_what_its_parts_take() -> None:
    recipe = recipe_of(script(soup(totalTime=None)), ADDRESS).recipe
    assert (recipe.prep_minutes, recipe.cook_minutes, recipe.total_minutes) == (10, 65, 75)
    only = recipe_of(script(soup(totalTime="PT0M", prepTime="")), ADDRESS).recipe
    assert (only.prep_minutes, only.total_minutes) == (None, 65)


def test_a_time_is_read_from_the_text_where_its_attribute_says_nothing() -> None:
    times = '<time itemprop="cookTime" datetime="PT"><b>20</b> min</time>'
    assert recipe_of(microdata(f'{times}<p itemprop="ingredients">1 egg</p>'), ADDRESS).recipe.cook_minutes == 20


def sections(found: FoundRecipe) -> list[tuple[str, str | None]]:
    return [(ingredient.text, ingredient.section) for ingredient in found.recipe.ingredients]


SECTIONED = [
    ("100 g flour", None), ("1 pinch salt", None), ("2 tomatoes", "For the sauce"), ("1 onion", "For the sauce"),
]  # fmt: skip


def test_sections_among_the_ingredients_are_sections() -> None:
    given = ["100 g flour", "1 pinch salt", "For the sauce:", "2 tomatoes", "1 onion"]
    found = recipe_of(script(soup(recipeIngredient=given)), ADDRESS)
    assert sections(found) == SECTIONED
    assert [part["section"] for part in found.as_json(ADDRESS)["recipe"]["ingredients"]] == [
        section for _, section in SECTIONED
    ]


def test_sections_that_only_the_page_shows_are_sections() -> None:
    given = [line for line, _ in SECTIONED]
    shown = """<h2>Ingredients</h2><div><ul><li>▢ 100 g flour</li><li>▢ 1 pinch salt</li></ul></div>
        <div><p><strong>For the sauce</strong></p><ul><li>▢ 2 tomatoes</li><li>▢ 1 onion</li></ul></div>"""
    page = script(soup(recipeIngredient=given)).replace("Hello", shown)
    assert sections(recipe_of(page, ADDRESS)) == SECTIONED


def test_steps_have_their_sections_too() -> None:
    def part(name: str, *texts: str) -> dict[str, Any]:
        return {
            "@type": "HowToSection",
            "name": name,
            "itemListElement": [{"@type": "HowToStep", "text": text} for text in texts],
        }

    page = script(soup(recipeInstructions=[part("Method", "Mix."), part("For the sauce", "Chop.", "Fry.")]))
    found = recipe_of(page, ADDRESS).as_json(ADDRESS)["recipe"]
    assert found["steps"] == ["Mix.", "Chop.", "Fry."]
    assert found["step_sections"] == [None, "For the sauce", "For the sauce"]
    assert recipe_of(script(soup()), ADDRESS).as_json(ADDRESS)["recipe"]["step_sections"] == []


@pytest.mark.parametrize("count", [3_000, 5_001])
def test_a_long_list_is_whole_or_says_that_it_is_not(count: int) -> None:
    found = recipe_of(script(soup(recipeIngredient=[f"{number} g flour" for number in range(count)])), ADDRESS)
    assert len(found.recipe.ingredients) == min(count, 5_000)
    assert found.warnings == (
        () if count == 3_000 else ("More than 5,000 ingredients or steps: the others were left out.",)
    )


def test_a_fraction_that_is_set_with_marks_is_one() -> None:
    given = ["<sup>1</sup>/<sub>2</sub> cup milk", "2 eggs"]
    [milk, _] = recipe_of(script(soup(recipeIngredient=given)), ADDRESS).recipe.ingredients
    assert (milk.quantity, milk.unit, milk.text) == (0.5, "cup", "1/2 cup milk")
