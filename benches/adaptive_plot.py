"""The picture of an adaptive run, written as plain SVG: no plotting library is needed to make or to read it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

_WIDTH, _LEFT, _RIGHT = 760, 70, 700
_OURS, _THEIRS, _TEXT = "#0b6e99", "#b8c4cc", "#333333"
_PANEL, _ROW = 130, 18


class Moment(NamedTuple):
    """What was set at one time of a run, and how far it was."""

    seconds: float
    claim_size: int
    concurrency: int
    done: int


def draw(
    path: Path, moments: Sequence[Moment], adaptive: float, fixed: Mapping[str, float | None], give_up: float
) -> None:
    """The claim size and the concurrency over time, and below them the seconds of all settings."""
    parts: list[str] = []
    top = 40
    for title, value in _PANELS.items():
        parts += _panel(top, title, [(one.seconds, value(one)) for one in moments])
        top += _PANEL + 50
    parts += _bars(top, adaptive, fixed, give_up)
    height = top + 40 + _ROW * (len(fixed) + 1)
    frame = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif">'
    path.write_text("\n".join([frame, f'<rect width="{_WIDTH}" height="{height}" fill="white"/>', *parts, "</svg>\n"]))


_PANELS: dict[str, Callable[[Moment], int]] = {
    "Claim size, adaptive run": lambda one: one.claim_size,
    "Items at once, adaptive run": lambda one: one.concurrency,
    "Items done, adaptive run": lambda one: one.done,
}


def _text(x: float, y: float, words: str, *, size: int = 11, anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{_TEXT}" text-anchor="{anchor}">{escape(words)}</text>'
    )


def _panel(top: int, title: str, points: Sequence[tuple[float, int]]) -> list[str]:
    """One figure over time, in steps: a setting holds until the next look at it."""
    until = max(points[-1][0], 0.001)
    most = max(1, *(value for _, value in points))
    across, down = (_RIGHT - _LEFT) / until, _PANEL / most
    bottom = top + _PANEL
    steps = f"M{_LEFT},{bottom - points[0][1] * down:.1f}"
    for seconds, value in points:
        steps += f" H{_LEFT + seconds * across:.1f} V{bottom - value * down:.1f}"
    lines = [
        _text(_LEFT, top - 10, title, size=13),
        f'<path d="M{_LEFT},{top} V{bottom} H{_RIGHT}" fill="none" stroke="{_TEXT}"/>',
        f'<path d="{steps}" fill="none" stroke="{_OURS}" stroke-width="2"/>',
        _text(_LEFT - 6, top + 4, f"{most:,}", anchor="end"),
        _text(_LEFT - 6, bottom, "0", anchor="end"),
    ]
    every = next(one for one in (0.5, 1, 2, 5, 10, 20, 60, 600) if until / one <= 12)
    marks = [every * number for number in range(int(until / every) + 1)]
    return lines + [_text(_LEFT + one * across, bottom + 15, f"{one:g} s", anchor="middle") for one in marks]


def _bars(top: int, adaptive: float, fixed: Mapping[str, float | None], give_up: float) -> list[str]:
    """The seconds of every setting, the quickest first; those that were given up say so."""
    longest = give_up * adaptive
    left = 240
    rows = [("adaptive", adaptive, _OURS)]
    rows += [(name, longest if taken is None else taken, _THEIRS) for name, taken in fixed.items()]
    rows.sort(key=lambda row: row[1])
    scale = (_RIGHT - left - 60) / max(row[1] for row in rows)
    parts = [_text(_LEFT, top - 10, "Seconds for the whole job (less is better)", size=13)]
    for number, (name, taken, colour) in enumerate(rows):
        y = top + number * _ROW
        slower = colour == _THEIRS and fixed[name] is None
        words = f"more than {taken:.1f}" if slower else f"{taken:.1f}"
        width = taken * scale
        parts.append(_text(left - 8, y + 12, name, anchor="end"))
        parts.append(f'<rect x="{left}" y="{y + 2}" width="{width:.1f}" height="{_ROW - 5}" fill="{colour}"/>')
        parts.append(_text(left + width + 5, y + 12, words))
    return parts
