"""A card in the mailbox says until when it can be saved."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from penstock import Job, Penstock, load_settings
from penstock_apps.recipes.translation import in_mailbox

KEPT = timedelta(days=3)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Penstock]:
    """Kinds that end well and badly."""
    settings = load_settings(database_url=f"sqlite:///{tmp_path}/penstock.db", files_directory=tmp_path / "files")
    one = Penstock(settings=settings)
    one.migrate()
    one.kind("well")(lambda item: {"recipe": {"title": "Soup"}})
    one.kind("badly", retries=0)(lambda item: 1 / 0)
    yield one
    one.close()


def ended(app: Penstock, kind: str) -> Job:
    """A job of this kind, when it is over."""
    job = app.submit(kind, {"url": "https://example.com/soup"}).job
    assert app.drain(timeout=30.0)
    return app.get(job.id)


def test_a_result_expires_so_long_after_its_end(app: Penstock) -> None:
    job = ended(app, "well")
    assert job.completed_at is not None
    assert in_mailbox(job, KEPT)["expires_at"] == job.completed_at + KEPT


def test_what_was_saved_or_failed_does_not_expire(app: Penstock) -> None:
    saved = app.commit(ended(app, "well").id)
    for job in (saved, ended(app, "badly")):
        assert job.completed_at is not None
        assert in_mailbox(job, KEPT)["expires_at"] is None
