"""Lines of ingredients as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock_apps.recipes.ingredients import understood


@pytest.mark.parametrize(
    ("line", "quantity", "quantity_to", "unit", "name", "note"),
    [
        ("2 cups flour", 2, None, "cup", "flour", None),
        ("1 1/2 cups all-purpose flour, sifted", 1.5, None, "cup", "all-purpose flour", "sifted"),
        ("1½ tsp. salt", 1.5, None, "teaspoon", "salt", None),
        ("½ cup sugar", 0.5, None, "cup", "sugar", None),
        ("⅔ cup milk", 0.6667, None, "cup", "milk", None),
        ("3/4 pound beef", 0.75, None, "pound", "beef", None),
        ("1⁄2 onion", 0.5, None, None, "onion", None),
        ("2-3 cloves garlic, minced", 2, 3, "clove", "garlic", "minced"),
        ("2 – 3 cloves of garlic", 2, 3, "clove", "garlic", None),
        ("2 to 3 tablespoons oil", 2, 3, "tablespoon", "oil", None),
        ("1 1/2 - 2 cups water", 1.5, 2, "cup", "water", None),
        ("200g butter", 200, None, "gram", "butter", None),
        ("1.5 kg potatoes", 1.5, None, "kilogram", "potatoes", None),
        ("1,5 l Wasser", 1.5, None, "litre", "Wasser", None),
        ("2 T soy sauce", 2, None, "tablespoon", "soy sauce", None),
        ("2 t soy sauce", 2, None, "teaspoon", "soy sauce", None),
        ("8 fl oz cream", 8, None, "fluid ounce", "cream", None),
        ("3 large eggs", 3, None, None, "large eggs", None),
        ("1 (14 oz) can tomatoes", 1, None, None, "can tomatoes", "14 oz"),
        ("a pinch of salt", 1, None, "pinch", "salt", None),
        ("A handful of basil leaves", 1, None, "handful", "basil leaves", None),
        ("one dozen eggs", 12, None, None, "eggs", None),
        ("half a lemon", 0.5, None, None, "a lemon", None),
        ("Salt and pepper, to taste", None, None, None, "Salt and pepper", "to taste"),
        ("Parsley for garnish", None, None, None, "Parsley", "for garnish"),
        ("about 2 cups rice", 2, None, "cup", "rice", None),
        ("• 2 cups rice", 2, None, "cup", "rice", None),
        ("Butter", None, None, None, "Butter", None),
        ("1/0 cup nothing", None, None, None, "1/0 cup nothing", None),
        ("7-up", 7, None, None, "up", None),
    ],
)  # fmt: skip
def test_a_line_is_understood(
    line: str, quantity: float | None, quantity_to: float | None, unit: str | None, name: str, note: str | None
) -> None:
    one = understood(line)
    assert (one.quantity, one.quantity_to, one.unit, one.name, one.note) == (quantity, quantity_to, unit, name, note)
    assert one.text == line


@given(some.text(max_size=200))
def test_no_line_is_lost(line: str) -> None:
    one = understood(line)
    assert one.text == " ".join(line.split())
    assert one.name or not one.text
