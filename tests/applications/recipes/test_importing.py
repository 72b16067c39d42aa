"""Coming from the old queue: ids, statuses, times and results are kept, and a second time changes nothing."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from penstock import JobState, Penstock, Settings, admin, owner
from penstock.errors import ConfigurationError, JobNotFound
from penstock.testing.invariants import violations
from penstock_apps.recipes.addresses import key_of
from penstock_apps.recipes.application import recipes as recipes_application
from penstock_apps.recipes.importing import OwnerRule, import_old_jobs
from penstock_apps.recipes.service import Recipes
from penstock_apps.recipes.settings import RecipeSettings
from penstock_apps.recipes.translation import in_mailbox
from tests.http.conftest import settings

__all__ = ["settings"]
BASELINE = """
CREATE TABLE recipe_parse_jobs (
    id VARCHAR PRIMARY KEY, job_type VARCHAR NOT NULL, url VARCHAR, use_llm_fallback BOOLEAN NOT NULL,
    status VARCHAR NOT NULL, result_json JSON, error_code VARCHAR, error_message TEXT, attempts INTEGER NOT NULL,
    started_at DATETIME, completed_at DATETIME, created_at DATETIME NOT NULL, updated_at DATETIME NOT NULL
)
"""
URL = "https://kitchen.example/soup/"
RESULT = '{"success": true, "recipe": {"title": "Soup", "ingredients": [], "steps": []}, "warnings": []}'
IDS = {name: str(uuid4()) for name in ("COMPLETE", "ERROR", "PENDING", "RUNNING", "CANCELED", "COMMITTED", "ABANDONED")}


@pytest.fixture
def old(tmp_path: Path) -> str:
    """An old queue with a job of each status, one with an odd id, and one nobody can use."""
    path = tmp_path / "old.db"
    link = sqlite3.connect(path)
    link.execute(BASELINE)
    for status, job_id in IDS.items():
        _insert(link, job_id, status)
    _insert(link, "job-17", "COMPLETE")
    _insert(link, "odd", "LOST")
    link.commit()
    link.close()
    return f"sqlite:///{path}"


def _insert(link: sqlite3.Connection, job_id: str, status: str) -> None:
    over = status not in ("PENDING", "RUNNING")
    link.execute(
        "INSERT INTO recipe_parse_jobs VALUES (?, 'url', ?, 1, ?, ?, ?, ?, 1, ?, ?, ?, ?)",
        (
            job_id, URL, status, RESULT if over and status != "ERROR" else None,
            "PARSE_ERROR" if status == "ERROR" else None, "it was odd" if status == "ERROR" else None,
            "2025-12-01 10:00:01", "2025-12-01 10:00:05" if over else None,
            "2025-12-01 10:00:00", "2025-12-01 11:00:00",
        ),
    )  # fmt: skip


@pytest.fixture
def new(settings: Settings) -> tuple[Penstock, Recipes]:
    app = Penstock(settings=settings)
    recipes = app.install(recipes_application, RecipeSettings())
    app.system.migrate()
    return app, recipes


def test_everything_is_brought_over_and_a_second_time_changes_nothing(new: tuple[Penstock, Recipes], old: str) -> None:
    app, _ = new
    first = import_old_jobs(app, old, OwnerRule(always="ada"))
    assert (first.read_count, first.imported_count, first.known_count, list(first.refusals)) == (9, 8, 0, ["odd"])
    again = import_old_jobs(app, old, OwnerRule(always="ada"))
    assert (again.read_count, again.imported_count, again.known_count, list(again.refusals)) == (9, 0, 8, ["odd"])
    states = {
        "COMPLETE": JobState.SUCCEEDED, "ERROR": JobState.FAILED, "PENDING": JobState.QUEUED,
        "RUNNING": JobState.QUEUED, "CANCELED": JobState.CANCELED, "COMMITTED": JobState.COMMITTED,
        "ABANDONED": JobState.ABANDONED,
    }  # fmt: skip
    for name, state in states.items():
        assert app.acting_as(owner("ada")).jobs.get(UUID(IDS[name])).state is state, name
    done = app.jobs.get(UUID(IDS["COMPLETE"]))
    assert done.result["recipe"]["title"] == "Soup"
    assert (done.params["url"], done.params["url_hash"]) == (URL, key_of(URL.rstrip("/"))), "the address as it was"
    assert done.completed_at == datetime(2025, 12, 1, 10, 0, 5, tzinfo=UTC)
    failed = app.jobs.get(UUID(IDS["ERROR"]))
    assert (failed.last_error, failed.error_code) == ("it was odd", "PARSE_ERROR")
    assert [line.to_state.value for line in app.jobs.history(UUID(IDS["COMMITTED"]))] == [
        "queued", "running", "succeeded", "committed",
    ]  # fmt: skip
    assert violations(app.store) == []
    app.close()


def test_jobs_keep_what_they_were(new: tuple[Penstock, Recipes], old: str) -> None:
    link = sqlite3.connect(old.removeprefix("sqlite:///"))
    for status, job_type in (("COMPLETE", "ocr"), ("ERROR", "social")):
        link.execute("UPDATE recipe_parse_jobs SET job_type = ? WHERE id = ?", (job_type, IDS[status]))
    link.execute("UPDATE recipe_parse_jobs SET url = NULL WHERE id = ?", (IDS["COMPLETE"],))
    social = "UPDATE recipe_parse_jobs SET use_llm_fallback = 0, job_type = 'social' WHERE id = ?"
    link.execute(social, (IDS["PENDING"],))
    link.commit()
    link.close()
    app, recipes = new
    import_old_jobs(app, old, OwnerRule(always="ada"))
    for status, job_type in (("COMPLETE", "ocr"), ("ERROR", "social"), ("PENDING", "social"), ("RUNNING", "url")):
        card = in_mailbox(recipes.get(UUID(IDS[status]), by=owner("ada")), timedelta(days=3))
        assert card["job_type"] == job_type, status
    assert not recipes.kind.params(app.jobs.get(UUID(IDS["PENDING"])))["use_llm_fallback"]
    app.close()


def test_what_nobody_owns_is_for_admins_alone(new: tuple[Penstock, Recipes], old: str) -> None:
    app, recipes = new
    import_old_jobs(app, old, OwnerRule())
    job = UUID(IDS["COMPLETE"])
    for somebody in (owner("ada"), owner(None)):
        with pytest.raises(JobNotFound):
            recipes.get(job, by=somebody)
    assert recipes.get(job, by=admin("root")).id == job
    app.close()


def test_a_column_says_whose_a_job_is(new: tuple[Penstock, Recipes], old: str) -> None:
    link = sqlite3.connect(old.removeprefix("sqlite:///"))
    link.execute("ALTER TABLE recipe_parse_jobs ADD COLUMN member VARCHAR")
    link.execute("UPDATE recipe_parse_jobs SET member = 'bob' WHERE status = 'COMPLETE'")
    link.commit()
    link.close()
    app, recipes = new
    import_old_jobs(app, old, OwnerRule("member", "ada"))
    assert recipes.get(UUID(IDS["COMPLETE"]), by=owner("bob")).user_id == "bob"
    assert recipes.get(UUID(IDS["ERROR"]), by=owner("ada")).user_id == "ada"
    app.close()


def test_a_source_without_the_table_is_said_plainly(new: tuple[Penstock, Recipes], tmp_path: Path) -> None:
    app, _ = new
    with pytest.raises(ConfigurationError) as refused:
        import_old_jobs(app, f"sqlite:///{tmp_path}/empty.db", OwnerRule())
    assert refused.value.code == "OLD_QUEUE_UNREADABLE"
    app.close()
