"""What `make wheel` builds can be installed elsewhere: everything that the code reads at run time is in it."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_wheel_has_every_file_of_the_packages(tmp_path: Path) -> None:
    subprocess.run(["tools/setup", "wheel", str(tmp_path)], cwd=ROOT, check=True, timeout=120)
    [wheel] = tmp_path.glob("penstock-*.whl")
    files = {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.parent.name != "src"
    }
    with zipfile.ZipFile(wheel) as archive:
        missing = files - set(archive.namelist())
        metadata = next(name for name in archive.namelist() if name.endswith("METADATA"))
        assert "Provides-Extra: postgres" in archive.read(metadata).decode()
    assert missing == set()


def test_a_job_runs_from_the_wheel_alone(tmp_path: Path) -> None:
    subprocess.run(["tools/setup", "wheel", str(tmp_path)], cwd=ROOT, check=True, timeout=120)
    [wheel] = tmp_path.glob("penstock-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    program = (
        "import penstock; from penstock import Penstock\n"
        "app = Penstock()\n"
        "app.kind('greet')(lambda item: f'hello {item.input}')\n"
        "job = app.submit('greet', 'Ada').job\n"
        "app.drain()\n"
        "print(penstock.__file__, app.get(job.id).result)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "installed")},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert ended.stdout.split() == [str(tmp_path / "installed" / "penstock" / "__init__.py"), "hello", "Ada"]
