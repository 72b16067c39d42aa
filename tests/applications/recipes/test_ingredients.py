"""Lines of ingredients as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock_apps.recipes.parsing.ingredients import read_ingredient


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
        ("1 (14 oz) can tomatoes", 1, None, "can", "tomatoes", "14 oz"),
        ("1 15-ounce can pumpkin", 1, None, "can", "pumpkin", "15-ounce"),
        ("one 14-ounce can coconut milk", 1, None, "can", "coconut milk", "14-ounce"),
        ("2 x 400g tins chopped tomatoes", 2, None, "tin", "chopped tomatoes", "400g"),
        ("15 ounce can black beans, drained", 15, None, "ounce", "black beans", "drained, can"),
        ("1 package (8 ounces) cream cheese", 1, None, "package", "cream cheese", "8 ounces"),
        ("1 (2 to 3-pound) chicken", 1, None, None, "chicken", "2 to 3-pound"),
        ("2 and 1/2 cups (285g) cake flour", 2.5, None, "cup", "cake flour", "285g"),
        ("1-1/2 cups sugar", 1.5, None, "cup", "sugar", None),
        ("1 - 1/2 cups sugar", 1.5, None, "cup", "sugar", None),
        ("1-1/2 to 2 cups sugar", 1.5, 2, "cup", "sugar", None),
        ("1 & 1/2 tsp salt", 1.5, None, "teaspoon", "salt", None),
        ("1-1 1/2 cups milk", 1, 1.5, "cup", "milk", None),
        ("1/2-1 cup water", 0.5, 1, "cup", "water", None),
        ("1,000 g flour", 1000, None, "gram", "flour", None),
        ("0,125 l Sahne", 0.125, None, "litre", "Sahne", None),
        ("100g/3½oz plain flour", 100, None, "gram", "plain flour", "3 1/2oz"),
        ("1kg/2lb 4oz potatoes", 1, None, "kilogram", "potatoes", "2lb 4oz"),
        ("1 cup plus 2 tablespoons sugar", 1, None, "cup", "sugar", "plus 2 tablespoons"),
        ("1 cup + 2 tbsp sugar", 1, None, "cup", "sugar", "plus 2 tbsp"),
        ("1 heaped tsp cumin", 1, None, "teaspoon", "cumin", "heaped"),
        ("2 large handfuls spinach", 2, None, "handful", "spinach", "large"),
        ("pinch of salt", 1, None, "pinch", "salt", None),
        ("Pinch salt", 1, None, "pinch", "salt", None),
        ("5 garlic cloves, minced", 5, None, "clove", "garlic", "minced"),
        ("2 sprigs thyme", 2, None, "sprig", "thyme", None),
        ("2 dozen oysters", 24, None, None, "oysters", None),
        ("½ of an onion", 0.5, None, None, "onion", None),
        ("4 fluid ounces ginger beer, or to taste", 4, None, "fluid ounce", "ginger beer", "or to taste"),
        ("1 cup coconut milk*", 1, None, "cup", "coconut milk", None),
        ("2 EL Öl", 2, None, "tablespoon", "Öl", None),
        ("1 Prise Salz", 1, None, "pinch", "Salz", None),
        ("3 c. à soupe d'huile", 3, None, "tablespoon", "huile", None),
        ("2 cuilleres a cafe de sucre", 2, None, "teaspoon", "sucre", None),
        ("2 à 3 gousses d’ail", 2, 3, "clove", "ail", None),
        ("2 cucharadas de aceite", 2, None, "tablespoon", "aceite", None),
        ("2 cucchiai di olio", 2, None, "tablespoon", "olio", None),
        ("5 el olijfolie", 5, None, "tablespoon", "olijfolie", None),
        ("2 msk smör", 2, None, "tablespoon", "smör", None),
        ("2 łyżki oliwy", 2, None, "tablespoon", "oliwy", None),
        ("1 cup", 1, None, None, "cup", None),
        ("a pinch of salt", 1, None, "pinch", "salt", None),
        ("A handful of basil leaves", 1, None, "handful", "basil leaves", None),
        ("one dozen eggs", 12, None, None, "eggs", None),
        ("half a lemon", 0.5, None, None, "lemon", None),
        ("Salt and pepper, to taste", None, None, None, "Salt and pepper", "to taste"),
        ("Parsley for garnish", None, None, None, "Parsley", "for garnish"),
        ("about 2 cups rice", 2, None, "cup", "rice", None),
        ("• 2 cups rice", 2, None, "cup", "rice", None),
        ("Butter", None, None, None, "Butter", None),
        ("1/0 cup nothing", None, None, None, "1/0 cup nothing", None),
        ("7-up", 7, None, None, "up", None),
        ("1.500 g Mehl", 1500, None, "gram", "Mehl", None),
        ("1.000 ml Wasser", 1000, None, "millilitre", "Wasser", None),
        ("1.500-2.000 g Mehl", 1500, 2000, "gram", "Mehl", None),
        ("1,500 kg potatoes", 1.5, None, "kilogram", "potatoes", None),
        ("1.500 kg potatoes", 1.5, None, "kilogram", "potatoes", None),
        ("1,250 l Wasser", 1.25, None, "litre", "Wasser", None),
        ("1 i 1/2 łyżeczki kurkumy", 1.5, None, "teaspoon", "kurkumy", None),
        ("2% milk", None, None, None, "2% milk", None),
        ("1.2.3 g flour", None, None, None, "1.2.3 g flour", None),
    ],
)  # fmt: skip
def test_a_line_is_understood(
    line: str, quantity: float | None, quantity_to: float | None, unit: str | None, name: str, note: str | None
) -> None:
    one = read_ingredient(line)
    assert (one.quantity, one.quantity_to, one.unit, one.name, one.note) == (quantity, quantity_to, unit, name, note)
    assert one.text == line


AS_WRITTEN = some.text("0123456789 /.,-()xX+½⅓¼&'’*abdegklmoprstuàé", max_size=60)


@given(some.text(max_size=200) | AS_WRITTEN)
def test_no_line_is_lost(line: str) -> None:
    one = read_ingredient(line)
    assert one.text == " ".join(line.split())
    assert one.name or not one.text
