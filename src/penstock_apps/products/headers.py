"""Which column of a stranger's table holds what: headers in five languages to the fields this app knows.

A header that is one of the known names wins over one that only holds a known name among other words, so that
"Price" is the price even where "Price of shipping" stands to its left.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from types import MappingProxyType

from penstock.errors import InvalidInput

# Names in English, German, French, Spanish and Polish, written as _words() leaves them.
_NAMES = {
    "sku": """sku; sku no; sku number; item no; item number; item nr; item code; item id; article no; article number;
        article nr; art no; art nr; part no; part number; product code; product number; product no; product id;
        product sku; merchant sku; seller sku; model number; mpn; style number; artikelnummer; artikelnr; artikel nr;
        artikel nummer; artikel no; bestellnummer; bestellnr; produktnummer; materialnummer; reference; ref; ref no;
        reference produit; code article; code produit; numero article; numero d article; numero de articulo; referencia;
        codigo; codigo producto; codigo de producto; codigo de articulo; numer artykulu; nr artykulu; kod produktu;
        kod towaru; indeks; symbol""",
    "gtin": """gtin; gtin 8; gtin 12; gtin 13; gtin 14; ean; ean 8; ean 13; ean code; ean nr; ean nummer; ean number;
        upc; upc a; upc code; barcode; bar code; barcode number; barcodes; isbn; isbn 10; isbn 13; jan; strichcode;
        strichcodenummer; code barre; code barres; code a barres; codebarre; gencod; codigo de barras; codigo barras;
        kod ean; kod kreskowy; kod paskowy; kod gtin""",
    "brand": """brand; brand name; manufacturer; manufacturer name; maker; vendor; label; marke; markenname; hersteller;
        herstellername; marque; fabricant; fabrique par; marca; fabricante; marka; producent; nazwa producenta""",
    "title": """title; name; product name; product title; product; item name; item title; item; article name;
        bezeichnung; artikelbezeichnung; produktbezeichnung; titel; artikelname; produktname; artikel; produkt; titre;
        nom; nom du produit; nom produit; libelle; designation; intitule; produit; titulo; nombre; nombre del producto;
        nombre producto; producto; denominacion; tytul; nazwa; nazwa produktu; nazwa towaru; towar""",
    "description": """description; product description; long description; short description; details; beschreibung;
        produktbeschreibung; artikelbeschreibung; langtext; kurztext; description produit; descriptif; descripcion;
        descripcion del producto; opis; opis produktu""",
    "category": """category; categories; product category; product type; product group; department; kategorie;
        warengruppe; produktgruppe; artikelgruppe; produktkategorie; categorie; rayon; famille; categoria; familia;
        seccion; kategoria; grupa; grupa towarowa; dzial""",
    "price": """price; unit price; list price; sale price; retail price; selling price; regular price; cost; rrp;
        msrp; preis; verkaufspreis; einzelpreis; stueckpreis; stuckpreis; listenpreis; uvp; vk; vk preis; bruttopreis;
        prix; prix unitaire; prix de vente; prix ttc; tarif; precio; precio unitario; precio de venta; pvp; importe;
        cena; cena brutto; cena netto; cena jednostkowa; cena sprzedazy""",
    "currency": """currency; currency code; price currency; waehrung; wahrung; devise; monnaie; moneda; divisa;
        waluta""",
    "quantity": """quantity; qty; stock; in stock; stock level; stock quantity; count; units; pieces; pcs; menge;
        anzahl;
        bestand; lagerbestand; stueck; stuck; stueckzahl; quantite; qte; cantidad; existencias; unidades; ilosc;
        stan; stan magazynowy; sztuk; szt""",
    "url": """url; link; product url; product link; web address; website; webpage; page; deeplink; produktlink;
        produkt url; artikellink; adresse web; lien; lien produit; lien du produit; enlace; enlace del producto;
        adres url; strona; link do produktu""",
    "image": """image; image url; image link; main image; picture; picture url; photo; photo url; img; image src;
        thumbnail; bild; bild url; bildlink; produktbild; hauptbild; foto; foto url; url image; lien image; imagen;
        url imagen; enlace imagen; zdjecie; obraz; obrazek; link do zdjecia""",
}  # fmt: skip

# Words that mean something on their own, and anything at all inside a longer header.
_ALONE = frozenset((
    "name", "product", "item", "produkt", "artikel", "produit", "producto", "towar", "nom", "nombre", "nazwa", "text",
    "page", "details", "label", "amount", "cost", "count", "units", "pieces", "stan", "grupa", "ref", "reference",
    "referencia", "symbol", "indeks", "codigo", "familia", "famille", "vk", "strona",
))  # fmt: skip
_EXACT = 1000
FIELDS = tuple(_NAMES)
"""What a column may hold."""
Fields = dict[str, str | None]
"""The field of each header; None for a column that nobody needs."""
_LETTERS = str.maketrans({"ł": "l", "Ł": "L", "ß": "ss", "ø": "o", "Ø": "O", "œ": "oe", "Œ": "Oe", "æ": "ae"})
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_ASIDE = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
_NOT_WORDS = re.compile(r"[^a-z0-9]+")


def map_headers(headers: Sequence[str], mapping: Mapping[str, str | None] = MappingProxyType({})) -> Fields:
    """The field of each header, or None; a field is given once, to the header that fits it best.

    What ``mapping`` says holds; ``InvalidInput`` where it fits neither the headers nor the fields.

    >>> map_headers(["Art.-Nr.", "EAN-13", "Größe", "productName"])
    {'Art.-Nr.': 'sku', 'EAN-13': 'gtin', 'Größe': None, 'productName': 'title'}
    >>> map_headers(["Art.-Nr.", "Regal", "EAN-13"], {"Regal": "sku", "EAN-13": None})
    {'Art.-Nr.': None, 'Regal': 'sku', 'EAN-13': None}
    """
    fields: Fields = dict.fromkeys(headers)
    _require_fitting(mapping, fields)
    fields.update(mapping)
    wishes = [(wish, header) for header in fields if header not in mapping and (wish := _wish(header)) is not None]
    assigned_fields = {field for field in mapping.values() if field is not None}
    # Sorting is stable: of two that fit equally well, the one further left is served first.
    for (_, field), header in sorted(wishes, key=lambda wish: -wish[0][0]):
        if field not in assigned_fields:
            assigned_fields.add(field)
            fields[header] = field
    return fields


def _require_fitting(mapping: Mapping[str, str | None], headers: Collection[str]) -> None:
    owners: dict[str, str] = {}
    for header, field in mapping.items():
        if header not in headers:
            names = ", ".join(repr(name[:40]) for name in list(headers)[:10])
            raise _invalid(f"mapping names the column {header[:100]!r}, and the table has {names}")
        if field is not None and field not in FIELDS:
            raise _invalid(f"mapping takes {header[:100]!r} for {field[:40]!r}; there are {', '.join(FIELDS)}, or null")
        if field is not None and owners.setdefault(field, header) != header:
            raise _invalid(f"mapping takes both {owners[field][:100]!r} and {header[:100]!r} for {field!r}; choose one")


def _invalid(message: str) -> InvalidInput:
    return InvalidInput(message, field="mapping", code="MAPPING_INVALID")


def _wish(header: str) -> tuple[int, str] | None:
    """How well a header fits the field it fits best."""
    words = _words(header)
    if not words:
        return None
    names = _whole_names()
    if whole := names.get("".join(words)):
        return _EXACT, whole
    # What stands in brackets is an aside: "EAN (piece)", "Price [EUR]".
    plain = _words(_ASIDE.sub(" ", header))
    if whole := names.get("".join(plain)):
        return _EXACT - 1, whole
    words = plain or words
    best: tuple[int, str] | None = None
    for phrase, field in _phrases():
        size = len(phrase)
        if any(words[at : at + size] == phrase for at in range(len(words) - size + 1)):
            share = 100 * size // len(words) + len("".join(phrase))
            if best is None or share > best[0]:
                best = share, field
    return best


def _words(text: str) -> tuple[str, ...]:
    """Plain lower-case words: no accents, no punctuation, and "productName" is two of them."""
    apart = _CAMEL.sub(" ", text[:200].translate(_LETTERS))
    plain = unicodedata.normalize("NFKD", apart)
    plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return tuple(_NOT_WORDS.sub(" ", plain.lower()).split())


@cache
def _whole_names() -> dict[str, str]:
    """Each known name with nothing between its words, and its field."""
    return {"".join(name.split()): field for field, names in _NAMES.items() for name in names.split(";")}


@cache
def _phrases() -> tuple[tuple[tuple[str, ...], str], ...]:
    """The known names that still say the same inside a longer header."""
    every = ((tuple(name.split()), field) for field, names in _NAMES.items() for name in names.split(";"))
    return tuple((words, field) for words, field in every if words[0] not in _ALONE or len(words) > 1)
