"""The figures of all peers side by side, for people and as JSON."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benches.peers.roster import Peer
from benches.report import quartiles

JOBS = {
    "enqueue_one": "enqueue one, jobs/s",
    "enqueue_bulk": "in bulk, jobs/s",
    "drain": "drain, jobs/s",
    "pick_up_p50": "pick-up p50, ms",
    "pick_up_p95": "pick-up p95, ms",
    "memory_mb": "worker's peak, MB",
}
WORK = {
    "units_of": "units",
    "units": "units/s",
    "units_left": "left when time was up",
    "progress_p50": "a reading of progress, p50 ms",
    "progress_worst": "the slowest, ms",
    "cancel_ms": "cancel to last start, ms",
    "cancel_started": "started meanwhile",
}
KILL = {
    "unfinished": "unfinished",
    "doubled": "started twice",
    "goes_on_after_s": "goes on after, s",
    "whole_after_s": "whole after, s",
}
NAMES = JOBS | WORK | KILL
MORE_IS_BETTER = frozenset({"enqueue_one", "enqueue_bulk", "drain", "units"})

Samples = Mapping[str, Mapping[str, Sequence[float | None]]]
"""By peer and figure, one for each repetition; None where the peer does not offer it or it never came to pass."""


def table(samples: Samples, columns: Mapping[str, str]) -> str:
    """Medians; the best of each column in bold. Nothing when none of the columns was asked for."""
    names = [name for name in columns if any(name in figures for figures in samples.values())]
    if not names:
        return ""
    medians = {(peer, name): _median(figures.get(name, ())) for peer, figures in samples.items() for name in names}
    best = {
        name: None if name == "units_of" else _best(name, [medians[one, name] for one in samples]) for name in names
    }
    lines = ["| | " + " | ".join(columns[name] for name in names) + " |", "|---|" + "--:|" * len(names)]
    for peer, figures in samples.items():
        if any(name in figures for name in names):
            cells = [_cell(medians[peer, name], best[name], asked=name in figures) for name in names]
            lines.append(f"| {peer} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def growth_columns(samples: Samples, what: str) -> dict[str, str]:
    """The columns of ``claim_ms`` or ``page_ms``, by the number of rows in the table."""
    found = {name for figures in samples.values() for name in figures if name.startswith(what)}
    rows = sorted(int(name.rpartition("_")[2]) for name in found)
    return {f"{what}_{count}": f"{count:,} waiting, ms" for count in rows}


def spreads(samples: Samples) -> str:
    """The middle half of the repetitions of each figure."""
    lines = []
    for peer, figures in samples.items():
        parts = []
        for name, values in figures.items():
            known = [one for one in values if one is not None]
            if len(known) > 1 and name in NAMES:
                low, high = quartiles(known)
                parts.append(f"{NAMES[name]} {_figure(low)}–{_figure(high)}")
        if parts:
            lines.append(f"- {peer}: {'; '.join(parts)}")
    return "\n".join(lines)


def roster_table(peers: Sequence[Peer], versions: Mapping[str, str]) -> str:
    """Who they are, how they are set, and what they promise."""
    lines = [
        "| | version | settings | durable | result kept | takes up a killed worker's jobs |",
        "|---|---|---|---|:-:|---|",
    ]
    for one in peers:
        kept = "yes" if one.result_kept else "no"
        lines.append(
            f"| {one.name} | {versions.get(one.name, '')} | {one.settings} | {one.durable} | {kept} | {one.recovers} |"
        )
    return "\n".join(lines)


def write_json(path: Path, samples: Samples, failures: Mapping[str, str], facts: Mapping[str, Any]) -> None:
    """Everything."""
    whole = {"facts": facts, "samples": samples, "failures": failures}
    path.write_text(json.dumps(whole, indent=2, ensure_ascii=False) + "\n")


def _median(values: Sequence[float | None]) -> float | None:
    known = [one for one in values if one is not None]
    return statistics.median(known) if known else None


def _best(name: str, values: Sequence[float | None]) -> float | None:
    known = [one for one in values if one is not None]
    if not known:
        return None
    return max(known) if name in MORE_IS_BETTER else min(known)


def _cell(value: float | None, best: float | None, *, asked: bool) -> str:
    if value is None:
        return "–" if asked else ""
    text = _figure(value)
    return f"**{text}**" if value == best else text


def _figure(value: float) -> str:
    if value == int(value) or value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
