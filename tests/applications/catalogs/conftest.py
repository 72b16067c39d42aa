"""Catalogs without a server: their handlers run in threads of this process, which costs no time to start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from PIL import Image

from penstock import Job, Penstock, Policy, load_settings, owner
from penstock_apps.catalogs import service
from penstock_apps.catalogs.application import catalogs as catalogs_application
from penstock_apps.catalogs.repository import Catalog
from penstock_apps.catalogs.service import Catalogs
from penstock_apps.catalogs.settings import CatalogSettings

ADA = owner("ada")


@dataclass
class Bench:
    """The application, a folder for photos, and what tests do again and again."""

    app: Penstock
    catalogs: Catalogs
    folder: Path

    def paint(self, *names: str, shade: int = 0) -> None:
        """Photos that look like no others; of another shade, they have other bytes."""
        for number, name in enumerate(names):
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            picture = Image.new("L", (9, 8))
            picture.putdata([(sum(map(ord, name)) * 37 + at * (7 + 4 * number) + shade * 5) % 256 for at in range(72)])
            picture.resize((90, 80), Image.Resampling.NEAREST).convert("RGB").save(path)

    def new(self, *folders: str) -> UUID:
        """A catalog of these folders, or of all photos."""
        directories = [str(self.folder / name) for name in folders] or [str(self.folder)]
        return self.catalogs.create("Holidays", directories, user="ada").id

    def catalog(self, catalog_id: UUID) -> Catalog:
        """As it stands now."""
        return self.catalogs.get(catalog_id, by=ADA)

    def names(self, catalog_id: UUID) -> set[str]:
        """The photos that are known."""
        return {str(Path(photo.path).relative_to(self.folder)) for photo in self.catalogs.photos.all(catalog_id)}

    def tagged(self, catalog_id: UUID) -> set[str]:
        """The photos whose tags are known."""
        return {Path(photo.path).name for photo in self.catalogs.photos.all(catalog_id) if photo.tags}

    def ended(self, job: Job) -> Job:
        """A job and all that goes on with it, worked off."""
        assert self.app.drain(timeout=60)
        return self.app.jobs.get(job.id)

    def scan(self, catalog_id: UUID, max_removed: int | None = None) -> Any:
        """The result of a scan."""
        job = self.ended(self.catalogs.start_scan(catalog_id, max_removed, by=ADA))
        assert job.result is not None, (job.error_code, job.last_error)
        return job.result

    def tag(self, catalog_id: UUID) -> Any:
        """The result of tagging."""
        return self.ended(self.catalogs.start_tagging(catalog_id, by=ADA)).result


@pytest.fixture
def make_bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Bench]]:
    """Makes a bench of an application with these limits and settings."""
    monkeypatch.setattr(service, "_POLICY", Policy(retries=0, runs_in="threads"))
    apps: list[Penstock] = []

    def make(max_per_job: int = 100_000, **options: Any) -> Bench:
        settings = load_settings(database_url=f"sqlite:///{tmp_path}/p.db", files_directory=tmp_path / "files")
        app = Penstock(settings=settings)
        apps.append(app)
        folder = tmp_path / "photos"
        folder.mkdir(exist_ok=True)
        own = CatalogSettings(roots=(tmp_path.resolve(),), thumbnails_directory=tmp_path / "thumbnails", **options)
        install = partial(Catalogs, max_per_job=max_per_job)
        catalogs = app.install(replace(catalogs_application, install=install), own)
        return Bench(app, catalogs, folder)

    yield make
    for app in apps:
        app.close()


@pytest.fixture
def bench(make_bench: Callable[..., Bench]) -> Bench:
    """One with the usual limits."""
    return make_bench()
