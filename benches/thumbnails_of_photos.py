"""Thumbnails by a job, against plain Pillow in a pool of processes: photos a second, on the same files.

A photo is six million pixels of noise over a gradient, every second one turned by its EXIF data, and about the size of
what a camera makes. Both sides make the same two sizes of each. Both are timed from nothing to the last file: the
processes have to start on either side, and ours also plans, claims, records and finishes a job.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from PIL import ExifTags, Image, ImageChops, ImageOps

from benches.databases import Databases
from benches.plan import Plan, in_turns, say
from benches.report import Answer, Bar, by_pairs
from benches.workload import wait_until, working
from penstock import SYSTEM, JobState, Penstock
from penstock.lifecycle.states import FINISHED
from penstock_apps.catalogs.application import catalogs as catalogs_application
from penstock_apps.catalogs.settings import CatalogSettings

NAME = "thumbnails"
BAR = Bar(0.8)
SIZES = (128, 512)
QUALITY = 80
PROCESSES = 2
PIXELS = (3000, 2000)
PICTURES = 8
ON_ITS_SIDE = 6


def ask(databases: Databases, plan: Plan) -> list[Answer]:
    """Measure one database."""
    files = photos(plan.photos)
    mine, theirs = in_turns(
        lambda: len(files) / ours(databases, files), lambda: len(files) / plain(files), plan.repetitions_of_photos
    )
    size = sum(one.stat().st_size for one in files) / len(files) / 1e6
    each = f"{PIXELS[0]}x{PIXELS[1]} and {size:.1f} MB, sizes {SIZES[0]} and {SIZES[1]}"
    notes = [f"{len(files)} JPEGs of {each}, {PROCESSES} processes on both sides; {len(mine)} repetitions"]
    return [by_pairs(NAME, "thumbnails of photos", databases.name, "photos/s", mine, theirs, bar=BAR, notes=notes)]


@cache
def photos(count: int) -> list[Path]:
    """So many files, made once in a run. There are few pictures: what differs is behind the end of a file."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-photos-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    begun = time.perf_counter()
    made = [_picture(folder / f"0-{number}.jpg", number) for number in range(min(PICTURES, count))]
    for number in range(len(made), count):
        file = folder / f"{number // PICTURES}-{number % PICTURES}.jpg"
        file.write_bytes(made[number % PICTURES].read_bytes() + f"{number}".encode())
        made.append(file)
    say(f"  {NAME}: {count} photos made in {time.perf_counter() - begun:.0f} s")
    return made


def _picture(file: Path, number: int) -> Path:
    """A photo like a camera's: large soft shapes, some fine noise."""
    coarse = [Image.effect_noise((30, 20), 90).resize(PIXELS, Image.Resampling.BICUBIC) for _ in range(3)]
    fine = Image.effect_noise(PIXELS, 16)
    seen = Image.merge("RGB", [ImageChops.add(one, fine, scale=2) for one in coarse])
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = ON_ITS_SIDE if number % 2 else 1
    seen.save(file, quality=90, exif=exif)
    return file


def ours(databases: Databases, files: list[Path]) -> float:
    """Seconds of a job on a catalog that knows these photos."""
    with databases.fresh() as url, tempfile.TemporaryDirectory() as made:
        app = Penstock(url)
        folder = files[0].parent.resolve()
        catalogs = app.install(catalogs_application, CatalogSettings(roots=(folder,), thumbnails_directory=Path(made)))
        app.system.migrate()
        catalog = catalogs.create("bench", [str(folder)], user="ada")
        catalogs.photos.save(catalog.id, [_facts(number, file) for number, file in enumerate(files)], lambda _: None)
        with working(app) as worker:
            assert worker.signals.wait("idle"), "the worker did not become idle"
            begun = time.perf_counter()
            asked = catalogs.start_thumbnails(catalog.id, list(SIZES), QUALITY, by=SYSTEM)
            wait_until(worker, lambda: app.jobs.get(asked.id).state in FINISHED)
            taken = time.perf_counter() - begun
        ended = app.jobs.get(asked.id)
        app.close()
        assert ended.state is JobState.SUCCEEDED, f"the job ended as {ended.state}: {ended.last_error}"
        _check(Path(made), len(files))
        return taken


def _facts(number: int, file: Path) -> tuple[str, dict[str, Any]]:
    facts = {"size": file.stat().st_size, "modified": 0, "sha256": sha256(file.read_bytes()).hexdigest()}
    return str(file.resolve()), facts | {"perceptual_hash": f"{number:016x}"}


def plain(files: list[Path]) -> float:
    """Seconds of a script that does the same to the same files, and nothing else."""
    with tempfile.TemporaryDirectory() as made:
        begun = time.perf_counter()
        with ProcessPoolExecutor(PROCESSES) as pool:
            done = sum(pool.map(_shrink, files, [Path(made)] * len(files)))
        taken = time.perf_counter() - begun
        assert done == len(files) * len(SIZES)
        _check(Path(made), len(files))
        return taken


def _shrink(file: Path, directory: Path) -> int:
    """One photo, read once for all sizes."""
    with Image.open(file) as picture:
        largest = max(SIZES)
        picture.draft("RGB", (largest, largest))
        picture.thumbnail((largest, largest), Image.Resampling.LANCZOS, reducing_gap=2.0)
        small = ImageOps.exif_transpose(picture)
        for edge in sorted(SIZES, reverse=True):
            small.thumbnail((edge, edge), Image.Resampling.LANCZOS, reducing_gap=2.0)
            small.save(directory / f"{edge}-{file.name}", "JPEG", quality=QUALITY)
    return len(SIZES)


def _check(directory: Path, count: int) -> None:
    found = sum(1 for _ in directory.rglob("*.jpg"))
    assert found == count * len(SIZES), f"{found} thumbnails of {count} photos"
