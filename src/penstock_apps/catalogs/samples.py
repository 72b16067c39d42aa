"""Draws small photos to try the app with: landscapes, some of them twice, some nearly so, and three that are broken."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from uuid import UUID

from PIL import Image, ImageDraw

from penstock import Job
from penstock.private_files import make_private_folder
from penstock.samples import SampleJob, Samples, Visitor
from penstock_apps.catalogs.settings import CatalogSettings

SCENES = 32
COPIES = 6
NEAR_COPIES = 6
BROKEN_FILES = ("empty.jpg", "text.jpg", "torn.jpg")

_SIZES = ((720, 480), (480, 720), (600, 600), (960, 400))
_SUFFIXES = (".jpg", ".jpg", ".jpg", ".jpg", ".png", ".webp", ".tif", ".gif")
_CAMERAS = ("Pinhole 1", "Pinhole 2", "Camera obscura")
_FIRST_DAY = datetime(2026, 1, 3, 9, 30)  # noqa: DTZ001 - a camera does not know where it is
_MODEL, _ORIENTATION, _TAKEN_AT, _EXIF, _GPS = 0x0110, 0x0112, 0x9003, 0x8769, 0x8825


class CatalogSamples(Samples):
    """A folder of photos that is scanned, and then thumbnailed, searched for copies and tagged."""

    _catalog: UUID | None = None
    _scan: UUID | None = None

    @contextmanager
    def set_up(self, settings: CatalogSettings) -> Iterator[CatalogSettings]:
        """Catalogs are allowed where the photos are."""
        yield settings.model_copy(update={"roots": (*settings.roots, self.folder.parent.resolve())})

    def submit(self, visitor: Visitor) -> Iterator[SampleJob]:
        """Make the photos and a catalog of them, and scan it."""
        write_samples(self.folder)
        catalog = {"name": "Samples", "source_directories": [str(self.folder.resolve())]}
        self._catalog = UUID(visitor.send("/api/catalogs", catalog)["id"])
        job = self._start("scan", visitor)
        self._scan = job.id
        yield job

    def go_on(self, ended_job: Job, visitor: Visitor) -> Iterator[SampleJob]:
        """What is done with photos has to wait until they are found."""
        if ended_job.id == self._scan:
            self._scan = None
            for action in ("thumbnails", "detect-duplicates", "tag"):
                yield self._start(action, visitor)

    def _start(self, action: str, visitor: Visitor) -> SampleJob:
        job = visitor.send(f"/api/catalogs/{self._catalog}/{action}", {})["job_id"]
        return SampleJob(UUID(job), f"photos: {action}")


def write_samples(directory: Path) -> list[Path]:
    """Draw the photos into ``directory``, the same each time."""
    make_private_folder(directory)
    scenes = [_write_scene(directory, number) for number in range(SCENES)]
    copies = [_write_copy(path) for path in scenes[:COPIES]]
    near = [_write_near_copy(path) for path in scenes[COPIES : COPIES + NEAR_COPIES]]
    return [*scenes, *copies, *near, *_write_broken(directory, scenes[0])]


def _write_scene(directory: Path, number: int) -> Path:
    path = directory / f"scene-{number + 1:02}{_SUFFIXES[number % len(_SUFFIXES)]}"
    picture = _landscape(random.Random(number), *_SIZES[number % len(_SIZES)])
    picture.save(path, exif=_exif(number), quality=88) if path.suffix != ".gif" else picture.save(path)
    return path


def _landscape(chance: random.Random, width: int, height: int) -> Image.Image:
    """A sky, a sun, and hills that get darker the nearer they are."""
    evening = Image.new("RGB", (width, height), _colour(chance, 120, 255))
    morning = Image.new("RGB", (width, height), _colour(chance, 40, 200))
    picture = Image.composite(evening, morning, Image.linear_gradient("L").resize((width, height)))
    drawing = ImageDraw.Draw(picture)
    middle, top, radius = chance.randrange(width), chance.randrange(height // 3), chance.randrange(20, 60)
    drawing.ellipse((middle - radius, top, middle + radius, top + 2 * radius), fill=_colour(chance, 200, 255))
    for hill in range(1, chance.randrange(3, 6)):
        level = height * (0.35 + 0.13 * hill)
        ridge = [(x, level + chance.uniform(-0.12, 0.12) * height) for x in range(0, width + 80, 80)]
        drawing.polygon([(0, height), *ridge, (width, height)], fill=_colour(chance, 10, 160 - 25 * hill))
    return picture


def _colour(chance: random.Random, low: int, high: int) -> tuple[int, int, int]:
    return chance.randint(low, high), chance.randint(low, high), chance.randint(low, high)


def _exif(number: int) -> Image.Exif:
    exif = Image.Exif()
    exif[_MODEL] = _CAMERAS[number % len(_CAMERAS)]
    exif[_ORIENTATION] = 6 if number % 10 == 1 else 1
    exif.get_ifd(_EXIF)[_TAKEN_AT] = f"{_FIRST_DAY + timedelta(days=7 * number, hours=number % 11):%Y:%m:%d %H:%M:%S}"
    if number % 4 == 0:
        exif.get_ifd(_GPS).update({1: "N", 2: (47.0, number, 0.0), 3: "E", 4: (11.0, number, 0.0)})
    return exif


def _write_copy(path: Path) -> Path:
    copy = path.with_name(f"{path.stem} (1){path.suffix}")
    copy.write_bytes(path.read_bytes())
    return copy


def _write_near_copy(path: Path) -> Path:
    near = path.with_name(f"{path.stem}-small.jpg")
    with Image.open(path) as picture:
        picture.convert("RGB").resize((picture.width // 2, picture.height // 2)).save(near, quality=60)
    return near


def _write_broken(directory: Path, whole: Path) -> list[Path]:
    empty, text, torn = (directory / name for name in BROKEN_FILES)
    empty.write_bytes(b"")
    text.write_text("This is no photo, whatever its name says.\n")
    torn.write_bytes(whole.read_bytes()[:4000])
    return [empty, text, torn]
