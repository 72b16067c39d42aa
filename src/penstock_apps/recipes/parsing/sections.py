"""Parts of a recipe: "For the sauce", and the ingredients or steps that belong to it."""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from penstock_apps.recipes.parsing.ingredients import Ingredient, read_ingredient

Part = tuple[str, str | None]
"""A line, and the section it belongs to."""
_LONGEST = 80
_FOR_THE = re.compile(
    r"(?:for the|for your|für (?:den|die|das)|pour (?:la|le|les|l['’])|para (?:la|el|los|las|o|a|os|as)|"
    r"per (?:la|il|lo|i|gli|le|l['’])|voor (?:de|het)|til (?:den|det)?|till )\b",
    re.IGNORECASE,
)
_GENERAL = re.compile(
    r"(?:the )?(?:ingredients?( list)?|you(?:['’]| wi)ll need|what you need|shopping list|"
    r"zutaten(?:liste)?|das brauchst du|ingrédients?|ingredientes|ingredienti|ingrediënten|benodigdheden|"
    r"ingrediens(?:er|en)?|"
    r"det skal du bruge|składniki|suroviny|ingrediencie|hozzávalók|ингредиенты|υλικά|malzemeler|材料|食材|재료|"
    r"ainekset|ingrediente|sastojci|sestavine|מצרכים|المكونات)\b",
    re.IGNORECASE,
)
_METHOD = re.compile(
    r"(?:instructions?|directions?|method|procedure|preparation|steps?(?: \d+)?|how to (?:make|cook|bake|prepare)|"
    r"zubereitung|anleitung|so geht['’]?s|préparation|étapes?|la recette|preparación|elaboración|instrucciones|pasos|"
    r"modo de (?:preparo|preparação|fazer)|preparação|preparo|preparazione|procedimento|bereiding(?:swijze)?|werkwijze|"
    r"fremgangsmåde|framgangsmåde|sådan gør du|tilberedning|framgangsmåte|slik gjør du|tillagning|gör så här|"
    r"instruktioner|"
    r"przygotowanie|sposób (?:przygotowania|wykonania)|wykonanie|postup|elkészítés|приготовление|εκτέλεση|"
    r"hazırlanışı|yapılışı|作り方|做法|步骤|만드는 법|valmistus|ohje|mod de preparare|priprava|priprema)\b",
    re.IGNORECASE,
)


def is_general(heading: str) -> bool:
    """Does a heading stand over all ingredients?"""
    return _GENERAL.match(heading.strip()) is not None


def is_method(heading: str) -> bool:
    """Does a heading stand over the steps?"""
    return _METHOD.match(heading.strip()) is not None


def section_in(line: str) -> str | None:
    """The section that begins with a line which is no ingredient itself.

    >>> section_in("For the sauce:"), section_in("Topping:"), section_in("2 eggs:"), section_in("Salt")
    ('For the sauce', 'Topping', None, None)
    """
    name = line.strip().rstrip(":：").strip(" *-–")
    if not name or len(name) > _LONGEST or any(character.isdigit() for character in name):
        return None
    if line.rstrip().endswith((":", "：")):
        return name
    return name if _FOR_THE.match(name) and "," not in name and len(name.split()) <= 6 else None


def read_ingredients(lines: Sequence[str]) -> list[Ingredient]:
    """Ingredients of their lines; the lines that say what those below them are for are kept as their sections."""
    return read_parts([(line, None) for line in lines])


def read_parts(parts: Sequence[Part]) -> list[Ingredient]:
    """The same of lines some of whose sections are known."""
    ingredients: list[Ingredient] = []
    section: str | None = None
    for place, (line, own) in enumerate(parts):
        name = section_in(line) if place + 1 < len(parts) else None
        if name is not None and section_in(parts[place + 1][0]) is None:
            section = None if is_general(name) else name
        else:
            ingredients.append(replace(read_ingredient(line), section=own or section))
    return ingredients


def split_steps(parts: Iterable[Part]) -> tuple[list[str], list[str | None]]:
    """The steps, and the section of each; a step that only says what the next ones are for is their section."""
    all_parts = list(parts)
    steps: list[str] = []
    sections: list[str | None] = []
    section: str | None = None
    for place, (text, own) in enumerate(all_parts):
        name = section_in(text) if _FOR_THE.match(text) and place + 1 < len(all_parts) else None
        if name is not None:
            section = name
            continue
        steps.append(text)
        sections.append(own or section)
    return steps, sections if any(sections) else []


def key_of(line: str) -> str:
    """What a line is known by: its letters and digits, however it is set."""
    return "".join(character for character in unicodedata.normalize("NFKC", line).casefold() if character.isalnum())


def with_sections_of(ingredients: list[Ingredient], page_parts: Iterator[Part]) -> list[Ingredient]:
    """Ingredients with the sections that the page shows them below; as they are where it does not say so clearly."""
    places: dict[str, deque[int]] = {}
    for place, ingredient in enumerate(ingredients):
        places.setdefault(key_of(ingredient.text), deque()).append(place)
    page_sections: dict[int, str | None] = {}
    for line, section in page_parts:
        waiting = places.get(key_of(line))
        if waiting:
            page_sections[waiting.popleft()] = section
            if len(page_sections) == len(ingredients):
                break
    names = {section for section in page_sections.values() if section}
    if len(set(page_sections.values())) < 2 or not names or len(page_sections) < 0.7 * len(ingredients):
        return ingredients
    section = None
    result = []
    for place, ingredient in enumerate(ingredients):
        section = page_sections.get(place, section)
        result.append(replace(ingredient, section=section))
    return result
