"""The core install: the built wheel without extras, in an environment that has nothing else."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made by uv from its cache, in a second or two."""
    folder = tmp_path_factory.mktemp("core")
    subprocess.run(["tools/setup", "core", str(folder)], cwd=ROOT, check=True, timeout=110)
    return folder / ".venv"


@pytest.fixture
def run(environment: Path, tmp_path: Path) -> Run:
    """Runs a program of that environment in an empty folder."""

    def start(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        variables = {name: value for name, value in os.environ.items() if not name.startswith(("PENSTOCK", "PYTHON"))}
        return subprocess.run(
            [environment / "bin" / program, *arguments],
            cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    return start


def test_it_is_small(run: Run) -> None:
    listing = (
        "from importlib.metadata import distributions; print(*{d.name.lower() for d in distributions()}, sep='\\n')"
    )
    packages = set(run("python", "-c", listing).stdout.split())
    assert {"penstock", "sqlalchemy", "typer"} <= packages
    assert not packages & {"fastapi", "starlette", "uvicorn", "pyjwt", "jinja2", "psycopg", "pytest", "pillow"}
    assert len(packages) < 35


def test_the_ten_lines_of_the_readme_run_as_they_say(run: Run, tmp_path: Path) -> None:
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    place, source = next(
        (place, body) for place, (_, body) in enumerate(blocks) if body.startswith("# file: greeting.py")
    )
    kind, printed = blocks[place + 1]
    assert kind == "text"
    (tmp_path / "greeting.py").write_text(source)
    ended = run("python", "greeting.py")
    assert (ended.stdout, ended.returncode) == (printed, 0), ended.stderr
    listed = run("penstock", "jobs", "--json", "--app", "greeting:app")
    assert '"state":"succeeded"' in listed.stdout, listed.stderr


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (("serve",), "penstock[server]"),
        (("demo",), "penstock[server]"),
        (("token", "--user", "ada"), "penstock[server]"),
        (("submit", "document", "{}"), "penstock[documents]"),
        (("jobs", "--json"), None),
    ],
    ids=["serve", "demo", "token", "a kind of an application", "jobs"],
)
def test_what_needs_an_extra_names_it_in_one_line(run: Run, arguments: tuple[str, ...], extra: str | None) -> None:
    ended = run("penstock", *arguments)
    if extra is None:
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
        return
    assert ended.returncode == 2
    assert extra in ended.stderr
    assert ended.stderr.endswith("(LIBRARY_MISSING)\n")
    assert ended.stderr.count("\n") == 1


def test_a_server_s_database_names_the_extra_too(run: Run) -> None:
    program = "from penstock import Penstock; Penstock('postgresql://ada@127.0.0.1:1/jobs').jobs.list()"
    ended = run("python", "-c", program)
    assert "penstock[postgres]" in ended.stderr.strip().splitlines()[-1]
