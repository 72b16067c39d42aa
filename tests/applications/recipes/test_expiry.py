"""A card in the mailbox says until when it can be saved."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from penstock import Job, JobState, Penstock, load_settings, owner
from penstock.app import PastJob
from penstock.settings import read_settings
from penstock_apps.recipes.application import recipes as recipes_application
from penstock_apps.recipes.kinds import RECIPE
from penstock_apps.recipes.settings import RecipeSettings
from penstock_apps.recipes.translation import in_mailbox

KEPT = timedelta(days=3)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Penstock]:
    """Kinds that end well and badly."""
    settings = load_settings(database_url=f"sqlite:///{tmp_path}/penstock.db", files_directory=tmp_path / "files")
    one = Penstock(settings=settings)
    one.system.migrate()
    one.kind("well")(lambda item: {"recipe": {"title": "Soup"}})
    one.kind("badly", retries=0)(lambda item: 1 / 0)
    yield one
    one.close()


@pytest.mark.parametrize("seconds_ago", [20, 40])
def test_half_a_minute_is_half_a_minute(tmp_path: Path, seconds_ago: int) -> None:
    given = {"RECIPE_PARSE_JOB_ABANDON_MINUTES": "0.5"}
    app = Penstock(settings=load_settings(database_url=f"sqlite:///{tmp_path}/penstock.db"))
    recipes = app.install(recipes_application, read_settings(RecipeSettings, **given))
    app.system.migrate()
    assert recipes.kind.policy.abandon_after == 30.0
    now = datetime.now(UTC)
    past = PastJob(
        id=uuid4(), state=JobState.SUCCEEDED, owner="ada", params={}, created_at=now - timedelta(minutes=1),
        started_at=None, completed_at=now - timedelta(seconds=seconds_ago), decided_at=None, result={}, error=None,
        error_code=None, unique_key=None,
    )  # fmt: skip
    app.system.import_jobs(RECIPE, [past])
    is_over = seconds_ago > 30
    waiting = recipes.mailbox(by=owner("ada"), states=[JobState.SUCCEEDED], include_expired=False, after=None, limit=9)
    assert [job.id for job in waiting] == ([] if is_over else [past.id])
    app.system.sweep()
    state = JobState.ABANDONED if is_over else JobState.SUCCEEDED
    assert app.jobs.get(past.id).state is state
    app.close()


@pytest.mark.parametrize("minutes", [0.00001, 0.5, 999_999.0])
def test_every_time_that_the_settings_allow_is_one(minutes: float) -> None:
    app = Penstock("sqlite://")
    settings = RecipeSettings(abandon_minutes=minutes, stale_minutes=minutes)
    assert app.install(recipes_application, settings).kind.policy.abandon_after == pytest.approx(minutes * 60)
    app.close()


def ended(app: Penstock, kind: str) -> Job:
    """A job of this kind, when it is over."""
    job = app.submit(kind, {"url": "https://example.com/soup"}).job
    assert app.drain(timeout=30.0)
    return app.jobs.get(job.id)


def test_a_result_expires_so_long_after_its_end(app: Penstock) -> None:
    job = ended(app, "well")
    assert job.completed_at is not None
    assert in_mailbox(job, KEPT)["expires_at"] == job.completed_at + KEPT


def test_what_was_saved_or_failed_does_not_expire(app: Penstock) -> None:
    saved = app.jobs.commit(ended(app, "well").id)
    for job in (saved, ended(app, "badly")):
        assert job.completed_at is not None
        assert in_mailbox(job, KEPT)["expires_at"] is None
