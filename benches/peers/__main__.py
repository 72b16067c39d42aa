"""``make bench-peers``: ask every question of every peer, in turns, and print the table."""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from pathlib import Path

from benches import machine
from benches.peers.driving import PeerFailed
from benches.peers.environments import versions
from benches.peers.questions import QUESTIONS, Size
from benches.peers.roster import PEERS, Peer
from benches.peers.servers import server_versions, servers
from benches.peers.table import roster_table, spreads, table, write_json
from benches.plan import say
from benches.report import machine_lines


def main(arguments: list[str] | None = None) -> int:
    """Run what was asked for; 0 unless a peer failed, whatever the figures say."""
    options = _options(arguments)
    size = Size.quick() if options.quick else Size()
    peers = [one for one in PEERS if not options.only or any(word in one.name.lower() for word in options.only)]
    facts = machine.facts() | server_versions() | {"size": "quick" if options.quick else "full"}
    samples: defaultdict[str, defaultdict[str, list[float | None]]] = defaultdict(lambda: defaultdict(list))
    failures: dict[str, str] = {}
    with servers() as where:
        for repetition in range(options.repetitions):
            for question in options.questions:
                for peer in peers:
                    say(f"{repetition + 1}/{options.repetitions} {question}: {peer.name} …")
                    begun = time.perf_counter()
                    try:
                        for name, value in QUESTIONS[question](peer, where, size).items():
                            samples[peer.name][name].append(value)
                    except PeerFailed as error:
                        failures[f"{peer.name}, {question}"] = str(error)
                        say(str(error))
                    say(f"  {time.perf_counter() - begun:.1f} s")
    found = {one.name: _version(one) for one in peers}
    parts = [table(samples), spreads(samples), roster_table(peers, found), machine_lines(facts)]
    print("\n\n".join(part for part in parts if part))
    if options.json is not None:
        write_json(options.json, samples, failures, facts | {"versions": found})
    for where_from, text in failures.items():
        say(f"FAILED {where_from}: {text.strip().splitlines()[-1]}")
    return 1 if failures else 0


def _version(peer: Peer) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions(peer.environment, *peer.packages).items())


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benches.peers", description=__doc__)
    parser.add_argument("--only", action="append", type=str.lower, help="peers with this word in their name")
    parser.add_argument("--questions", type=lambda text: text.split(","), default=list(QUESTIONS))
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="smaller: to see that it works")
    parser.add_argument("--json", type=Path, help="write all figures and samples to this file")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
