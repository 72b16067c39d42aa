"""Pictures of recipes for tests, drawn with a font of Debian's: a card, one askew, two columns, one in German."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from zlib import crc32

from PIL import Image, ImageDraw, ImageFont

from penstock_apps.recipes.photos.text_lines import PictureFile, PictureText, SeenText

CARD = (
    (34, "Tomato soup"), (16, "Serves 4"), (18, ""),
    (18, "Ingredients"), (18, "2 tbsp olive oil"), (18, "1 ½ cups tomatoes, chopped"), (18, "Salt, to taste"), (18, ""),
    (18, "Method"), (18, "1. Warm the oil in a pot and fry the"), (18, "onion until it is soft."),
    (18, "2. Add the tomatoes and simmer."),
)  # fmt: skip
GERMAN = (
    (34, "Omas Käsespätzle"), (16, "Für 4 Personen"), (18, ""),
    (18, "Zutaten"), (18, "500 g Mehl"), (18, "4 Eier"), (18, "200 g Bergkäse, gerieben"), (18, ""),
    (18, "Zubereitung"), (18, "Mehl, Eier und Wasser zu einem"), (18, "zähen Teig schlagen."),
    (18, "Den Teig in kochendes Wasser hobeln."),
)  # fmt: skip
LEFT = ((18, "INGREDIENTS"), (18, "6 apples"), (18, "100 g sugar"), (18, "150 g flour"), (18, "75 g butter"))
RIGHT = (
    (18, "METHOD"), (18, "Peel the apples and cut them up."), (18, "Rub the butter into the flour."),
    (18, "Stir in the sugar."), (18, "Bake for 40 minutes."),
)  # fmt: skip
Lines = Sequence[tuple[int, str]]


def draw(*columns: tuple[int, int, Lines], size: tuple[int, int]) -> Image.Image:
    """A page with columns of lines, each with its place and the size of its letters."""
    picture = Image.new("RGB", size, "#fdf8ec")
    canvas = ImageDraw.Draw(picture)
    for left, top, lines in columns:
        for height, text in lines:
            canvas.text((left, top), text, fill="#222", font=ImageFont.truetype("DejaVuSans.ttf", height))
            top += round(height * 1.6)
    return picture


def card(lines: Lines = CARD) -> Image.Image:
    return draw((30, 24, lines), size=(460, 460))


def askew() -> Image.Image:
    return card().rotate(3, expand=True, fillcolor="#8a7a66", resample=Image.Resampling.BICUBIC)


def two_columns() -> Image.Image:
    return draw((30, 20, ((34, "Apple crumble"),)), (30, 100, LEFT), (250, 100, RIGHT), size=(620, 290))


def encoded(picture: Image.Image, file_format: str = "PNG", **options: object) -> bytes:
    content = io.BytesIO()
    picture.save(content, file_format, **options)
    return content.getvalue()


def bomb() -> bytes:
    """A small file that says of itself to be 60,000 by 60,000 pixels."""
    png = bytearray(encoded(Image.new("L", (8, 8))))
    png[16:24] = (60_000).to_bytes(4) * 2
    png[29:33] = crc32(png[12:29]).to_bytes(4)
    return bytes(png)


def line(text: str, left: float, top: float, *, height: float = 20, confidence: float = 1.0) -> SeenText:
    """A piece of text in its place; ten pixels for each of its letters."""
    right, bottom = left + 10 * len(text), top + height
    return SeenText(text, confidence, ((left, top), (right, top), (right, bottom), (left, bottom)))


SEEN = tuple(line(text, 30, 40 * place, height=size * 1.2) for place, (size, text) in enumerate(CARD) if text)


# What runs in a process in place of the library: functions at the top of a module, which that process can import.


def read_at_once(file: PictureFile) -> PictureText:
    """The same card on each picture."""
    return PictureText(SEEN, encoded(Image.new("RGB", (46, 46), "green"), "JPEG"), 460, 460)


def read_and_die(file: PictureFile) -> PictureText:
    """What a decoder does that crashes."""
    os.abort()


def read_without_library(file: PictureFile) -> PictureText:
    """What happens in a worker that lacks the extra."""
    import sys

    from penstock_apps.recipes.photos.text_reader import read_picture

    sys.modules["rapidocr"] = None  # type: ignore[assignment]
    return read_picture(file)


def read_too_much(file: PictureFile) -> PictureText:
    """What a picture does that takes far more memory than its file."""
    return PictureText(SEEN, bytes(10**10)[:1], 1, 1)


def see_at_once(file: PictureFile) -> PictureText:
    """Opens the picture as ever, and sees the same card on each."""
    from penstock_apps.recipes.photos.pictures import open_upright, preview_of

    picture = open_upright(file)
    return PictureText(SEEN, preview_of(picture), picture.width, picture.height)


def read_for_ever(file: PictureFile) -> PictureText:
    """What a picture does that was made for it."""
    while True:
        pass
