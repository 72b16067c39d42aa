"""Pieces of text on a page are read as a person reads them."""

from __future__ import annotations

import math

from penstock_apps.recipes.photos.reading_order import in_reading_order
from penstock_apps.recipes.photos.text_lines import Corner, SeenText
from tests.applications.recipes.photos import line


def texts(*seen: SeenText) -> list[str]:
    return [each.text for each in in_reading_order(seen)]


def turned(piece: SeenText, degrees: float) -> SeenText:
    """The same on a page that lies askew."""
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))

    def place(corner: Corner) -> Corner:
        return corner[0] * cosine - corner[1] * sine, corner[0] * sine + corner[1] * cosine

    first, second, third, fourth = map(place, piece.corners)
    return SeenText(piece.text, piece.confidence, (first, second, third, fourth))


LEFT = [line(text, 20, 100 + 30 * n) for n, text in enumerate(("6 apples", "100 g sugar", "150 g flour", "butter"))]
RIGHT = [line(text, 260, 102 + 30 * n) for n, text in enumerate(("Peel them.", "Rub it in.", "Stir.", "Bake."))]
IN_COLUMNS = [piece.text for piece in (*LEFT, *RIGHT)]


def test_nothing_is_no_line() -> None:
    assert texts() == []


def test_lines_come_from_top_to_bottom_and_pieces_of_one_line_are_one() -> None:
    pieces = (line("cups", 40, 41), line("End", 10, 80), line("2", 10, 40), line("Title", 10, 0))
    assert texts(*pieces) == ["Title", "2 cups", "End"]


def test_columns_are_read_one_after_the_other() -> None:
    mixed = [piece for pair in zip(RIGHT, LEFT, strict=True) for piece in pair]
    assert texts(*mixed) == IN_COLUMNS


def test_a_title_over_both_columns_and_a_line_below_them_are_in_their_places() -> None:
    title, foot = (
        line("A title that goes over the whole page", 20, 20),
        line("And a note below all of it, here", 20, 400),
    )
    assert texts(*RIGHT, foot, *LEFT, title) == [title.text, *IN_COLUMNS, foot.text]


def test_a_line_that_crosses_the_gutter_ends_the_columns_above_it() -> None:
    middle = line("For the sauce, which is best made a day before", 20, 240)
    below = [line(f"left {n}", 20, 300 + 30 * n) for n in range(3)] + [
        line(f"right {n}", 260, 300 + 30 * n) for n in range(3)
    ]
    assert texts(*below, *RIGHT, middle, *LEFT) == [
        *IN_COLUMNS, middle.text, "left 0", "left 1", "left 2", "right 0", "right 1", "right 2",
    ]  # fmt: skip


def test_three_columns() -> None:
    third = [line(f"note {n}", 480, 100 + 30 * n) for n in range(4)]
    assert texts(*third, *RIGHT, *LEFT) == [*IN_COLUMNS, "note 0", "note 1", "note 2", "note 3"]


def test_amounts_beside_their_ingredients_are_a_table() -> None:
    amounts = [line(text, 20, 100 + 30 * n) for n, text in enumerate(("500 g", "4", "250 ml", "1 ½ TL"))]
    names = [line(text, 200, 100 + 30 * n) for n, text in enumerate(("Mehl", "Eier", "Wasser", "Salz"))]
    assert texts(*names, *amounts) == ["500 g Mehl", "4 Eier", "250 ml Wasser", "1 ½ TL Salz"]


def test_a_page_that_lies_askew_is_read_as_if_it_did_not() -> None:
    amounts = [line(f"{n}00 g", 20, 100 + 30 * n) for n in range(1, 5)]
    names = [line(name, 700, 100 + 30 * n) for n, name in enumerate(("flour", "sugar", "butter", "nuts"), 1)]
    for degrees in (-6, 3, 8):
        assert texts(*(turned(piece, degrees) for piece in (*RIGHT, *LEFT))) == IN_COLUMNS
        table = (turned(piece, degrees) for piece in (*names, *amounts))  # far apart: the next line is beside the name
        assert texts(*table) == ["100 g flour", "200 g sugar", "300 g butter", "400 g nuts"]


def test_the_space_above_a_line_is_told_in_lines() -> None:
    lines = in_reading_order([line("a", 0, 0), line("b", 0, 25), line("c", 0, 85)])
    assert [round(each.gap, 2) for each in lines] == [0.0, 0.25, 2.0]


def test_thousands_of_pieces_are_read_in_time() -> None:
    many = [line("word", 100 * (n % 40), 30 * (n // 40)) for n in range(4_000)]
    assert len(" ".join(texts(*many)).split()) == 1_000, "and what is beyond is left out"
