"""Copies among 100,000 photos: within a minute, and growing about linearly.

The hashes are random, every fifth with a near copy of one to four bits. The functions are timed in one process at a
quarter, a half and the whole; the ceiling is four times the quarter, which is what growing linearly would be. Then the
same photos go through a job of the catalogs application: the comparing in processes, the groups written back.
"""

from __future__ import annotations

import gc
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benches.databases import Databases
from benches.plan import Plan, say
from benches.report import Answer, Bar, by_pairs
from benches.workload import wait_until, working
from penstock import SYSTEM, JobState, Penstock
from penstock.lifecycle.states import FINISHED
from penstock_apps.catalogs.application import catalogs as catalogs_application
from penstock_apps.catalogs.duplicates import Photo, groups_of
from penstock_apps.catalogs.hash_bits import BITS
from penstock_apps.catalogs.settings import CatalogSettings

NAME = "duplicates"
LINEAR = Bar(1.5, at_least=False)
IN_TIME = Bar(1.0, at_least=False)
MOST_SECONDS = 60.0
DISTANCE = 4
NEAR_COPIES = 0.2


def ask(databases: Databases, plan: Plan) -> list[Answer]:
    """Measure one database; the functions alone need none, and are measured beside it."""
    sizes = (plan.hashes // 4, plan.hashes // 2, plan.hashes)
    given = {size: hashes(size) for size in sizes}
    seconds: dict[int, list[float]] = {size: [] for size in sizes}
    for _ in range(plan.repetitions):
        for size in sizes:
            seconds[size].append(functions(given[size]))
    quarter, half, all_of_them = (seconds[size] for size in sizes)
    through_job = [job(databases, given[plan.hashes]) for _ in range(plan.jobs_of_photos)]
    halves = f"{sorted(half)[len(half) // 2]:.2f} s for {sizes[1]:,}, {sorted(quarter)[len(quarter) // 2]:.2f} s"
    notes = [
        f"the ceiling is four times the seconds for {sizes[0]:,}, which is linear; {halves} for {sizes[0]:,}",
        f"{plan.repetitions} repetitions, one process, no database",
    ]
    what = f"copies among {plan.hashes:,} photos"
    limit = [MOST_SECONDS]
    return [
        by_pairs(NAME, f"{what}, growth", databases.name, "s", all_of_them, [4 * one for one in quarter],
                 bar=LINEAR, notes=notes),
        by_pairs(NAME, f"{what}, in one process", databases.name, "s", all_of_them, limit * len(all_of_them),
                 bar=IN_TIME, notes=["the ceiling is the minute it may take"]),
        by_pairs(NAME, f"{what}, by a job", databases.name, "s", through_job, limit * len(through_job),
                 bar=IN_TIME, notes=["with reading the photos, comparing in processes and writing the groups"]),
    ]  # fmt: skip


def hashes(count: int) -> list[int]:
    """Random ones and near copies, each time the same, in no order."""
    chance = random.Random(20_000)
    made: list[int] = []
    while len(made) < count:
        one = chance.getrandbits(BITS)
        made.append(one)
        if chance.random() < NEAR_COPIES:
            made.append(one ^ sum(1 << bit for bit in chance.sample(range(BITS), chance.randint(1, DISTANCE))))
    del made[count:]
    chance.shuffle(made)
    return made


def functions(of: list[int]) -> float:
    """Seconds to group photos with these hashes."""
    photos = [Photo(f"/photos/{number}.jpg", f"{number:064x}", one, 6, 2) for number, one in enumerate(of)]
    gc.collect()
    begun = time.perf_counter()
    found = groups_of(photos, distance=DISTANCE)
    taken = time.perf_counter() - begun
    assert len(found) > len(of) * NEAR_COPIES / 4, f"{len(found)} groups among {len(of)} photos are too few"
    return taken


def job(databases: Databases, of: list[int]) -> float:
    """Seconds of a job that does the same to photos in the database."""
    with databases.fresh() as url, tempfile.TemporaryDirectory() as folder:
        app = Penstock(url)
        catalogs = app.install(catalogs_application, CatalogSettings(roots=(Path(folder).resolve(),)))
        app.system.migrate()
        catalog = catalogs.create("bench", [folder], user="ada")
        begun = time.perf_counter()
        catalogs.photos.save(catalog.id, _facts(of), lambda _: None)
        say(f"  {NAME} on {databases.name}: {len(of):,} photos recorded in {time.perf_counter() - begun:.0f} s")
        with working(app) as worker:
            assert worker.signals.wait("idle"), "the worker did not become idle"
            begun = time.perf_counter()
            asked = catalogs.start_duplicates(catalog.id, DISTANCE, by=SYSTEM)
            wait_until(worker, lambda: app.jobs.get(asked.id).state in FINISHED)
            taken = time.perf_counter() - begun
        ended = app.jobs.get(asked.id)
        app.close()
        assert ended.state is JobState.SUCCEEDED, f"the job ended as {ended.state}: {ended.last_error}"
        result: Any = ended.result
        assert result["photos"] == len(of)
        assert result["groups"] > len(of) * NEAR_COPIES / 4
        return taken


def _facts(of: list[int]) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, one in enumerate(of):
        known = {"width": 3000, "height": 2000, "size": 2_000_000, "modified": number, "taken_at": None}
        yield f"/photos/{number}.jpg", known | {"sha256": f"{number:064x}", "perceptual_hash": f"{one:016x}"}
