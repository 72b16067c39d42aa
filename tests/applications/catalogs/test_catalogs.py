"""Catalogs over HTTP: scanned, thumbnailed, searched for copies and tagged, with a status that never lies."""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import httpx2
import pytest
import typer
from PIL import Image
from typer.testing import CliRunner

from penstock import Penstock, Permanent
from penstock_apps.catalogs.application import catalogs as catalogs_application
from penstock_apps.catalogs.commands import commands
from penstock_apps.catalogs.service import Catalogs
from penstock_apps.catalogs.settings import CatalogSettings
from tests.applications.catalogs.conftest import Bench
from tests.http.conftest import Served, serving, settings

__all__ = ["settings"]
PATIENCE = 60.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Seven photos: one twice, one nearly twice, and two that are broken."""
    root = tmp_path / "photos"
    (root / "deep" / "er").mkdir(parents=True)
    for number in range(3):
        picture = Image.new("L", (8, 8))
        picture.putdata([(number * 37 + at * (7 + number * 4)) % 256 for at in range(64)])
        picture.resize((160, 120), Image.Resampling.BICUBIC).convert("RGB").save(root / f"{number}.jpg", quality=90)
    shutil.copy(root / "0.jpg", root / "deep" / "copy of 0.jpg")
    with Image.open(root / "1.jpg") as one:
        one.resize((80, 60)).save(root / "deep" / "er" / "small 1.png")
    (root / "broken.jpg").write_bytes((root / "2.jpg").read_bytes()[:500])
    (root / "text.jpg").write_text("this is no picture")
    (root / "notes.txt").write_text("not looked at")
    return root


@pytest.fixture
def served(settings: Any, folder: Path, tmp_path: Path) -> Iterator[Served]:
    app = Penstock(settings=settings.model_copy(update={"sweep_seconds": 600.0}))  # nothing here waits for one
    own = CatalogSettings(roots=(folder.parent.resolve(),), thumbnails_directory=tmp_path / "thumbnails")
    app.install(catalogs_application, own)
    app.system.migrate()
    with serving(app, worker=True) as one:
        yield one
    app.close()


def made(client: httpx2.Client, folder: Path) -> str:
    """A catalog's address."""
    answer = client.post("/api/catalogs", json={"name": "Holidays", "source_directories": [str(folder)]})
    assert answer.status_code == 201, answer.text
    return f"/api/catalogs/{answer.json()['id']}"


def done(served: Served, client: httpx2.Client, address: str, **options: Any) -> dict[str, Any]:
    """A job's last answer; every one before it is checked."""
    started = client.post(address, json=options or None)
    assert started.status_code == 202, started.text
    path = f"/api/jobs/{started.json()['job_id']}"
    seen: list[dict[str, Any]] = []
    for _ in range(10_000):
        seen.append(client.get(path).json())
        if seen[-1]["status"] not in ("queued", "running"):
            break
        served.app.jobs.wait(UUID(started.json()["job_id"]), timeout=0.05, every=0.05)
    percents = [one["progress"]["percent"] for one in seen]
    assert percents == sorted(percents)
    assert all(one["progress"]["percent"] < 100 for one in seen[:-1])
    assert seen[-1]["status"] == "completed", seen[-1]
    return seen[-1]


def test_a_folder_is_scanned_and_what_is_broken_is_named(served: Served, folder: Path) -> None:
    ada = served.client()
    address = made(ada, folder)
    scanned = done(served, ada, f"{address}/scan")
    result = scanned["result"]
    assert (result["status"], result["processed"], result["errors"]) == ("completed_with_errors", 5, 2)
    assert (result["new"], result["changed"], result["removed"], result["unchanged"]) == (5, 0, 0, 0)
    assert scanned["completed_with_errors"]
    codes = {Path(one["path"]).name: one["error_code"] for one in result["error_details"]}
    assert codes == {"broken.jpg": "PHOTO_TRUNCATED", "text.jpg": "PHOTO_UNSUPPORTED"}
    (folder / "2.jpg").unlink()
    (folder / "broken.jpg").unlink()
    (folder / "text.jpg").unlink()
    Image.new("RGB", (10, 10), "red").save(folder / "0.jpg")
    Image.new("RGB", (10, 10), "blue").save(folder / "new.png")
    again = done(served, ada, f"{address}/scan")["result"]
    assert again["status"] == "completed"
    assert (again["new"], again["changed"], again["removed"], again["unchanged"]) == (1, 1, 1, 3)


def test_thumbnails_copies_and_tags(served: Served, folder: Path, tmp_path: Path) -> None:
    ada = served.client()
    address = made(ada, folder)
    done(served, ada, f"{address}/scan")
    thumbnails = done(served, ada, f"{address}/thumbnails", sizes=[32, 64], quality=70)["result"]
    assert (thumbnails["status"], thumbnails["processed"], thumbnails["errors"]) == ("completed", 5, 0)
    files = sorted((tmp_path / "thumbnails").rglob("*.jpg"))
    assert len(files) == 8, "two sizes of four contents: a copy has the same"
    for path in files:
        with Image.open(path) as picture:
            assert max(picture.size) <= int(path.parent.parent.name)
    assert done(served, ada, f"{address}/thumbnails", sizes=[32, 64], quality=70)["result"]["processed"] == 0
    copies = done(served, ada, f"{address}/detect-duplicates")["result"]
    assert (copies["photos"], copies["groups"], copies["exact_groups"], copies["copies"]) == (5, 2, 1, 2)
    pairs = {Path(one["best"]).name: [Path(path).name for path in one["copies"]] for one in copies["largest"]}
    assert pairs == {"0.jpg": ["copy of 0.jpg"], "1.jpg": ["small 1.png"]}
    tagged = done(served, ada, f"{address}/tag")["result"]
    assert (tagged["status"], tagged["processed"]) == ("completed", 5)
    listed = ada.get(f"{address}/photos").json()
    assert (len(listed["photos"]), listed["next"]) == (5, None)
    by_name = {Path(one["path"]).name: one for one in listed["photos"]}
    assert by_name["0.jpg"]["group"] == by_name["copy of 0.jpg"]["group"] == by_name["0.jpg"]["sha256"]
    assert by_name["2.jpg"]["group"] is None
    assert all("landscape" in one["tags"] for one in listed["photos"])
    small = ada.get(f"{address}/photos/{by_name['2.jpg']['id']}/thumbnails/32")
    assert (small.status_code, small.headers["content-type"], small.content[:2]) == (200, "image/jpeg", b"\xff\xd8")
    assert small.headers["cache-control"] == "private, no-cache", "its address is made of the path, and a photo changes"
    etag = small.headers["etag"]
    for tag, status in ((etag, 304), (f'"other", W/{etag}', 304), ("*", 304), ('"other"', 200)):
        assert ada.get(small.url.path, headers={"If-None-Match": tag}).status_code == status, tag
    Image.new("RGB", (160, 120), "navy").save(folder / "2.jpg")
    done(served, ada, f"{address}/scan")
    assert ada.get(small.url.path).json()["code"] == "THUMBNAIL_NOT_MADE", "the one of before is of another picture"
    done(served, ada, f"{address}/thumbnails", sizes=[32, 64], quality=70)
    edited = ada.get(small.url.path, headers={"If-None-Match": etag})
    assert (edited.status_code, edited.content != small.content) == (200, True)
    assert edited.headers["etag"] != etag
    for wrong, code in (
        (f"{by_name['2.jpg']['id']}/thumbnails/48", "THUMBNAIL_NOT_MADE"),
        (f"{'0' * 64}/thumbnails/32", "PHOTO_NOT_FOUND"),
    ):
        answer = ada.get(f"{address}/photos/{wrong}")
        assert (answer.status_code, answer.json()["code"]) == (404, code)
    for name in ("0.jpg", "deep/copy of 0.jpg"):
        (folder / name).unlink()
    done(served, ada, f"{address}/scan")
    done(served, ada, f"{address}/detect-duplicates")
    groups = [one["group"] for one in ada.get(f"{address}/photos").json()["photos"]]
    assert sorted(groups, key=str) == sorted([by_name["1.jpg"]["sha256"]] * 2 + [None], key=str)


def test_pages_of_photos_have_each_once(served: Served, folder: Path) -> None:
    ada = served.client()
    address = made(ada, folder)
    done(served, ada, f"{address}/scan")
    seen: list[str] = []
    after: str | None = ""
    while after is not None:
        page = ada.get(f"{address}/photos", params={"after": after, "limit": 2}).json()
        seen += [one["id"] for one in page["photos"]]
        after = page["next"]
    assert len(seen) == len(set(seen)) == 5
    other = made(ada, folder)
    mine = [one["id"] for one in ada.get("/api/catalogs").json()]
    assert mine == sorted([address.rpartition("/")[2], other.rpartition("/")[2]])
    assert ada.get("/api/catalogs", params={"limit": 1, "after": mine[0]}).json()[0]["id"] == mine[1]
    assert served.client("mallory").get("/api/catalogs").json() == []
    assert [one["id"] for one in served.client("root", admin=True).get("/api/catalogs").json()] == mine


def test_a_folder_that_is_not_mounted_forgets_no_photos(served: Served, folder: Path) -> None:
    ada = served.client()
    address = made(ada, folder)
    done(served, ada, f"{address}/scan")
    folder.rename(folder.with_name("elsewhere"))
    job = served.app.jobs.wait(UUID(ada.post(f"{address}/scan").json()["job_id"]), timeout=PATIENCE)
    shown = ada.get(f"/api/jobs/{job.id}").json()
    assert (shown["status"], shown["error_code"]) == ("failed", "CATALOG_FOLDER_MISSING")
    assert len(ada.get(f"{address}/photos").json()["photos"]) == 5


def test_a_catalog_that_is_gone_is_named_whenever_that_is_found_out(served: Served, folder: Path) -> None:
    ada = served.client()
    made(ada, folder)
    assert ada.get("/api/catalogs/").json() == ada.get("/api/catalogs").json() != []
    missing = ada.post(f"/api/catalogs/{uuid4()}/scan")
    assert (missing.status_code, missing.json()["code"]) == (404, "CATALOG_NOT_FOUND")
    progress = SimpleNamespace(total=0, done=0, failed=0)
    params = {"catalog_id": str(uuid4()), "directories": [str(folder / "gone")]}
    ending = SimpleNamespace(
        id=uuid4(),
        params={**params, "sizes": [16], "quality": 80, "distance": 4},
        progress=progress,
        items=lambda _: iter(()),
        results=lambda: iter(()),
    )
    for name in ("scan", "thumbnails", "duplicates", "tagging"):
        finalize: Any = served.app.kinds.get(name).finalize
        with pytest.raises(Permanent) as failed:
            finalize(ending)
        assert failed.value.code == "CATALOG_NOT_FOUND"


def test_taggers_of_ones_own_know_more_words(
    served: Served, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_tagging.py").write_text("def size(facts, picture):\n    return [f'{picture.width} wide']\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PENSTOCK_TAGGERS", "my_tagging:size")
    ada = served.client()
    address = made(ada, folder)
    done(served, ada, f"{address}/scan")
    assert done(served, ada, f"{address}/tag")["result"]["status"] == "completed"
    words = {Path(one["path"]).name: one["tags"] for one in ada.get(f"{address}/photos").json()["photos"]}
    assert "160 wide" in words["2.jpg"]
    assert "80 wide" in words["small 1.png"]


def test_a_job_that_is_full_hands_what_is_left_to_another(settings: Any, folder: Path, tmp_path: Path) -> None:
    app = Penstock(settings=settings)
    own = CatalogSettings(roots=(folder.parent.resolve(),), thumbnails_directory=tmp_path / "t")
    app.install(replace(catalogs_application, install=partial(Catalogs, max_per_job=3)), own)
    app.system.migrate()
    with serving(app, worker=True) as served:
        ada = served.client()
        first = ada.post(f"{made(ada, folder)}/scan").json()["job_id"]
        chain = [first]
        while True:
            job = app.jobs.wait(UUID(chain[-1]), timeout=PATIENCE)
            shown = ada.get(f"/api/jobs/{job.id}").json()
            assert shown["status"] == "completed"
            if shown["continued_by"] is None:
                break
            assert shown["result"]["status"] == "requeued"
            chain.append(shown["continued_by"])
            assert ada.get(f"/api/jobs/{chain[-1]}").json()["continues"] == chain[-2]
        assert len(chain) >= 2
    app.close()


def test_only_folders_below_the_roots_and_only_ones_own_catalogs(served: Served, folder: Path, tmp_path: Path) -> None:
    ada, mallory = served.client(), served.client("mallory")
    outside = folder.parent.parent
    (folder / "out").symlink_to(outside, target_is_directory=True)
    for wrong in (
        "relative",
        str(outside),
        f"{folder}/../..",
        str(folder / "out"),
        str(folder / "missing"),
        "/etc",
        "",
    ):
        answer = ada.post("/api/catalogs", json={"name": "x", "source_directories": [wrong]})
        assert (answer.status_code, answer.json()["field"]) == (422, "source_directories"), wrong
    address = made(ada, folder)
    for method, path in (
        ("GET", ""),
        ("GET", "/photos"),
        ("GET", f"/photos/{'0' * 64}/thumbnails/32"),
        ("POST", "/scan"),
        ("POST", "/thumbnails"),
        ("POST", "/detect-duplicates"),
        ("POST", "/tag"),
        ("GET", "/unreadable"),
    ):
        theirs = mallory.request(method, address + path)
        assert (theirs.status_code, theirs.json()["code"]) == (404, "CATALOG_NOT_FOUND"), path
    secret = outside / "secret.jpg"
    Image.new("RGB", (4, 4)).save(secret)
    (folder / "link.jpg").symlink_to(secret)
    scanned = done(served, ada, f"{address}/scan")["result"]
    assert scanned["processed"] == 5, "links are not followed, neither to files nor to folders"


def test_the_same_key_is_the_same_catalog_and_another_request_under_it_is_refused(served: Served, folder: Path) -> None:
    ada = served.client()

    def make(name: str, key: str = "k") -> Any:
        body = {"name": name, "source_directories": [str(folder)]}
        return ada.post("/api/catalogs", json=body, headers={"Idempotency-Key": key})

    first = make("One")
    assert (first.status_code, make("One").json()) == (201, first.json())
    other = make("Two")
    assert (other.status_code, other.json()["code"]) == (422, "IDEMPOTENCY_KEY_REUSED")
    scanned = ada.post(f"/api/catalogs/{first.json()['id']}/scan", headers={"Idempotency-Key": "k"})
    assert (scanned.status_code, scanned.json()["code"]) == (422, "IDEMPOTENCY_KEY_REUSED")
    assert make("Two", "k2").json()["id"] != first.json()["id"]
    assert len(ada.get("/api/catalogs").json()) == 2


def test_asking_twice_while_it_runs_is_one_job(served: Served, folder: Path) -> None:
    ada = served.client()
    address = made(ada, folder)
    first = ada.post(f"{address}/scan", headers={"Idempotency-Key": "k"}).json()["job_id"]
    assert ada.post(f"{address}/scan", headers={"Idempotency-Key": "k"}).json()["job_id"] == first
    for wrong in ({"sizes": [1]}, {"sizes": list(range(16, 30))}, {"quality": 0}, {"sizes": "big"}):
        assert ada.post(f"{address}/thumbnails", json=wrong).status_code == 422


def test_nul_in_what_a_camera_wrote_and_a_name_that_is_not_text(served: Served, folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()
    exif = Image.Exif()
    exif[0x010F] = "Ca\0non"
    Image.new("RGB", (60, 40), "red").save(folder / "good.jpg", exif=exif)
    Image.new("RGB", (60, 40), "blue").save(os.fsencode(folder) + b"/caf\xe9.jpg", format="JPEG")
    ada = served.client()
    address = made(ada, folder)
    done(served, ada, f"{address}/scan")
    bad, good = sorted(ada.get(f"{address}/photos").json()["photos"], key=lambda photo: photo["path"])
    assert "\0" not in good["facts"]["camera_make"]
    assert good["path_base64"] is None
    assert bad["path"] == f"{folder}/caf\ufffd.jpg"
    assert base64.b64decode(bad["path_base64"]) == os.fsencode(folder) + b"/caf\xe9.jpg"


def test_a_catalog_is_changed_and_deleted(served: Served, folder: Path) -> None:
    ada, mallory = served.client(), served.client("mallory")
    address = made(ada, folder)
    done(served, ada, f"{address}/scan")
    unreadable = ada.get(f"{address}/unreadable", params={"limit": 1}).json()
    page = ada.get(f"{address}/unreadable", params={"after": unreadable["next"]}).json()
    codes = {Path(photo["path"]).name: photo["error_code"] for photo in unreadable["photos"] + page["photos"]}
    assert codes == {"broken.jpg": "PHOTO_TRUNCATED", "text.jpg": "PHOTO_UNSUPPORTED"}
    last = ada.get(address).json()["last_scan"]
    assert (last["photos"], last["unreadable"], last["missing"]) == (5, 2, 0)
    for method, body in (("PATCH", {"name": "Mine"}), ("DELETE", None)):
        assert mallory.request(method, address, json=body).json()["code"] == "CATALOG_NOT_FOUND"
    changed = ada.patch(address, json={"name": "Sea"}).json()
    assert (changed["name"], changed["source_directories"]) == ("Sea", [str(folder)])
    wrong: tuple[tuple[str, object], ...] = (("name", ""), ("source_directories", ["/etc"]))
    for field, value in wrong:
        refused = ada.patch(address, json={field: value})
        assert (refused.status_code, refused.json()["field"]) == (422, field)
    assert ada.patch(address, json={"source_directories": [str(folder / "deep")]}).json()["last_scan"] is None
    assert done(served, ada, f"{address}/scan")["result"]["removed"] == 3
    shutil.rmtree(folder / "deep" / "er")
    (folder / "deep" / "copy of 0.jpg").unlink()
    asked = done(served, ada, f"{address}/scan")
    assert asked["result"]["missing"] == 2
    missing = ada.get(address).json()["last_scan"]["missing"]
    assert done(served, ada, f"{address}/scan", max_removed=missing)["result"]["removed"] == 2
    assert ada.post(f"{address}/scan", json={"max_removed": 0}).status_code == 422
    gone = ada.delete(address)
    assert (gone.status_code, gone.content) == (204, b"")
    assert (ada.get(address).status_code, ada.delete(address).status_code) == (404, 404)


def test_the_command_line_scans_changes_and_deletes(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", bench.app.store.engine.url.render_as_string(hide_password=False))
    monkeypatch.setenv("PENSTOCK_CATALOG_ROOTS", str(bench.folder.parent))
    program = typer.Typer()
    for group in commands:
        program.add_typer(group)
    bench.paint("a.png", "b.png", "sub/c.png")
    catalog = bench.new()
    bench.scan(catalog)
    for name in ("a.png", "b.png"):
        (bench.folder / name).unlink()
    (bench.folder / "text.jpg").write_text("no picture")

    def run(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(program, ["catalogs", *arguments])
        return result.exit_code, result.output if result.exception is None else repr(result.exception)

    assert run("scan", str(catalog), "--as", "mallory")[0] == 1
    assert run("scan", str(catalog))[0] == 0
    assert bench.app.drain(timeout=60)
    listed = run("list")[1]
    assert "3 photos, 1 could not be read, 2 are not there any more" in listed
    yes = listed.rpartition("penstock catalogs ")[2].split()
    assert yes == ["scan", str(catalog), "--max-removed", "2"]
    assert run(*yes)[0] == 0
    assert bench.app.drain(timeout=60)
    assert bench.names(catalog) == {"sub/c.png"}
    assert run("change", str(catalog))[0] == 1
    assert run("change", str(catalog), "--name", "Sea", "--folder", str(bench.folder / "sub")) == (0, "")
    assert bench.catalog(catalog).source_directories == (str(bench.folder / "sub"),)
    assert "not scanned yet" in run("list", "--as", "ada")[1]
    assert run("list", "--as", "mallory") == (0, "")
    assert run("delete", str(catalog)) == (0, "")
    assert run("list") == (0, "")
