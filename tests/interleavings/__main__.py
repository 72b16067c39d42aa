"""Schedules from the command line.

    python -m tests.interleavings "lead_running / cancel L + done h1 / 0110"      one schedule, step by step
    python -m tests.interleavings --seed 7                                        the walk of a seed
    python -m tests.interleavings --pairs --scene lead_running --most 50          all pairs of a scene
    python -m tests.interleavings --crashes                                       every operation, at every point
    python -m tests.interleavings --walks 1000                                    new seeds

On PostgreSQL, or with ``--sqlite`` there.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations_with_replacement
from pathlib import Path

import structlog

from penstock.testing.postgres import private_postgres
from tests.conftest import TEST_SERVER
from tests.interleavings.databases import Database, postgresql_database, sqlite_database
from tests.interleavings.explorer import Explorer
from tests.interleavings.scenes import SCENES
from tests.interleavings.schedule import Schedule
from tests.interleavings.walks import walk


@contextmanager
def _database(*, sqlite: bool) -> Iterator[Database]:
    if sqlite:
        with tempfile.TemporaryDirectory() as directory, sqlite_database(Path(directory)) as database:
            yield database
    else:
        with private_postgres(settings=TEST_SERVER) as server, postgresql_database(server, "interleaved") as database:
            yield database


def _replay(explorer: Explorer, schedule: Schedule) -> None:
    ran = explorer.replay(schedule)
    if ran is None:
        return
    for step in ran.steps:
        print(f"    {'        ' * step.slot}{ran.tasks[step.slot].operation.name}: {step.name}")
    for task in ran.tasks:
        print(f"{task.operation.name}: {task.error!r}" if task.error else f"{task.operation.name}: {task.answer!r}")
    for wait in sorted(ran.waits, key=str):
        print(f"{wait.operation} waited at {wait.statement}{'' if wait.bounded else ', without a bound'}")


def _pairs(explorer: Explorer, scene: str, most: int) -> str:
    explorer.enter(scene)
    names, complete = explorer.acting(), 0
    pairs = list(combinations_with_replacement(names, 2))
    for pair in pairs:
        complete += explorer.explore(pair, most)
    return f"{len(pairs)} pairs, {complete} of them completely"


def _crashes(explorer: Explorer, scene: str) -> str:
    return f"{sum(explorer.crash(name) for name in explorer.enter(scene))} points"


def main() -> int:
    """Run what was asked for; 1 when something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.interleavings", description=__doc__)
    parser.add_argument("schedule", nargs="?")
    parser.add_argument("--sqlite", action="store_true")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--crashes", action="store_true")
    parser.add_argument("--walks", type=int, default=0)
    parser.add_argument("--scene", choices=sorted(SCENES))
    parser.add_argument("--most", type=int, default=50)
    asked = parser.parse_args()
    logging.disable(logging.CRITICAL)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with _database(sqlite=asked.sqlite) as database:
        explorer = Explorer(database)
        with explorer.watching():
            begun = time.monotonic()
            if asked.schedule:
                _replay(explorer, Schedule.parse(asked.schedule))
            if asked.seed is not None:
                print(walk(explorer, asked.seed))
            scenes = [asked.scene] if asked.scene else list(SCENES)
            for scene in scenes:
                if asked.pairs:
                    print(f"{scene}: {_pairs(explorer, scene, asked.most)}", flush=True)
                if asked.crashes:
                    print(f"{scene}: {_crashes(explorer, scene)}", flush=True)
            for _ in range(asked.walks):
                walk(explorer, random.randrange(2**32))
            took = time.monotonic() - begun
    for finding in explorer.findings.values():
        print(finding)
    print(
        f"{explorer.schedules} schedules, {explorer.states} end states, {took:.1f} s, {len(explorer.findings)} findings"
    )
    return 1 if explorer.findings else 0


if __name__ == "__main__":
    sys.exit(main())
