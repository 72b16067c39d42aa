"""How long something takes: a text is understood whole, or not at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock_apps.recipes.parsing.durations import minutes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1h30m", 90), ("2h15min", 135), ("1h30", 90), ("1 1/2 hours", 90), ("1-1/2 hours", 90), ("1½ hours", 90),
        ("half an hour", 30), ("1 hour and 30 minutes", 90), ("3 Stunden, 10 Minuten", 190), ("1,5 Stunden", 90),
        ("1 Std. 20 Min.", 80), ("1 heure 15 min", 75), ("1 uur 30 min", 90), ("2 horas y 15 minutos", 135),
        ("1 hora e 20 minutos", 80), ("2 timer og 10 min", 130), ("1 t 30 min", 90), ("1 godz. 20 min", 80),
        ("1 ч 20 мин", 80), ("90 dakika", 90), ("1時間30分", 90), ("約30分", 30), ("1 day 2 hours", 1560),
        ("1:30 h", 90), ("01:30:00", 90), ("Prep Time: 20 mins", 20), ("less than 30 mins", 30), ("30", 30),
    ],
)  # fmt: skip
def test_a_sentence_in_many_languages(text: str, expected: int) -> None:
    assert minutes(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("PT20M-PT30M", 30), ("20-25 minutes", 25), ("20 to 25 min.", 25), ("30 mins to 1 hour", 60), ("1 h - 2 h", 120)],
)
def test_of_a_range_the_upper_end_counts(text: str, expected: int) -> None:
    assert minutes(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("P0Y0M0DT0H35M0.000S", 35), ("PT1H30", 90), ("P0Y0M1DT0H0M0S", 1440), ("PT 1H 30 M", 90), ("PT30MIN", 30),
        ("P30M", 30), ("T45M", 45), ("PT1H60M", 120), ("PT0.2M", None), ("PT-5M", None), ("PT1H-30M", None),
        ("P1Y", None),
    ],
)  # fmt: skip
def test_iso_8601_as_programs_write_it(text: str, expected: int | None) -> None:
    assert minutes(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "30 mins plus chilling", "overnight", "1:30", "10 min 20 min", "20 min 1 hour", "2 x 20 min", "een uur of zo",
        "30 mins to 10 mins", "1/0 hours", float("nan"), float("inf"), -5, 10**9,
    ],
)  # fmt: skip
def test_what_is_not_understood_whole_is_not_guessed(text: object) -> None:
    assert minutes(text) is None


@given(some.text("PTHMSDY0123456789.,-:/ ½uhrsmindtagoe", max_size=60) | some.text(max_size=60))
def test_any_text_is_minutes_or_none(text: str) -> None:
    answer = minutes(text)
    assert answer is None or 0 < answer <= 60 * 24 * 366
