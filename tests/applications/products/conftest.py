"""A shop, and the products application that may ask it, on each database."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest

from penstock import Job, Penstock, Settings
from penstock.ingest import HandedFile, Sender, TakenFiles, UploadOptions
from penstock_apps.products.application import products as products_application
from penstock_apps.products.repository import SearchEvent
from penstock_apps.products.retailer import Retailer, demo_retailer
from penstock_apps.products.service import Products
from penstock_apps.products.settings import ProductSettings
from tests.http.conftest import settings

__all__ = ["settings"]

IMPATIENT = replace(products_application, install=partial(Products, backoff="10ms fixed"))
"""The application, which does not wait long before it tries again."""


@dataclass(frozen=True)
class Taken:
    """A job that was made of files."""

    job: Job
    report: TakenFiles

    @property
    def job_type(self) -> str:
        """Its kind."""
        return self.job.kind


@dataclass
class Market:
    """Everything a test of products needs."""

    app: Penstock
    products: Products
    shop: Retailer
    inbox: Path

    def take(
        self,
        *files: tuple[str, bytes],
        user: str = "ada",
        options: UploadOptions | None = None,
        idempotency_key: str | None = None,
    ) -> Taken:
        """Hand files in."""
        handed = [HandedFile(io.BytesIO(content), name) for name, content in files]
        sender = Sender(user, idempotency_key)
        report = self.products.intake.take_files(handed, options or UploadOptions(), sender)
        return Taken(report.jobs[0], report)

    def work(self) -> None:
        """Do all there is to do."""
        assert self.app.drain(timeout=60)

    def events(self, taken: Taken) -> list[SearchEvent]:
        """What was asked for a job."""
        return self.products.repository.of_job(taken.job.id)


@pytest.fixture
def retailers(tmp_path: Path) -> str:
    """The file that describes them; a test that wants another overrides this."""
    return str(tmp_path / "retailers.json")


@pytest.fixture
def market(settings: Settings, tmp_path: Path, retailers: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Market]:
    """The application on each database, with one shop, and with an inbox that is ada's."""
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    monkeypatch.setenv("PENSTOCK_INGEST_OWNERS", json.dumps({str(inbox): ["ada"]}))
    with demo_retailer() as shop:
        (tmp_path / "retailers.json").write_text(json.dumps([shop.configuration()]))
        app = Penstock(settings=settings.model_copy(update={"ingest_roots": (inbox,), "ingest_settle_seconds": 0.0}))
        products = app.install(IMPATIENT, ProductSettings(providers=retailers))
        app.system.migrate()
        yield Market(app, products, shop, inbox)
        app.close()
