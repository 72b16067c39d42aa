"""A row made clean: values that can be compared and looked up, and what was wrong with the others."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import TypedDict

from penstock import Permanent
from penstock.lifecycle import JSON

_LONGEST = {"sku": 100, "brand": 200, "title": 500, "description": 5_000, "category": 300, "quantity": 50}
_LONGEST_OTHER = 2_000
_WEB = ("http://", "https://")
# Joiners are part of words in some scripts; every other invisible character is rubbish from a copy and paste.
_JOINERS = "\u200c\u200d"
_INVISIBLE = ("Cc", "Cf", "Cs")

_SCIENTIFIC = re.compile(r"\d(?:[.,]\d+)?[eE]\+?\d{1,3}")
_LABEL = re.compile(r"[A-Za-z]++(?:-?(?:8|1[0-4]))?(?:\s*+[:#]\s*+|\s++)")
_BETWEEN_DIGITS = re.compile(r"[\s\-‐‑–.]")
_WHOLE_FLOAT = re.compile(r"(\d{8,14})[.,]0+")

_NO_EAN = "0" * 13
_MACHINE_NUMBER = re.compile(r"\d{1,15}(?:\.\d{1,10})?")
_SIGNS = {
    "€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR", "₺": "TRY", "₴": "UAH", "₩": "KRW", "₪": "ILS", "฿": "THB",
    "zł": "PLN", "zl": "PLN", "kč": "CZK", "fr.": "CHF", "euro": "EUR", "euros": "EUR",
    "$": "USD", "us$": "USD", "ca$": "CAD", "c$": "CAD", "a$": "AUD", "au$": "AUD", "nz$": "NZD", "hk$": "HKD",
    "s$": "SGD", "sg$": "SGD", "nt$": "TWD", "r$": "BRL", "mx$": "MXN", "ar$": "ARS", "cl$": "CLP", "col$": "COP",
}  # fmt: skip
_CODES = frozenset((
    "AED", "ARS", "AUD", "BGN", "BRL", "CAD", "CHF", "CLP", "CNY", "COP", "CZK", "DKK", "EUR", "GBP", "HKD", "HUF",
    "ILS", "INR", "ISK", "JPY", "KRW", "MXN", "NOK", "NZD", "PLN", "RON", "RUB", "SEK", "SGD", "THB", "TRY", "TWD",
    "UAH", "USD", "ZAR",
))  # fmt: skip
_AMOUNT = re.compile(r"[^\d]*?(-?(?:(?<![A-Za-z.])[.,])?\d[\d.,'’\s]*+)(?:,?[-–—]{1,2})?([^\d]*+)")
_PLAIN_PRICE = re.compile(r"(?:0|[1-9][0-9]{0,8})[.,][0-9]{2}")
_WORDS_OF_THREE = re.compile(r"(?<![^\W\d_])[A-Za-z]{3}(?![^\W\d_])")
_GROUPS = re.compile(r"['’\s]")


def _sign_pattern(sign: str) -> str:
    """The sign by itself: no dollar of an unknown country ("X$"), no "zl" of a puzzle; "R $" is written, too."""
    before = r"(?<![^\W\d_])" if sign == "$" or sign[0].isalpha() else ""
    after = r"(?![^\W\d_])" if sign[-1].isalpha() else ""
    pattern = rf"{sign[:-1]}\s?\$" if sign[1:].endswith("$") else re.escape(sign)
    return f"{before}{pattern}{after}"


# The longest first: "ca$" holds "$".
_SIGN = re.compile("|".join(f"({_sign_pattern(sign)})" for sign in sorted(_SIGNS, key=len, reverse=True)))
_CODES_OF_SIGNS = [_SIGNS[sign] for sign in sorted(_SIGNS, key=len, reverse=True)]


class Product(TypedDict, total=False):
    """The clean values of a row, as they are kept in ``normalized_json``; a value that is missing is left out."""

    sku: str
    gtin: str
    gtin_given: str
    brand: str
    title: str
    description: str
    category: str
    price: str
    currency: str
    quantity: str
    url: str
    image: str
    warnings: list[str]


class Unusable(Permanent):
    """A row in which there is nothing to look a product up by."""

    code = "ROW_HAS_NO_PRODUCT"


def normalizer(fields: Sequence[str | None]) -> Callable[[Sequence[str]], Product]:
    """What makes a row clean whose cells hold these fields; None is a column nobody needs.

    A table has one shape and perhaps a million rows, so what can be known from its shape is found out once.
    """
    longest = [0 if field is None else _LONGEST.get(field, _LONGEST_OTHER) for field in fields]
    texts = [(at, field, _LONGEST[field]) for at, field in enumerate(fields) if field in _LONGEST]
    links = [(at, field) for at, field in enumerate(fields) if field in ("url", "image")]
    gtin, price, currency = (fields.index(name) if name in fields else None for name in ("gtin", "price", "currency"))

    def clean_row(cells: Sequence[str]) -> Product:
        if not _all_clean("|".join(cells)):
            cells = [clean(text, limit) if limit else "" for text, limit in zip(cells, longest, strict=False)]
        warnings: list[str] = []
        product: JSON = {
            field: text if len(text) <= limit else text[:limit].rstrip()
            for at, field, limit in texts
            if (text := cells[at])
        }
        product["warnings"] = warnings
        if gtin is not None and (number := cells[gtin]):
            if _is_good_ean(number):  # what most tables hold
                product["gtin"] = product["gtin_given"] = number
            else:
                _add_gtin(product, number[:_LONGEST_OTHER], warnings)
        for at, field in links:
            if link := cells[at]:
                if link.startswith(_WEB) or link.lower().startswith(_WEB):
                    product[field] = link[:_LONGEST_OTHER]
                else:
                    warnings.append(f"{field} {link[:80]!r} is not a web address, and is left out")
        cost = "" if price is None else cells[price][:_LONGEST_OTHER]
        money = "" if currency is None else cells[currency][:_LONGEST_OTHER]
        if money in _CODES and _PLAIN_PRICE.fullmatch(cost):
            product["price"], product["currency"] = cost.replace(",", "."), money
        elif cost or money:
            _add_price(product, cost, money, warnings)
        if not ("sku" in product or "gtin" in product or "title" in product):
            raise _nothing_to_look_up(warnings)
        return product  # type: ignore[no-any-return]

    return clean_row


def _nothing_to_look_up(warnings: Sequence[str]) -> Unusable:
    reasons = f" ({'; '.join(warnings)})" if warnings else ""
    return Unusable(
        f"the row has no article number, no barcode number and no title to look up{reasons}: fill one of them in"
    )


def _all_clean(row: str) -> bool:
    """Are all the cells between the bars as ``clean`` would leave them? One look at a row costs less than ten."""
    return (
        row.isprintable()
        and (row.isascii() or unicodedata.is_normalized("NFC", row))
        and "  " not in row
        and " |" not in row
        and "| " not in row
        and row[:1] != " "
        and row[-1:] != " "
    )


def clean(text: str | None, longest: int = _LONGEST_OTHER) -> str:
    r"""One line of visible text, however it was typed.

    >>> clean("  Blue\x00\u00a0 pen\n")
    'Blue pen'
    """
    if not text:
        return ""
    # Nearly every cell is like this: nothing invisible in it, and no space but the plain one.
    if text.isprintable() and (text.isascii() or unicodedata.is_normalized("NFC", text)):
        if text[0] == " " or text[-1] == " " or "  " in text:
            text = " ".join(text.split())
        return text if len(text) <= longest else text[:longest].rstrip()
    line = " ".join(unicodedata.normalize("NFC", text).split())
    visible = "".join(
        character for character in line if character in _JOINERS or unicodedata.category(character) not in _INVISIBLE
    )
    # Taking characters out may leave two spaces together.
    return " ".join(visible.split())[:longest].rstrip()


def check_digit(digits: str) -> str:
    """The last digit of a GTIN whose other digits these are.

    >>> check_digit("400638133393")
    '1'
    """
    values = digits.encode("ascii")
    heavy, light = values[-1::-2], values[-2::-2]
    # The code of "0" is 48.
    return str(-(3 * (sum(heavy) - 48 * len(heavy)) + sum(light) - 48 * len(light)) % 10)


def _is_good_ean(text: str) -> bool:
    """Is it 13 plain digits whose last one fits? Digits count once and three times in turn, to a multiple of ten."""
    if len(text) != 13 or not text.isascii() or not text.isdigit() or text == _NO_EAN:
        return False
    # The codes of digits do as well as their values: by these weights "0" adds 25 * 48, a multiple of ten.
    values = text.encode()
    return (sum(values[::2]) + 3 * sum(values[1::2])) % 10 == 0


def canonical_gtin(text: str) -> str | None:
    """One spelling for a number that is written with 8 to 14 digits, or None where the check digit is wrong.

    A UPC-A is an EAN-13 that starts with 0, and so is a GTIN-14 whose first digit is 0; an ISBN-10 has a 13-digit twin.

    >>> canonical_gtin("036000291452"), canonical_gtin("0-306-40615-2"), canonical_gtin("4006381333932")
    ('0036000291452', '9780306406157', None)
    """
    if _is_good_ean(text):  # what most tables hold
        return text
    digits = _BETWEEN_DIGITS.sub("", unicodedata.normalize("NFKC", text)).upper()
    if re.fullmatch(r"[0-9]{9}[0-9X]", digits):
        values = [10 if digit == "X" else int(digit) for digit in digits]
        if sum(value * weight for value, weight in zip(values, range(10, 0, -1), strict=True)) % 11:
            return None
        body = "978" + digits[:9]
        return body + check_digit(body)
    if not re.fullmatch(r"[0-9]{8}|[0-9]{12,14}", digits) or not digits.strip("0"):
        return None
    if check_digit(digits[:-1]) != digits[-1]:
        return None
    if len(digits) == 14 and digits[0] == "0":
        return digits[1:]
    return digits.zfill(13) if len(digits) == 12 else digits


def same_gtin(first: str | None, second: str | None) -> bool:
    """Do two numbers name the same product, however many zeros they start with?"""
    numbers = canonical_gtin(first or ""), canonical_gtin(second or "")
    return numbers[0] is not None and numbers[1] is not None and numbers[0].zfill(14) == numbers[1].zfill(14)


def price_and_currency(text: str) -> tuple[str, str | None, str | None]:
    """The amount as a decimal number, its currency if the text says it, and a warning where the text can be read twice.

    >>> price_and_currency("1.299,00 €"), price_and_currency("$1,299.00")
    (('1299.00', 'EUR', None), ('1299.00', 'USD', None))
    """
    if _PLAIN_PRICE.fullmatch(text):
        return text.replace(",", "."), None, None
    currency = _currency_in(text)
    match = _AMOUNT.fullmatch(text)
    if match is None:
        raise ValueError(f"price {text[:80]!r} is not a single amount, and is left out")
    digits = _GROUPS.sub("", match[1]).rstrip(".,")
    if digits.startswith("-") or "-" in text[: match.start(1)]:
        raise ValueError(f"price {text[:80]!r} is below zero, and is left out")
    number, doubtful = _with_decimal_point(digits)
    try:
        amount = Decimal(number)
    except InvalidOperation:
        raise ValueError(f"price {text[:80]!r} is not a number, and is left out") from None
    if len(number) > 20:
        raise ValueError(f"price {text[:80]!r} has too many digits, and is left out")
    return str(amount), currency, f"price {text[:80]!r} was read as {amount}" if doubtful else None


def machine_price(value: str | float) -> tuple[str, str | None]:
    """An amount a program wrote, where a point is a decimal point; a person's way of writing is understood too."""
    text = clean(str(value))
    if _MACHINE_NUMBER.fullmatch(text):
        return text, None
    amount, currency, _ = price_and_currency(text)
    return amount, currency


def _with_decimal_point(digits: str) -> tuple[str, bool]:
    """The number with at most one point in it, and whether its mark might have meant the other thing."""
    point, comma = digits.rfind("."), digits.rfind(",")
    if point < 0 and comma < 0:
        return digits, False
    mark, other = (".", ",") if point > comma else (",", ".")
    whole, _, part = digits.rpartition(mark)
    if other in digits:
        return f"{whole.replace(other, '').replace(mark, '')}.{part}", False
    if mark in whole:
        return digits.replace(mark, ""), False
    if len(part) == 3 and 1 <= len(whole) <= 3 and whole.strip("0"):
        return whole + part, True
    return f"{whole or '0'}.{part}", False


@lru_cache(1_000)  # a table says the same ones again and again
def _currency_in(text: str) -> str | None:
    for word in _WORDS_OF_THREE.findall(text):
        if word.upper() in _CODES:
            return str(word.upper())
    sign = _SIGN.search(text.lower())
    return None if sign is None or sign.lastindex is None else _CODES_OF_SIGNS[sign.lastindex - 1]


def _add_gtin(product: Product, text: str, warnings: list[str]) -> None:
    if _SCIENTIFIC.fullmatch(text):
        warnings.append(
            f"barcode number {text!r} lost its last digits in a spreadsheet: format the column as text and export again"
        )
        return
    label = _LABEL.match(text)
    digits = text[label.end() :] if label else text
    if whole := _WHOLE_FLOAT.fullmatch(digits):
        digits = whole[1]
    digits = _BETWEEN_DIGITS.sub("", unicodedata.normalize("NFKC", digits)).upper()
    gtin = canonical_gtin(digits)
    if gtin is None and re.fullmatch(r"[0-9]{11}", digits) and (gtin := canonical_gtin("0" + digits)):
        warnings.append(f"barcode number {text[:40]!r} has 11 digits; it was read with the zero it lost: 0{digits}")
    if gtin is not None:
        product["gtin"] = gtin
        product["gtin_given"] = digits
    elif re.fullmatch(r"[0-9]{8}|[0-9]{12,14}|[0-9]{9}[0-9X]", digits):
        warnings.append(f"barcode number {text[:40]!r} has a wrong check digit, and is not looked up")
    else:
        warnings.append(f"barcode number {text[:40]!r} is not one (8, 12, 13 or 14 digits), and is not looked up")


def _add_price(product: Product, price: str, currency: str, warnings: list[str]) -> None:
    code = _currency_in(currency) if currency else None
    if currency and code is None:
        warnings.append(f"currency {currency[:40]!r} is not known, and is left out")
    if price:
        try:
            amount, beside, doubt = price_and_currency(price)
        except ValueError as error:
            warnings.append(str(error))
        else:
            product["price"] = amount
            code = code or beside
            if doubt:
                warnings.append(doubt)
    if code:
        product["currency"] = code
