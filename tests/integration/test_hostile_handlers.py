"""Whatever a handler raises or returns is the outcome of its item alone; its neighbours and its worker go on."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from penstock import Item, ItemStatus, Penstock, load_settings
from penstock.testing.invariants import violations
from tests.integration import hostile

PATIENCE = 30.0
TABLE = [(place, name) for place, cases in hostile.CASES.items() for name in cases]


@dataclass(frozen=True)
class Ran:
    """What one job with an item for each case came to."""

    items: dict[str, Item]
    peers: list[Item]
    stopped: bool
    afterwards: Any
    broken: list[str]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, _migrated_sqlite: Path) -> Callable[[str], Ran]:
    done: dict[str, Ran] = {}
    folder, streams = Path.cwd(), (sys.stdout, sys.stderr)

    def run(place: str) -> Ran:
        if place not in done:
            done[place] = _run(place, tmp_path_factory.mktemp(place))
            os.chdir(folder)
            sys.stdout, sys.stderr = streams
        return done[place]

    return run


def _run(place: str, folder: Path) -> Ran:
    """All cases of a place in one job, each between neighbours that do nothing wrong."""
    os.chdir(folder)
    settings = load_settings(
        database_url="sqlite:///penstock.db", files_directory="files", heartbeat_seconds=0.1, lock_floor_ms=60_000
    )
    app = Penstock(settings=settings)
    handler = hostile.act_async if place == "event_loop" else hostile.act
    app.kind("hostile", retries=0, concurrency=2, runs_in=place)(handler)
    names = list(hostile.CASES[place])
    inputs = [given for name in names for given in ([place, name], "fine")]
    job = app.submit("hostile", items=inputs).job
    worker = app.worker()
    worker.start()
    app.jobs.wait(job.id, timeout=PATIENCE, every=0.05)
    items = app.items.list(job.id, limit=1000)
    after = app.submit("hostile", "fine").job
    afterwards = app.jobs.wait(after.id, timeout=PATIENCE, every=0.05).result
    stopping = threading.Thread(target=worker.stop, args=(0.0,), daemon=True)
    stopping.start()
    stopping.join(PATIENCE)
    hostile.over.set()
    broken = violations(app.store)
    return Ran(dict(zip(names, items[::2], strict=True)), items[1::2], not stopping.is_alive(), afterwards, broken)


@pytest.mark.parametrize(("place", "name"), TABLE, ids=[f"{place}: {name}" for place, name in TABLE])
def test_it_is_an_outcome_of_its_item(ran: Any, place: str, name: str) -> None:
    item: Item = ran(place).items[name]
    codes = hostile.CASES[place][name][1]
    assert item.error_code in codes
    assert item.status is (ItemStatus.DONE if codes == (None,) else ItemStatus.ERROR)
    assert item.last_error is None or len(item.last_error) <= 2_000


@pytest.mark.parametrize("place", hostile.CASES)
def test_its_neighbours_and_its_worker_go_on(ran: Any, place: str) -> None:
    seen: Ran = ran(place)
    assert {(item.status, item.result) for item in seen.peers} == {(ItemStatus.DONE, "fine")}
    assert (seen.afterwards, seen.stopped, seen.broken) == ("fine", True, [])
