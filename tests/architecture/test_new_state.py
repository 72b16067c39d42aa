"""A new state is one entry in the table: added to a copy of the sources, it is everywhere the others are."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import penstock

SOURCES = Path(penstock.__file__).parent
LAST = "    def __new__(\n        cls,\n        value: str,\n        work: Work"
ENTRY = (
    '    ARCHIVED = "archived", Work.DONE, Look("Put away", "skip", "gray"), "kept for the records", "abandoned"\n\n'
)
LOOK = """
import json
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateTable
from typer.main import get_command
from click.testing import CliRunner

from penstock import Penstock, create_app
from penstock.cli.program import program
from penstock.cli.screen import in_colour
from penstock.lifecycle.states import JobState
from penstock.lifecycle.vocabularies import CELERY, QUEUE_STATE, TASKS, Vocabulary
from penstock.settings import load_settings
from penstock.store.tables import jobs
from penstock.web.lifecycle_table import lifecycle_script

archived = JobState("archived")
app = Penstock(settings=load_settings(database_url="sqlite://", jwt_secret="s" * 64))
schemas = create_app(app).openapi()["components"]["schemas"]
otherwise = Vocabulary("own", {**TASKS.words, archived: "kept"})
print(json.dumps({
    "constraints": [str(CreateTable(jobs).compile(dialect=each.dialect())) for each in (sqlite, postgresql)],
    "api": schemas["JobState"]["enum"],
    "words": [vocabulary.word(archived) for vocabulary in (TASKS, QUEUE_STATE, CELERY, otherwise)],
    "command": CliRunner().invoke(get_command(program), ["jobs", "--help"], env={"COLUMNS": "400"}).output,
    "style": str(in_colour("archived", archived).style),
    "page": json.loads(lifecycle_script()),
}))
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a program whose table has one more entry says."""
    copy = tmp_path_factory.mktemp("sources")
    for package in ("penstock", "penstock_apps"):
        shutil.copytree(SOURCES.parent / package, copy / package, ignore=shutil.ignore_patterns("__pycache__"))
    table = copy / "penstock" / "lifecycle" / "states.py"
    before = table.read_text()
    assert before.count(LAST) == 1
    table.write_text(before.replace(LAST, ENTRY + LAST))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(copy), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, "-c", LOOK],
        env=environment,
        cwd=copy,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_database_takes_it(seen: dict[str, Any]) -> None:
    assert all("'archived'" in constraint for constraint in seen["constraints"])


def test_the_api_names_it(seen: dict[str, Any]) -> None:
    assert seen["api"][-1] == "archived"


def test_it_has_the_words_of_the_state_it_is_shown_as_unless_a_vocabulary_says_otherwise(seen: dict[str, Any]) -> None:
    assert seen["words"] == ["completed", "DONE", "SUCCESS", "kept"]


def test_the_command_line_offers_it(seen: dict[str, Any]) -> None:
    assert "archived" in seen["command"]
    assert seen["style"] == "", "gray is the terminal's own colour"


def test_the_pages_know_it(seen: dict[str, Any]) -> None:
    assert seen["page"]["states"]["archived"] == {
        "look": {"word": "Put away", "icon": "skip", "colour": "gray"},
        "status": "completed",
        "shown_as": "abandoned",
        "is_over": True,
    }
