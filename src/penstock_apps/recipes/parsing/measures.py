"""Words for measures in the languages recipes are written in, and the one word each of them means here."""

from __future__ import annotations

import unicodedata

_WORDS = {
    "teaspoon": "teaspoon teaspoons tsp tsps tl teelöffel theelepel theelepels tsk tesked teskedar ts teskje teskjeer"
    " cucharadita cucharaditas cdta cdtas cdita cucchiaino cucchiaini łyżeczka łyżeczki łyżeczek càc",
    "tablespoon": "tablespoon tablespoons tbsp tbsps tbs tbl tblsp el esslöffel eetlepel eetlepels msk matsked"
    " matskedar spsk spiseske spiseskeer ss cucharada cucharadas cda cdas cucchiaio cucchiai łyżka łyżki łyżek càs",
    "cup": "cup cups tasse tassen tasses taza tazas tazza tazze kopje kopjes xícara xícaras szklanka szklanki szklanek",
    "glass": "glass glasses verre verres vaso vasos",
    "fluid ounce": "floz",
    "ounce": "ounce ounces oz",
    "pound": "pound pounds lb lbs",
    "pint": "pint pints pt",
    "quart": "quart quarts qt qts",
    "gallon": "gallon gallons gal",
    "milligram": "milligram milligrams mg",
    "gram": "gram grams gramme grammes gramm gramos grammi g gr",
    "kilogram": "kilogram kilograms kilo kilos kg kgs",
    "millilitre": "millilitre millilitres milliliter milliliters ml",
    "centilitre": "centilitre centilitres centiliter centiliters cl",
    "decilitre": "decilitre decilitres deciliter deciliters dl",
    "litre": "litre litres liter liters litro litros litri l",
    "centimetre": "centimetre centimetres centimeter centimeters cm",
    "inch": "inch inches",
    "pinch": "pinch pinches prise prisen pincée pincées pizca pizzico pitada snufje snufjes nypa szczypta szczypty",
    "dash": "dash dashes",
    "drop": "drop drops tropfen",
    "splash": "splash splashes schuss",
    "drizzle": "drizzle drizzles",
    "knob": "knob knobs",
    "handful": "handful handfuls handvoll poignée poignées puñado",
    "bunch": "bunch bunches bund botte bottes bosje manojo knippe bundt",
    "sprig": "sprig sprigs zweig zweige brin brins rama ramas rametto rametti takje takjes",
    "stalk": "stalk stalks",
    "stick": "stick sticks",
    "clove": "clove cloves zehe zehen gousse gousses diente dientes dente dentes spicchio spicchi teentje teentjes"
    " klyfta klyftor fed fedd ząbek ząbki ząbków",
    "head": "head heads",
    "slice": "slice slices scheibe scheiben tranche tranches rebanada rebanadas fetta fette fatia fatias plak plakjes",
    "piece": "piece pieces stück stuk stuks stk",
    "sheet": "sheet sheets",
    "can": "can cans dose dosen boîte boîtes lata latas blik blikje burk burkar dåse boks",
    "tin": "tin tins",
    "jar": "jar jars glas",
    "bottle": "bottle bottles flasche flaschen bouteille",
    "package": "package packages pkg pkgs packet packets pack packs päckchen pck sachet sachets bustina bustine",
    "bag": "bag bags beutel påse",
    "box": "box boxes",
    "carton": "carton cartons",
    "envelope": "envelope envelopes",
    "container": "container containers",
    "scoop": "scoop scoops",
    "leaf": "leaf leaves blatt blätter feuille feuilles hoja hojas foglia foglie",
    "rasher": "rasher rashers",
    "fillet": "fillet fillets",
}
_PHRASES = {
    "fluid ounce": ("fluid ounce", "fluid ounces", "fl oz"),
    "tablespoon": (
        "c à soupe", "cuillère à soupe", "cuillères à soupe", "cuillerée à soupe", "colher de sopa", "colheres de sopa",
    ),
    "teaspoon": (
        "c à café", "cuillère à café", "cuillères à café", "cuillerée à café", "colher de chá", "colheres de chá",
    ),
}  # fmt: skip
# These letters mean different things in capitals and in small: a T is three times a t.
_BY_CASE = {"T": "tablespoon", "Tb": "tablespoon", "Tbs": "tablespoon", "t": "teaspoon", "c": "cup", "C": "cup"}

CONTAINERS = frozenset({"bag", "bottle", "box", "can", "carton", "container", "envelope", "jar", "package", "tin"})
"""Their size often stands before them: a 15-ounce can."""
VAGUE = frozenset({"pinch", "dash", "splash", "drizzle", "knob", "handful"})
"""Which need no number: a pinch is one."""
BEHIND = frozenset({"clove", "sprig", "stalk"})
"""Which may follow what they measure: two garlic cloves."""
MAX_WORDS = 3


def _without_accents(text: str) -> str:
    return "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))


_MEANING: dict[str, str] = {}
for _unit, _names in [(unit, words.split()) for unit, words in _WORDS.items()] + [*_PHRASES.items()]:
    for _word in _names:
        _MEANING[_word] = _unit
        _MEANING.setdefault(_without_accents(_word), _unit)


def measure(words: str) -> str | None:
    """What some words mean, if they are a measure.

    >>> measure("Tbsp."), measure("c. à soupe"), measure("T"), measure("t"), measure("eggs")
    ('tablespoon', 'tablespoon', 'tablespoon', 'teaspoon', None)
    """
    name = words.replace(".", "")
    return _BY_CASE.get(name) or _MEANING.get(name.lower())
