"""What a question answers, and the table, the JSON and the page it becomes."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

_BLOCKS = 5


@dataclass(frozen=True, slots=True)
class Bar:
    """What a ratio is held to."""

    limit: float
    at_least: bool = True

    def met(self, ratio: float) -> bool:
        """Is it?"""
        return ratio >= self.limit if self.at_least else ratio <= self.limit

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.limit:g}"


@dataclass(frozen=True, slots=True)
class Answer:
    """One row: ours, the ceiling, and how they compare."""

    question: str
    what: str
    database: str
    unit: str
    ours: float
    ceiling: float
    ratio: float
    ratios: Sequence[float]
    """The ratio of each repetition, for the spread."""
    bar: Bar | None = None
    notes: Sequence[str] = ()
    samples: dict[str, Sequence[float]] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        """Is the bar met? None where there is no bar."""
        return None if self.bar is None else self.bar.met(self.ratio)

    @property
    def spread(self) -> tuple[float, float]:
        """The middle half of the repetitions' ratios."""
        return quartiles(self.ratios)


def by_pairs(
    question: str,
    what: str,
    database: str,
    unit: str,
    ours: Sequence[float],
    ceiling: Sequence[float],
    *,
    bar: Bar | None = None,
    notes: Sequence[str] = (),
) -> Answer:
    """Repetitions made in turns: each is compared with the one beside it, so that slow minutes slow both."""
    ratios = [one / other for one, other in zip(ours, ceiling, strict=True)]
    return Answer(
        question, what, database, unit, statistics.median(ours), statistics.median(ceiling),
        statistics.median(ratios), ratios, bar, notes, {"ours": list(ours), "ceiling": list(ceiling)},
    )  # fmt: skip


def by_blocks(
    question: str,
    what: str,
    database: str,
    ours: Sequence[float],
    ceiling: Sequence[float],
    measure: Callable[[Sequence[float]], float],
    *,
    bar: Bar | None = None,
    notes: Sequence[str] = (),
) -> Answer:
    """Samples in milliseconds, taken in turns: ``measure`` of all of them, and of five parts for the spread."""
    parts = [(ours[number::_BLOCKS], ceiling[number::_BLOCKS]) for number in range(_BLOCKS)]
    ratios = [measure(one) / measure(other) for one, other in parts]
    mine, theirs = measure(ours), measure(ceiling)
    return Answer(
        question, what, database, "ms", mine, theirs, mine / theirs, ratios, bar, notes,
        {"ours": list(ours), "ceiling": list(ceiling)},
    )  # fmt: skip


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    """The first and the third quartile."""
    if len(values) < 2:
        return values[0], values[0]
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    return first, third


def p95(values: Sequence[float]) -> float:
    """The 95th percentile."""
    return statistics.quantiles(values, n=100, method="inclusive")[94]


def p99(values: Sequence[float]) -> float:
    """The 99th percentile."""
    return statistics.quantiles(values, n=100, method="inclusive")[98]


def table(answers: Sequence[Answer]) -> str:
    """All answers as a Markdown table."""
    lines = [
        "| question | database | ours | ceiling | ratio | middle half | bar | met |",
        "|---|---|--:|--:|--:|--:|--:|:-:|",
    ]
    for one in answers:
        low, high = one.spread
        met = {None: "–", True: "yes", False: "**no**"}[one.met]
        lines.append(
            f"| {one.what} | {one.database} | {_figure(one.ours)} {one.unit} | {_figure(one.ceiling)} {one.unit} "
            f"| {one.ratio:.2f} | {low:.2f}–{high:.2f} | {one.bar or '–'} | {met} |"
        )
    return "\n".join(lines)


def notes(answers: Sequence[Answer]) -> str:
    """What else was seen, as a Markdown list."""
    return "\n".join(f"- {one.what}, {one.database}: {note}" for one in answers for note in one.notes)


def machine_lines(facts: dict[str, str]) -> str:
    """The machine, as a Markdown list."""
    return "\n".join(f"- {name.replace('_', ' ')}: {value}" for name, value in facts.items())


def write_json(path: Path, answers: Sequence[Answer], facts: dict[str, str]) -> None:
    """Everything, raw samples included."""
    rows = [asdict(one) | {"met": one.met, "spread": one.spread} for one in answers]
    path.write_text(json.dumps({"machine": facts, "answers": rows}, indent=2, ensure_ascii=False) + "\n")


def write_docs(page: Path, answers: Sequence[Answer], facts: dict[str, str]) -> None:
    """Put the table and the machine between the page's two markers."""
    parts = [table(answers), notes(answers), "The machine and the run:", machine_lines(facts)]
    write_block(page, "benches", parts)


def write_block(page: Path, program: str, parts: Sequence[str]) -> None:
    """Replace what a program wrote between its two markers; empty parts are left out."""
    begin = f"<!-- {program}: begin (written by python -m {program} --write-docs) -->"
    end = f"<!-- {program}: end -->"
    before, found, rest = page.read_text().partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"{page} has no block to write to: it needs the lines {begin!r} and {end!r}")
    page.write_text("\n\n".join([before + begin, *(part for part in parts if part), end + after]))


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
