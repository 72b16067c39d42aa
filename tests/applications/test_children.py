"""What a stranger's file makes a library do happens in a child process, in every application that ships."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock import Penstock, RunsIn
from penstock.applications import install_applications
from penstock.exports import workbook_chunks
from penstock_apps.documents.sample_pdf import pdf_bytes
from penstock_apps.products.retailer import sample_image
from tests.applications.products.hostile_files import zip_of

_WORK = """
import json, sys
from pathlib import Path
from penstock import Penstock, load_settings, owner
from penstock.applications import install_applications
from penstock.ingest import HandedFile, Sender, UploadOptions
from penstock.server import create_app

folder = Path(sys.argv[1])
settings = load_settings(database_url=f"sqlite:///{folder}/penstock.db", files_directory=folder / "files")
app = install_applications(Penstock(settings=settings))
create_app(app)
jobs = []
for path in sorted((folder / "uploads").iterdir()):
    kind = "document" if path.suffix in (".pdf", ".docx", ".html") else "image" if path.suffix == ".zip" else "csv"
    with path.open("rb") as file:
        taken = app.kinds.get(kind).intake.take_files([HandedFile(file, path.name)], UploadOptions(kind), Sender("ada"))
    jobs += taken.jobs
[catalogs] = [one.service for one in app.applications if one.application.name == "catalogs"]
catalog = catalogs.create("photos", [str(folder / "photos")], user="ada")
for start in (catalogs.start_scan, catalogs.start_thumbnails, catalogs.start_tagging):
    jobs.append(start(catalog.id, by=owner("ada")))
    assert app.drain(timeout=100)
libraries = ("PIL", "pillow_heif", "zxingcpp", "pypdf", "lxml", "recipe_scrapers", "rapidocr", "cv2")
print(json.dumps({
    "loaded": [name for name in libraries if name in sys.modules],
    "done": [[app.jobs.get(job.id).kind, app.jobs.get(job.id).state.value] for job in jobs],
}))
app.close()
"""


def test_a_server_that_takes_and_works_off_files_loads_no_library_that_reads_them(tmp_path: Path) -> None:
    uploads = {
        "a.csv": b"sku;title\n1;Kettle\n",
        "b.xlsx": b"".join(workbook_chunks(["sku"], [["1"]])),
        "c.zip": zip_of(("photo.png", sample_image(0))),
        "d.pdf": pdf_bytes(["one page"], title="A title", author="An author"),
        "e.html": b"<html><title>A page</title><p>Words</p>",
    }
    for folder in ("uploads", "photos"):
        (tmp_path / folder).mkdir()
    for name, content in uploads.items():
        (tmp_path / "uploads" / name).write_bytes(content)
    (tmp_path / "photos" / "photo.png").write_bytes(sample_image(1))
    done = subprocess.run(
        [sys.executable, "-c", _WORK, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        env=os.environ
        | {"PENSTOCK_CATALOG_ROOTS": str(tmp_path), "PENSTOCK_JWT_SECRET": "x" * 40, "PENSTOCK_LOG_LEVEL": "ERROR"},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["loaded"] == []
    kinds = ["csv", "csv", "image", "document", "document", "scan", "thumbnails", "tagging"]
    assert found["done"] == [[kind, "succeeded"] for kind in kinds]


@pytest.mark.parametrize("kind", ["document", "scan", "thumbnails", "duplicates", "tagging"])
def test_kinds_that_open_files_run_in_processes_with_limits(kind: str) -> None:
    app = install_applications(Penstock("sqlite://"))
    policy = app.kinds.get(kind).policy
    assert policy.runs_in is RunsIn.PROCESSES
    assert policy.timeout
    assert policy.memory_limit
    app.close()
