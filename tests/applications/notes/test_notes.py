"""A fifth application, in one small file: the engine serves it without knowing a word of it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from penstock import Penstock, load_settings
from penstock.cli.demonstration.stage import Stage
from tests.applications.notes.notes import Notes, NoteSettings, notes
from tests.http.conftest import SECRET, Served, serving

ROOT = Path(__file__).parents[3]
FILE = Path(__file__).with_name("notes.py")
PAGE = ROOT / "docs" / "how-to" / "write-an-application.md"
PATIENCE = 100.0
COMMANDS = """
import os, sys
from penstock.cli.program import run
sys.stderr = sys.stdout
for variables, command in (
    ({"PENSTOCK_APPLICATIONS": "letters"}, ["jobs"]),
    ({"PENSTOCK_APPLICATIONS": "notes", "NOTES_MAX_WORDS": "0"}, ["config"]),
    ({"NOTES_MAX_WORDS": "7"}, ["config"]),
    ({}, ["submit", "note", '{"text": "a b"}', "--owner", "ada"]),
    ({}, ["count-notes", "ada"]),
    ({}, ["--help"]),
    ({}, ["submit", "letter", "x"]),
):
    os.environ.update(variables)
    print("-- next")
    run(command)
"""
"""Commands one after the other in a process, as somebody would type them."""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A server with the application alone, and its worker."""
    settings = load_settings(database_url=f"sqlite:///{tmp_path}/notes.db", jwt_secret=SECRET)
    app = Penstock(settings=settings)
    assert isinstance(app.install(notes, NoteSettings(max_words=3)), Notes)
    with serving(app, worker=True) as one:
        yield one
    app.close()


def test_the_page_shows_this_file() -> None:
    text = FILE.read_text(encoding="utf-8")
    assert f"```python\n{text}```" in PAGE.read_text(encoding="utf-8"), "the how-to has another example than the test"
    assert len(text.splitlines()) < 100


def test_it_brings_settings_a_table_a_kind_routes_and_a_page(served: Served) -> None:
    ada = served.client()
    taken = ada.post("/api/kinds/note/jobs", json={"text": "one two three four"}, headers={"Idempotency-Key": "k"})
    again = ada.post("/api/kinds/note/jobs", json={"text": "one two three four"}, headers={"Idempotency-Key": "k"})
    assert (taken.status_code, again.json()["job_id"]) == (202, taken.json()["job_id"])
    assert served.app.jobs.wait(UUID(taken.json()["job_id"]), timeout=PATIENCE).result == {"words": 3}, (
        "its settings hold"
    )
    assert ada.get("/api/notes/count").json() == {"count": 1}
    assert served.client("bob").get("/api/notes/count").json() == {"count": 0}
    page = ada.get("/ui/notes")
    assert page.status_code == 200
    assert "<h1>Notes</h1>" in page.text
    assert 'href="/ui/notes" aria-current="page">Notes</a>' in page.text
    assert "/ui/notes" in ada.get("/ui/jobs").text, "its page is in the navigation"


def test_params_are_checked_by_their_schema_and_described(served: Served) -> None:
    ada = served.client()
    assert ada.post("/api/kinds/note/jobs", json={"text": ""}).status_code == 422
    assert ada.post("/api/kinds/other/jobs", json={"text": "x"}).status_code == 404
    assert served.client(None).post("/api/kinds/note/jobs", json={"text": "x"}).status_code == 401
    document = ada.get("/openapi.json").json()
    body = document["paths"]["/api/kinds/note/jobs"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert document["components"]["schemas"][body["$ref"].rpartition("/")[2]]["properties"].keys() == {"text"}
    assert "post" not in document["paths"]["/api/jobs"], "no kind here takes files"
    assert {path for path in document["paths"] if "kinds" in path} == {"/api/kinds/note/jobs"}


def test_it_is_found_by_its_entry_point_and_brings_its_command(tmp_path: Path) -> None:
    (tmp_path / "notes.py").write_bytes(FILE.read_bytes())
    about = tmp_path / "notes-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: notes\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[penstock.applications]\nnotes = notes:notes\n")
    path = os.pathsep.join((str(tmp_path), *filter(None, sys.path)))
    environment = {**os.environ, "PYTHONPATH": path, "PENSTOCK_APPLICATIONS": "notes"}
    environment.pop("PENSTOCK_APP", None)
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS],
        cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE,
        check=True,
    )  # fmt: skip
    unknown, wrong, shown, submitted, counted, listed, other = done.stdout.split("-- next\n")[1:]
    assert "PENSTOCK_APPLICATIONS names 'letters'" in unknown
    assert "NOTES_MAX_WORDS: Input should be greater than" in wrong
    assert "NOTES_MAX_WORDS = 7  (environment)" in shown
    assert "note queued" in submitted
    assert counted == "0\n"
    assert "count-notes" in listed
    assert "known: note" in other


def test_its_samples_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("penstock.applications.find_applications", lambda: {"notes": notes})
    settings = load_settings(database_url=f"sqlite:///{tmp_path}/notes.db", stop_grace_seconds=0.5)
    ended: list[bool] = []
    stage = Stage(settings, tmp_path / "samples")
    show = threading.Thread(target=lambda: ended.append(stage.perform(host="127.0.0.1", port=0, stay=False)))
    show.start()
    show.join(PATIENCE)
    assert ended == [True]
    assert "note: the gate: succeeded" in capsys.readouterr().out
