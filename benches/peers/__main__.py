"""``make bench-peers``: ask every question of every peer, in turns, and print the tables."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from benches import machine
from benches.peers import plots
from benches.peers.driving import PeerFailed
from benches.peers.environments import ROOT, versions
from benches.peers.questions import QUESTIONS
from benches.peers.roster import PEERS, Peer
from benches.peers.servers import servers
from benches.peers.size import Size
from benches.peers.table import JOBS, KILL, WORK, growth_columns, roster_table, spreads, table, write_json
from benches.plan import say
from benches.report import machine_lines, write_block

PAGE = ROOT / "docs" / "performance.md"
IMAGES = ROOT / "docs" / "images"
Samples = defaultdict[str, defaultdict[str, list[float | None]]]


def main(arguments: list[str] | None = None) -> int:
    """Run what was asked for, or read what was found before; 0 unless a peer failed, whatever the figures say."""
    options = _options(arguments)
    if options.read is not None:
        found = json.loads(options.read.read_text())
    else:
        found = _asked(options)
    peers = [one for one in PEERS if one.name in found["samples"]]
    parts = _parts(found, peers)
    print("\n\n".join(part for part in parts if part))
    if options.json is not None:
        write_json(options.json, found["samples"], found["failures"], found["facts"])
    if options.write_docs:
        drawn = _draw(found)
        write_block(PAGE, "benches.peers", [*parts, *(f"![{title}](images/{name})" for name, title in drawn.items())])
    for where_from, text in found["failures"].items():
        say(f"FAILED {where_from}: {text.strip().splitlines()[-1]}")
    return 1 if found["failures"] else 0


def _asked(options: argparse.Namespace) -> dict[str, Any]:
    size = Size.quick() if options.quick else Size()
    peers = [one for one in PEERS if not options.only or any(word in one.name.lower() for word in options.only)]
    facts = machine.facts() | {"size": "quick" if options.quick else "full"}
    samples: Samples = defaultdict(lambda: defaultdict(list))
    failures: dict[str, str] = {}
    with servers() as where:
        facts |= where.about()
        for repetition in range(options.repetitions):
            for question in options.questions:
                for peer in peers:
                    if peer.questions is not None and question not in peer.questions:
                        continue
                    say(f"{repetition + 1}/{options.repetitions} {question}: {peer.name} …")
                    begun = time.perf_counter()
                    try:
                        for name, value in QUESTIONS[question](peer, where, size).items():
                            samples[peer.name][name].append(value)
                    except PeerFailed as error:
                        failures[f"{peer.name}, {question}"] = str(error)
                        say(str(error))
                    say(f"  {time.perf_counter() - begun:.1f} s")
                if options.json is not None:  # a long run that is cut off has not been for nothing
                    write_json(options.json, samples, failures, facts)
    facts["repetitions"] = str(options.repetitions)
    facts["versions"] = {one.name: _version(one) for one in peers}  # type: ignore[assignment]
    return {"facts": facts, "samples": samples, "failures": failures}


def _parts(found: dict[str, Any], peers: list[Peer]) -> list[str]:
    samples, facts = found["samples"], dict(found["facts"])
    known = facts.pop("versions", {})
    parts = []
    for title, columns in (
        ("Jobs:", JOBS),
        ("One user's work:", WORK),
        ("The worker killed when a quarter of one user's work has started:", KILL),
        ("A claim of a hundred, the more units wait:", growth_columns(samples, "claim_ms")),
        ("A page of a hundred, from the middle:", growth_columns(samples, "page_ms")),
    ):
        if made := table(samples, columns):
            parts += [title, made]
    if spread := spreads(samples):
        parts += ["The middle half of the repetitions:", spread]
    return [*parts, "Who they are:", roster_table(peers, known), "The machine and the run:", machine_lines(facts)]


def _draw(found: dict[str, Any]) -> dict[str, str]:
    """The plots, in the environment that has what draws them."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(found, file)
        file.flush()
        return plots.drawn(Path(file.name), IMAGES)


def _version(peer: Peer) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions(peer.environment, *peer.packages).items())


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benches.peers", description=__doc__)
    parser.add_argument("--only", action="append", type=str.lower, help="peers with this word in their name")
    parser.add_argument("--questions", type=lambda text: text.split(","), default=list(QUESTIONS))
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="smaller: to see that it works")
    parser.add_argument("--json", type=Path, help="write all figures and samples to this file")
    parser.add_argument("--read", type=Path, help="ask nobody: show the figures of such a file again")
    parser.add_argument("--write-docs", action="store_true", help=f"put the tables and plots into {PAGE.name}")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
