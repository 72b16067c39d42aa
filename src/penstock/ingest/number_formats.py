"""What a number in a cell means: a date, a time or a duration under a format of those, else the number itself.

A workbook knows dates only as numbers of days with a format of letters for days, months, years, hours, minutes and
seconds. Days count from the end of 1899 or, where the workbook says so, from 1904. The count from 1899 has a 29th of
February 1900, which there never was: so the days before it are one off.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, auto

_LAST_DAY_BEFORE_1900_02_29 = 59
_DAY = timedelta(days=1)
_IN_MILLISECONDS = 86_400_000
# What stands for itself: quoted, escaped, as wide as another character, repeated, in brackets.
_LITERALS = re.compile(r'"[^"]*"?|\\.|_.|\*.|\[[^\]]{0,100}\]|general', re.IGNORECASE | re.DOTALL)
_ELAPSED = re.compile(r"\[(?:h+|m+|s+)\]", re.IGNORECASE)
_MOMENT = re.compile(r"[dmyhs]", re.IGNORECASE)
_ZEROS = re.compile("0{2,}")


class Epoch(Enum):
    """The day that is number 0."""

    WINDOWS = date(1899, 12, 30)
    MAC = date(1904, 1, 1)


class Meaning(Enum):
    """What numbers of a format are."""

    NUMBER = auto()
    MOMENT = auto()
    """A date, a time of day, or both."""
    DURATION = auto()


# The formats a workbook need not write down, those for East Asia included; the others of them are plain numbers.
_BUILT_IN_MOMENTS = frozenset((*range(14, 23), *range(27, 37), 45, 47, *range(50, 59)))
_BUILT_IN_DURATION = 46


def meaning_of_built_in(number: int) -> Meaning:
    """What numbers are whose format is known by its number.

    >>> meaning_of_built_in(14), meaning_of_built_in(2)
    (<Meaning.MOMENT: 2>, <Meaning.NUMBER: 1>)
    """
    if number == _BUILT_IN_DURATION:
        return Meaning.DURATION
    return Meaning.MOMENT if number in _BUILT_IN_MOMENTS else Meaning.NUMBER


def meaning_of(code: str) -> Meaning:
    """What numbers of a format are; of its sections the first one counts, which is for those above zero.

    >>> meaning_of("[$-409]d-mmm-yy"), meaning_of("[h]:mm"), meaning_of('0.00" days"'), meaning_of("General")
    (<Meaning.MOMENT: 2>, <Meaning.DURATION: 3>, <Meaning.NUMBER: 1>, <Meaning.NUMBER: 1>)
    """
    # A semicolon in quotes ends no section, so they go first; elapsed hours are in brackets, and go with them.
    first = _LITERALS.sub(lambda literal: literal[0] if _ELAPSED.fullmatch(literal[0]) else "", code).partition(";")[0]
    if _ELAPSED.search(first):
        return Meaning.DURATION
    return Meaning.MOMENT if _MOMENT.search(first) else Meaning.NUMBER


def padded_width(code: str) -> int:
    """To how many digits a format fills a number up with zeros; 0 for every other format.

    >>> padded_width("0000000000000"), padded_width("0"), padded_width("00.0")
    (13, 0, 0)
    """
    return len(code) if _ZEROS.fullmatch(code) else 0


def moment(days: str, epoch: Epoch) -> str:
    """A date, a time or both as ISO writes them; nothing where Excel shows only signs.

    >>> moment("45351", Epoch.WINDOWS), moment("45351.5", Epoch.WINDOWS), moment("0.25", Epoch.WINDOWS)
    ('2024-02-29', '2024-02-29T12:00:00', '06:00:00')
    >>> moment("59", Epoch.WINDOWS), moment("61", Epoch.WINDOWS), moment("-1", Epoch.WINDOWS)
    ('1900-02-28', '1900-03-01', '')
    """
    try:
        since = _since(days)
        if since < timedelta(0):
            return ""
        if since < _DAY:
            return (datetime.combine(epoch.value, time()) + since).time().isoformat()
        if epoch is Epoch.WINDOWS and since.days <= _LAST_DAY_BEFORE_1900_02_29:
            since += _DAY
        value = datetime.combine(epoch.value, time()) + since
    except (OverflowError, ValueError):
        return ""
    return value.date().isoformat() if value.time() == time() else value.isoformat()


def duration(days: str) -> str:
    """Hours, minutes and seconds; nothing where it is no length of time.

    >>> duration("1.5"), duration("-0.25")
    ('36:00:00', '-6:00:00')
    """
    try:
        length = _since(days)
    except (OverflowError, ValueError):
        return ""
    seconds, rest = divmod(abs(length), timedelta(seconds=1))
    text = f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    part = f".{rest.microseconds:06}".rstrip("0") if rest else ""
    return f"{'-' if length < timedelta(0) else ''}{text}{part}"


def written_moment(text: str) -> str:
    """A date or a time that a cell holds in ISO form, without the time of day where it is midnight.

    >>> written_moment("2024-02-29T00:00:00"), written_moment("2024-02-29T13:05"), written_moment("tomorrow")
    ('2024-02-29', '2024-02-29T13:05:00', 'tomorrow')
    """
    try:
        value = datetime.fromisoformat(text)
    except ValueError:
        return text
    return value.date().isoformat() if value.time() == time() else value.isoformat()


def plain_number(text: str) -> str:
    """A number with all its digits: no ".0" on whole ones, no exponent.

    >>> plain_number("4006381333931.0"), plain_number("19.990000000000002"), plain_number("1E-7"), plain_number("007")
    ('4006381333931', '19.990000000000002', '0.0000001', '7')
    """
    # A whole number written as one may have more digits than a float holds.
    if text.isdecimal() or text.lstrip("-").isdecimal():
        return str(int(text))
    number = float(text)
    digits = repr(number)
    if digits.endswith(".0") or ("e" in digits and number.is_integer()):
        return str(int(number))
    return format(Decimal(digits), "f") if "e" in digits else digits


def _since(days: str) -> timedelta:
    """So many days, to the millisecond; what Excel computes with has no more digits."""
    number = float(days)
    whole = number // 1
    return timedelta(days=int(whole), milliseconds=round((number - whole) * _IN_MILLISECONDS))
