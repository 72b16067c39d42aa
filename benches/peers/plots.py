"""The plots of the comparison; matplotlib draws them, in an environment of its own.

``python -m benches.peers.plots FIGURES.json DIRECTORY`` runs there, with the standard library and matplotlib alone.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

BARS = {
    "peers-drain.svg": ("drain", "No-op jobs drained a second (more is better)", False),
    "peers-work.svg": ("units", "Units of one user's work a second (more is better)", False),
    "peers-progress.svg": ("progress_p50", "A reading of progress during that work, ms (less is better)", True),
    "peers-pick-up.svg": ("pick_up_p95", "Pick-up by an idle worker, p95 in ms (less is better)", True),
    "peers-kill.svg": ("whole_after_s", "Seconds from SIGKILL until the work is whole (less is better)", True),
}
LINES = {
    "peers-claim.svg": ("claim_ms", "A claim of a hundred units, ms, the more wait"),
    "peers-page.svg": ("page_ms", "A page of a hundred units, ms, the more wait"),
}
OURS, THEIRS = "#0b6e99", "#b8c4cc"


def drawn(figures: Path, directory: Path) -> dict[str, str]:
    """Draw all plots there are figures for; the answer is their file names and titles."""
    from benches.peers.environments import ROOT, python_of

    command = [str(python_of("plots")), "-m", "benches.peers.plots", str(figures), str(directory)]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    made: dict[str, str] = json.loads(answer.stdout)
    return made


def main() -> None:
    """Draw, and say what was drawn."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "penstock"
    mpl.rcParams["svg.fonttype"] = "none"
    samples = json.loads(Path(sys.argv[1]).read_text())["samples"]
    directory = Path(sys.argv[2])
    made = {}
    for name, (figure, title, logarithmic) in BARS.items():
        found = {peer: value for peer, values in samples.items() if (value := _median(values.get(figure, [])))}
        if found:
            _save(directory / name, lambda axes: _bars(axes, found, title, logarithmic))  # noqa: B023 - called at once
            made[name] = title
    for name, (figure, title) in LINES.items():
        curves = {peer: _curve(values, figure) for peer, values in samples.items()}
        if any(curves.values()):
            _save(directory / name, lambda axes: _lines(axes, curves, title))  # noqa: B023 - called at once
            made[name] = title
    print(json.dumps(made))


def _save(path: Path, draw: Callable[[Any], None]) -> None:
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
    draw(axes)
    figure.savefig(path, metadata={"Date": None, "Creator": None}, facecolor="white")
    plt.close(figure)


def _bars(axes: Any, found: dict[str, float], title: str, logarithmic: bool) -> None:
    in_order = sorted(found, key=lambda peer: found[peer], reverse=logarithmic)
    colours = [OURS if peer.startswith("Penstock") else THEIRS for peer in in_order]
    bars = axes.barh(in_order, [found[peer] for peer in in_order], color=colours, log=logarithmic)
    axes.bar_label(bars, [_figure(found[peer]) for peer in in_order], padding=3, fontsize=8)
    axes.margins(x=0.12)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(title, fontsize=10, loc="left")


def _lines(axes: Any, curves: dict[str, list[tuple[int, float]]], title: str) -> None:
    for peer, points in curves.items():
        if points:
            ours = peer.startswith("Penstock")
            axes.plot(*zip(*points, strict=True), marker="o", label=peer, linewidth=2.5 if ours else 1.2)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("units waiting")
    axes.set_ylabel("ms")
    axes.legend(fontsize=8, frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title(title, fontsize=10, loc="left")


def _curve(values: dict[str, list[float | None]], figure: str) -> list[tuple[int, float]]:
    points = {int(name.rpartition("_")[2]): _median(found) for name, found in values.items() if name.startswith(figure)}
    return [(rows, value) for rows, value in sorted(points.items()) if value]


def _median(values: list[float | None]) -> float | None:
    known = [one for one in values if one is not None]
    return statistics.median(known) if known else None


def _figure(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    main()
