"""How long something takes, in minutes, from what pages say: ISO 8601 mostly, and now and then a sentence.

A text is understood whole, or not at all: half of "1 Std. 20 Min." is twenty minutes, which nobody has said. Of a range
it is the upper end that counts: who waits wants to know how long at most.
"""

from __future__ import annotations

import re
import unicodedata

from penstock_apps.recipes.parsing.numbers import NUMBER, TO, plain_characters, read_number

_DAY, _HOUR, _MINUTE, _SECOND = 1440.0, 60.0, 1.0, 1 / 60
_UNITS_BY_LANGUAGE: dict[float, tuple[str, ...]] = {
    7 * _DAY: (
        "w week weeks wk wks", "woche wochen", "semaine semaines", "semana semanas", "settimana settimane",
        "weken", "vecka veckor", "uge uger", "uke uker", "tydzień tygodnie",
    ),
    _DAY: (
        "d day days", "tag tage tagen", "j jour jours", "día días", "dia dias", "giorno giorni", "dag dagen",
        "dagar", "dage", "dager", "dzień dni doba", "den dny dní", "nap", "день дня дней", "日 天",
    ),
    _HOUR: (
        "h hr hrs hour hours", "std stde stdn stunde stunden", "heure heures", "hora horas hs", "ora ore",
        "u uur uren", "t tim timme timmar", "time timer", "g godz godzina godziny godzin", "hod hodina hodiny hodin",
        "óra", "saat sa", "ч час часа часов", "ώρα ώρες", "時間 小时 小時 시간", "tunti tuntia", "oră",
    ),
    _MINUTE: (
        "m min mins minute minutes minuts mn", "minuten", "minuto minutos", "minuti", "minuut", "minut minuter",
        "minutter", "minuta minuty", "perc", "dk dakika", "мин минута минуты минут", "λεπτό λεπτά",
        "分 分間 分钟 分鐘 분", "minuutti minuuttia",
    ),
    _SECOND: (
        "s sec secs second seconds", "sek sekunde sekunden", "seconde secondes seconden", "segundo segundos",
        "secondo secondi", "sekund sekunder", "sekunda sekundy", "сек секунд", "秒 초",
    ),
}  # fmt: skip


def _bare(word: str) -> str:
    """Without accents, and small."""
    return "".join(char for char in unicodedata.normalize("NFKD", word.lower()) if not unicodedata.combining(char))


_MINUTES = {
    _bare(word): minutes for minutes, words in _UNITS_BY_LANGUAGE.items() for text in words for word in text.split()
}
_ISO = re.compile(
    r"(?:PT?|T)(?:0+Y)?(?:0+M(?=.*T))?(?:(?P<weeks>\d++)W)?(?:(?P<days>\d++(?:[.,]\d++)?)D(?:AYS?)?)?"
    r"T?(?:(?P<hours>\d++(?:[.,]\d++)?)H(?:(?:OU)?RS?)?)?"
    r"(?:(?P<minutes>\d++(?:[.,]\d++)?)(?:M(?:IN(?:UTE)?S?)?|(?<=H\d\d)$))?(?:(?P<seconds>\d++(?:[.,]\d++)?)S)?"
)
_OF_ISO = {"weeks": 7 * _DAY, "days": _DAY, "hours": _HOUR, "minutes": _MINUTE, "seconds": _SECOND}
_TWO_ISO = re.compile(r"(P[^P-]++)[-/](P[^P-]++)")
_CLOCK = re.compile(r"(\d{1,2}):([0-5]\d)(?::([0-5]\d)|\s*+(?:h|hrs?|hours?|std\.?|stunden?|uur|timer?|godz\.?))", re.I)
_LABEL = re.compile(r"[^\d:]{1,40}+:\s*+")
_ABOUT = re.compile(
    r"(?:(?:about|approximately|approx\.?|around|circa|ca\.?|roughly|~|≈|etwa|ungefähr|environ|unos|aprox\.?|cerca de|"
    r"ongeveer|około|ok\.?|omkring|около|約|约|less than|under|over|more than|up to|at least|at most|max\.?|maximum|"
    r"bis zu|moins de|plus de|menos de|más de)\s*+)+",
    re.IGNORECASE,
)
_NUMERALS = {
    "a": 1.0, "an": 1.0, "one": 1.0, "two": 2.0, "three": 3.0, "half an": 0.5, "half a": 0.5,
    "eine": 1.0, "une": 1.0, "una": 1.0, "un": 1.0,
}  # fmt: skip
_IN_WORDS = "|".join(sorted(_NUMERALS, key=len, reverse=True))
_PART = re.compile(
    rf"(?:(?P<low>{NUMBER})\s*+{TO}\s*+)?(?P<number>{NUMBER}|\b(?:{_IN_WORDS})\b)\s*+-?(?P<unit>[^\W\d_]++)?\.?", re.I
)
_AND = re.compile(r"\s*+(?:,|\band\b|\bund\b|\bet\b|\by\b|\be\b|\ben\b|\boch\b|\bog\b|\bi\b|\ba\b|&|\+)?\s*+", re.I)
_UNTIL = re.compile(rf"\s*+{TO}\s*+", re.IGNORECASE)
_LONGEST = 60 * 24 * 366
_LONGEST_TEXT = 200


def minutes(text: object) -> int | None:
    """Minutes, if the text says so.

    >>> minutes("PT1H30M"), minutes("1 hr 20 mins"), minutes("P0DT0H45M"), minutes("1 Std. 20 Min."), minutes("soon")
    (90, 80, 45, 80, None)
    """
    if isinstance(text, int | float) and not isinstance(text, bool):
        return _sane(float(text))
    if not isinstance(text, str) or len(text) > _LONGEST_TEXT:
        return None
    text = plain_characters(" ".join(text.split()))
    if text.isascii() and text.isdecimal():
        return _sane(float(text))
    compact = "".join(text.split()).upper()
    both = _TWO_ISO.fullmatch(compact)
    value = _iso(compact if both is None else both[2])
    return _sane(_in_words(text) if value is None else value)


def _iso(text: str) -> float | None:
    """ISO 8601, and what programs write that have not read it; years and months that are none are no time."""
    match = _ISO.fullmatch(text)
    if match is None or not any(match.groups()):
        return None
    return sum(_OF_ISO[name] * _decimal(value) for name, value in match.groupdict().items() if value)


def _in_words(text: str) -> float | None:
    """Minutes of a sentence, every word of which is understood."""
    label = _LABEL.match(text)
    text = text[label.end() :] if label else text
    about = _ABOUT.match(text)
    text = (text[about.end() :] if about else text).strip(" .,")
    clock = _CLOCK.fullmatch(text)
    if clock is not None:
        return int(clock[1]) * _HOUR + int(clock[2]) + int(clock[3] or 0) * _SECOND
    first, end = _amount(text, 0)
    if first is None or end == len(text):
        return first
    until = _UNTIL.match(text, end)
    last, end = _amount(text, until.end()) if until else (None, end)
    return last if end == len(text) and last is not None and last >= first else None


def _amount(text: str, start: int) -> tuple[float | None, int]:
    """Numbers with their units, the largest first, from a place on; and where they end."""
    total, last_unit, end = 0.0, 100 * _DAY, start
    while (part := _PART.match(text, end if end == start else _behind_and(text, end))) is not None:
        number = _upper_end(part["low"], _NUMERALS.get(part["number"].lower()) or read_number(part["number"]))
        unit = _MINUTES.get(_bare(part["unit"] or ""))
        if part["unit"] is None and last_unit == _HOUR and part["low"] is None and part["number"].isdecimal():
            unit = _MINUTE  # 1h30
        if number is None or unit is None or unit >= last_unit:
            break
        total, last_unit, end = total + number * unit, unit, part.end()
    return (total, end) if end > start else (None, start)


def _upper_end(low: str | None, number: float | None) -> float | None:
    """The end of a range; what goes down is none, but for 1-1/2, which is one and a half."""
    start = read_number(low)
    if low is None or number is None or start is None or start < number:
        return number if low is None or start is not None else None
    return start + number if number < 1 else None


def _behind_and(text: str, end: int) -> int:
    behind = _AND.match(text, end)
    return behind.end() if behind else end


def _decimal(value: str) -> float:
    return float(value.replace(",", "."))


def _sane(value: float | None) -> int | None:
    """Whole minutes; less than half of one is no time, and more than a year none that anybody waits."""
    if value is None or not 0 < value <= _LONGEST:
        return None
    return round(value) or None
