"""Scans of real folders: folders that cannot be read, disks that are away, jobs that get in each other's way."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from PIL import Image

from penstock import ItemStatus, Job, JobState
from penstock.errors import JobNotFound, TransitionRefused
from penstock_apps.catalogs import kinds, scanning
from penstock_apps.catalogs.handlers import thumbnail_path
from tests.applications.catalogs.conftest import ADA, Bench
from tests.waiting import eventually

HEIC_HEAD = b"\0\0\0\x18ftypheic" + bytes(200)


@contextmanager
def unreadable(monkeypatch: pytest.MonkeyPatch, folder: Path, error: int) -> Iterator[None]:
    """Tests may run as root, who may read everything: here the folder itself says no."""
    scandir = os.scandir

    def refusing(path: str) -> Any:
        if str(path) == str(folder):
            raise OSError(error, os.strerror(error), str(path))
        return scandir(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refusing)
        yield


@pytest.mark.parametrize("error", [errno.EACCES, errno.EIO, errno.ESTALE])
def test_nothing_is_forgotten_below_a_folder_that_cannot_be_read(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    bench.paint("a.png", "gone.png", "x.png", "y.png", "usb/b.png", "usb/deep/c.png")
    catalog = bench.new()
    assert bench.scan(catalog)["new"] == 6
    bench.tag(catalog)
    (bench.folder / "gone.png").unlink()
    with unreadable(monkeypatch, bench.folder / "usb", error):
        result = bench.scan(catalog)
    assert (result["status"], result["removed"], result["out_of_sight"]) == ("completed_with_errors", 1, 2)
    assert result["unreadable_folders"] == [str(bench.folder / "usb")]
    last = bench.catalog(catalog).last_scan
    assert last is not None
    assert (last["photos"], last["out_of_sight"], last["missing"]) == (5, 2, 0)
    again = bench.scan(catalog)
    assert (again["status"], again["new"], again["unchanged"]) == ("completed", 0, 5)
    assert bench.tagged(catalog) == {"a.png", "x.png", "y.png", "b.png", "c.png"}


def test_a_disk_that_is_not_mounted_is_asked_about_and_a_person_says_yes(bench: Bench) -> None:
    bench.paint("a.png", "b.png", "c.png", "usb/d.png")
    catalog = bench.new()
    bench.scan(catalog)
    bench.tag(catalog)
    (bench.folder / "usb" / "d.png").rename(bench.folder.parent / "d.png")  # its folder is there, and empty
    asked = bench.scan(catalog)
    assert (asked["missing"], asked["removed"], asked["status"]) == (1, 0, "completed_with_errors")
    assert bench.catalog(catalog).last_scan is not None
    assert bench.names(catalog) == {"a.png", "b.png", "c.png", "usb/d.png"}
    (bench.folder.parent / "d.png").rename(bench.folder / "usb" / "d.png")
    back = bench.scan(catalog)
    assert (back["missing"], back["new"]) == (0, 0)
    assert bench.tagged(catalog) == {"a.png", "b.png", "c.png", "d.png"}
    shutil.rmtree(bench.folder / "usb")
    for name in ("a.png", "b.png"):
        (bench.folder / name).unlink()
    assert bench.scan(catalog)["missing"] == 3
    assert bench.scan(catalog, max_removed=2)["missing"] == 3, "that is fewer than would be forgotten"
    assert bench.scan(catalog, max_removed=3)["removed"] == 3
    assert bench.names(catalog) == {"c.png"}


def test_each_folder_of_a_catalog_is_looked_at_by_itself(bench: Bench) -> None:
    bench.paint(*(f"disk/{number}.png" for number in range(6)), "stick/a.png", "stick/b.png")
    catalog = bench.new("disk", "stick")
    bench.scan(catalog)
    shutil.rmtree(bench.folder / "stick")
    away = bench.scan(catalog)
    assert (away["out_of_sight"], away["missing"], away["removed"]) == (2, 0, 0), "a folder that is away is not read"
    (bench.folder / "stick").mkdir()
    assert bench.scan(catalog)["missing"] == 2, "it is a quarter of all, and all of that folder"


@pytest.mark.parametrize(("share", "asks"), [(0.0, True), (0.5, True), (0.9, False), (1.0, False)])
def test_the_share_is_a_setting(make_bench: Callable[..., Bench], share: float, asks: bool) -> None:
    bench = make_bench(removed_share=share)
    bench.paint("a.png", "b.png", "c.png", "d.png")
    catalog = bench.new()
    bench.scan(catalog)
    for name in ("a.png", "b.png", "c.png"):
        (bench.folder / name).unlink()
    assert bench.scan(catalog)["removed"] == (0 if asks else 3)


def test_a_folder_and_its_subfolder_are_walked_through_once(bench: Bench) -> None:
    bench.paint("a.png", "2024/b.png")
    catalog = bench.new("2024", ".", "2024")
    assert (bench.scan(catalog)["new"], bench.scan(catalog)["unchanged"]) == (2, 2)


def test_names_of_any_bytes_go_through_everything(bench: Bench) -> None:
    bench.paint("good.png")
    name = os.fsencode(bench.folder) + b"/caf\xe9 \xff\n.png"
    Path(os.fsdecode(name)).write_bytes((bench.folder / "good.png").read_bytes())
    catalog = bench.new()
    assert bench.scan(catalog)["new"] == 2
    assert os.fsdecode(name) in {photo.path for photo in bench.catalogs.photos.all(catalog)}
    assert bench.tag(catalog)["errors"] == 0
    thumbnails = bench.ended(bench.catalogs.start_thumbnails(catalog, [16], by=ADA))
    copies: Any = bench.ended(bench.catalogs.start_duplicates(catalog, 4, by=ADA)).result
    assert (thumbnails.progress.failed, copies["copies"]) == (0, 1)
    assert all(photo.tags and photo.group_id for photo in bench.catalogs.photos.all(catalog))
    assert bench.scan(catalog)["unchanged"] == 2
    Path(os.fsdecode(name)).unlink()
    assert bench.scan(catalog)["removed"] == 1


def test_a_full_scan_of_photos_that_cannot_be_read_ends(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(max_per_job=3)
    for number in range(7):
        (bench.folder / f"{number}.heic").write_bytes(HEIC_HEAD)
    bench.paint("z.png")
    catalog = bench.new()
    job = bench.ended(bench.catalogs.start_scan(catalog, by=ADA))
    assert job.result["status"] == "requeued"
    assert len(bench.app.jobs.list()) == 3, "8 photos, 3 a job"
    assert bench.names(catalog) == {"z.png"}
    kept = bench.catalogs.photos.unreadable(catalog, after="", limit=10)
    assert len(kept) == 7
    assert {photo.error_code for photo in kept} <= {"PHOTO_CORRUPT", "PHOTO_UNSUPPORTED", "PHOTO_TRUNCATED"}
    last = bench.catalog(catalog).last_scan
    assert last is not None
    assert (last["photos"], last["unreadable"]) == (1, 7)
    # A library, a right or more memory may be there by now: each scan tries them again, and forgets the others.
    for number in range(6):
        (bench.folder / f"{number}.heic").unlink()
    assert bench.scan(catalog)["errors"] == 1
    assert len(bench.catalogs.photos.unreadable(catalog, after="", limit=10)) == 1


@pytest.mark.parametrize("action", ["start_thumbnails", "start_tagging"])
def test_a_full_job_over_photos_that_are_gone_ends(make_bench: Callable[..., Bench], action: str) -> None:
    bench = make_bench(max_per_job=2)
    bench.paint(*(f"{number}.png" for number in range(5)))
    catalog = bench.new()
    bench.scan(catalog)
    before = len(bench.app.jobs.list())
    for path in sorted(bench.folder.iterdir())[:4]:
        path.unlink()
    bench.ended(getattr(bench.catalogs, action)(catalog, by=ADA))
    jobs = bench.app.jobs.list(payloads=True)[: len(bench.app.jobs.list()) - before]
    assert [job.progress.total for job in reversed(jobs)] == [2, 2, 1]
    assert sum(job.progress.done for job in jobs) == 1


def test_a_photo_that_became_unreadable_is_no_photo_any_more(bench: Bench) -> None:
    bench.paint("a.png", "b.png", "c.png")
    shutil.copy(bench.folder / "a.png", bench.folder / "copy.png")
    catalog = bench.new()
    bench.scan(catalog)
    (bench.folder / "a.png").write_bytes(b"overwritten")
    result = bench.scan(catalog)
    assert (result["errors"], result["removed"], result["unchanged"]) == (1, 0, 3)
    assert bench.names(catalog) == {"b.png", "c.png", "copy.png"}, "whoever keeps the best copy must not keep that one"


def test_one_that_cannot_be_read_just_now_is_kept(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.paint("a.png", "b.png", "c.png")
    catalog = bench.new()
    bench.scan(catalog)
    bench.tag(catalog)
    os.utime(bench.folder / "a.png", ns=(1, 1))
    opens = Image.open

    def refusing(path: Any, *arguments: Any, **options: Any) -> Any:
        if Path(path).name == "a.png":
            raise OSError(errno.EIO, "Input/output error")
        return opens(path, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Image, "open", refusing)
        assert bench.scan(catalog)["errors"] == 1
    assert bench.names(catalog) == {"a.png", "b.png", "c.png"}
    assert bench.scan(catalog)["errors"] == 0
    assert bench.tagged(catalog) == {"a.png", "b.png", "c.png"}, "its bytes are the same: so are its tags"
    assert bench.catalogs.photos.unreadable(catalog, after="", limit=1) == []


# Jobs that get in each other's way ------------------------------------------------------------------------------------


def test_asking_again_is_answered_with_the_job_that_goes_on(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(max_per_job=2)
    bench.paint(*(f"{number}.png" for number in range(5)))
    catalog = bench.new()
    first = bench.catalogs.start_scan(catalog, by=ADA)
    assert bench.catalogs.start_scan(catalog, by=ADA).id == first.id
    answers: list[UUID] = []
    remember = scanning.Scan._remember

    def asking(self: scanning.Scan, *arguments: Any) -> None:
        answers.append(bench.catalogs.start_scan(catalog, by=ADA, idempotency_key=f"k{len(answers)}").id)
        remember(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scanning.Scan, "_remember", asking)
        bench.ended(first)
    jobs = [job.id for job in reversed(bench.app.jobs.list())]
    assert (answers, len(jobs)) == (jobs, 3)
    assert jobs[0] == first.id
    assert bench.catalogs.start_scan(catalog, by=ADA).id not in jobs, "all of them are over"


def test_a_canceled_scan_keeps_nothing_once_another_has_begun(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.paint("a.png", "b.png")
    catalog = bench.new()
    first = bench.catalogs.start_scan(catalog, by=ADA)
    save = bench.catalogs.photos.save
    began: list[Job] = []

    def canceled_meanwhile(*arguments: Any) -> int:
        if not began:
            bench.app.acting_as(ADA).jobs.cancel(first.id)
            began.append(bench.catalogs.start_scan(catalog, by=ADA))
        return save(*arguments)

    monkeypatch.setattr(bench.catalogs.photos, "save", canceled_meanwhile)
    assert bench.ended(first).state is JobState.CANCELED
    eventually(lambda: began)  # the handler goes on for a moment after its job was canceled
    [second] = began
    assert bench.ended(second).state is JobState.SUCCEEDED
    assert bench.names(catalog) == {"a.png", "b.png"}
    assert bench.app.jobs.get(second.id).result["new"] == 2, "the first one has kept nothing"


def test_a_canceled_scan_hands_nothing_on(make_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    bench = make_bench(max_per_job=2)
    bench.paint("a.png", "b.png", "c.png")
    catalog = bench.new()
    job = bench.catalogs.start_scan(catalog, by=ADA)
    remember = scanning.Scan._remember

    def canceling(self: scanning.Scan, *arguments: Any) -> None:
        remember(self, *arguments)
        bench.app.acting_as(ADA).jobs.cancel(job.id)

    monkeypatch.setattr(scanning.Scan, "_remember", canceling)
    assert bench.ended(job).state is JobState.CANCELED
    assert [each.id for each in bench.app.jobs.list()] == [job.id]


def test_a_rerun_waits_for_nobody_and_gets_in_nobodys_way(bench: Bench) -> None:
    bench.paint("a.png")
    catalog = bench.new()
    old = bench.ended(bench.catalogs.start_scan(catalog, by=ADA))
    bench.paint("b.png")
    rerun = bench.ended(bench.app.jobs.rerun(old.id))
    assert (rerun.state, bench.names(catalog)) == (JobState.SUCCEEDED, {"a.png", "b.png"})
    assert bench.ended(bench.catalogs.start_scan(catalog, by=ADA)).state is JobState.SUCCEEDED
    stranger = bench.app.submit("scan", {**old.params}).job
    paused = bench.catalogs.start_scan(catalog, by=ADA)
    bench.app.jobs.pause(paused.id)
    refused = bench.ended(stranger)
    assert (refused.state, refused.error_code) == (JobState.FAILED, "CATALOG_JOB_RUNS")


def test_a_yes_is_not_dropped_while_a_scan_runs(bench: Bench) -> None:
    catalog = bench.new()
    bench.paint("a.png")
    running = bench.catalogs.start_scan(catalog, by=ADA)
    with pytest.raises(TransitionRefused) as refused:
        bench.catalogs.start_scan(catalog, 5, by=ADA, idempotency_key="k")
    assert refused.value.code == "CATALOG_JOB_RUNS"
    bench.ended(running)
    heard = bench.catalogs.start_scan(catalog, 5, by=ADA, idempotency_key="k")
    assert heard.params["max_removed"] == 5, "the key was not used up"
    assert bench.catalogs.start_scan(catalog, by=ADA).id == heard.id
    assert bench.catalogs.start_scan(catalog, 5, by=ADA).id == heard.id


def test_other_sizes_and_distances_are_jobs_of_their_own(bench: Bench) -> None:
    bench.paint("a.png", "b.png")
    catalog = bench.new()
    bench.scan(catalog)
    small, large = (bench.catalogs.start_thumbnails(catalog, sizes, by=ADA) for sizes in ([16], [64, 32]))
    assert small.id != large.id
    assert bench.catalogs.start_thumbnails(catalog, [32, 64, 32], by=ADA).id == large.id
    near, far = (bench.catalogs.start_duplicates(catalog, distance, by=ADA) for distance in (2, 6))
    assert near.id != far.id
    assert bench.catalogs.start_duplicates(catalog, 6, by=ADA).id == far.id
    for job in (small, large, near, far):
        assert bench.ended(job).state is JobState.SUCCEEDED
    sizes = {path.parent.parent.name for path in bench.catalogs.thumbnails_directory.rglob("*.jpg")}
    assert sizes == {"16", "32", "64"}


# Catalogs that change while jobs run ----------------------------------------------------------------------------------


def test_a_catalog_gets_another_name_and_other_folders(bench: Bench) -> None:
    bench.paint("old/a.png", "new/b.png")
    catalog = bench.new("old")
    bench.scan(catalog)
    changed = bench.catalogs.change(catalog, name="Sea", source_directories=[str(bench.folder / "new")], by=ADA)
    assert (changed.name, changed.source_directories) == ("Sea", (str(bench.folder / "new"),))
    assert changed.last_scan is None
    result = bench.scan(catalog)
    assert (result["new"], result["removed"], result["missing"]) == (1, 1, 0), "nobody is asked about a folder given up"
    assert bench.names(catalog) == {"new/b.png"}
    assert bench.catalogs.change(catalog, name="Lake", source_directories=None, by=ADA).source_directories == (
        str(bench.folder / "new"),
    )


def test_a_scan_that_runs_while_folders_change_keeps_what_is_in_the_new_ones(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.paint("old/a.png", "old/sub/b.png")
    catalog = bench.new("old")
    decide = scanning.Scan._end

    def changing(self: scanning.Scan, job: Any) -> Any:
        new = [str(bench.folder / "old" / "sub")]
        bench.catalogs.change(catalog, name=None, source_directories=new, by=ADA)
        return decide(self, job)

    monkeypatch.setattr(scanning.Scan, "_end", changing)
    assert bench.scan(catalog)["new"] == 1
    assert bench.names(catalog) == {"old/sub/b.png"}


def test_a_catalog_is_deleted_while_jobs_run(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.paint("a.png", "b.png")
    catalog, other = bench.new(), bench.new()
    bench.scan(other)
    running = bench.catalogs.start_scan(catalog, by=ADA)
    waiting = bench.app.jobs.pause(bench.catalogs.start_tagging(catalog, by=ADA).id)
    save = bench.catalogs.photos.save

    def deleted_meanwhile(*arguments: Any) -> int:
        bench.catalogs.remove(catalog, by=ADA)
        return save(*arguments)

    monkeypatch.setattr(bench.catalogs.photos, "save", deleted_meanwhile)
    bench.ended(running)
    for job in (running, waiting):
        after = bench.app.jobs.get(job.id)
        assert (after.state, after.killed_reason) == (JobState.CANCELED, "the catalog was deleted")
    assert bench.names(catalog) == set()
    assert bench.names(other) == {"a.png", "b.png"}
    for ask in (bench.catalogs.get, bench.catalogs.start_scan, bench.catalogs.remove):
        with pytest.raises(JobNotFound) as missing:
            ask(catalog, by=ADA)
        assert missing.value.code == "CATALOG_NOT_FOUND"


# Photos that change while jobs run ------------------------------------------------------------------------------------


def test_a_photo_that_was_edited_gets_neither_thumbnail_nor_tags_until_it_is_scanned(bench: Bench) -> None:
    bench.paint("alice/x.png")
    (bench.folder / "bob").mkdir()
    shutil.copy(bench.folder / "alice/x.png", bench.folder / "bob/x.png")
    alice, bob = bench.new("alice"), bench.new("bob")
    bench.scan(alice)
    bench.scan(bob)
    bench.paint("alice/x.png", shade=9)
    for start in (bench.catalogs.start_thumbnails, bench.catalogs.start_tagging):
        edited: Any = bench.ended(start(alice, by=ADA)).result
        assert [error["error_code"] for error in edited["error_details"]] == ["PHOTO_CHANGED"]
    assert list(bench.catalogs.thumbnails_directory.rglob("*.jpg")) == []
    assert bench.ended(bench.catalogs.start_thumbnails(bob, [64], by=ADA)).progress.done == 1
    [photo] = bench.catalogs.photos.all(bob)
    small = thumbnail_path(bench.catalogs.thumbnails_directory, photo.sha256, 64)
    with Image.open(small) as thumbnail, Image.open(bench.folder / "bob/x.png") as picture:
        expected = picture.convert("L").resize(thumbnail.size).tobytes()
        pairs = zip(thumbnail.convert("L").tobytes(), expected, strict=True)
        assert sum(abs(first - second) for first, second in pairs) / len(expected) < 12


def test_tags_of_bytes_that_were_scanned_anew_meanwhile_are_not_kept(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.paint("a.png")
    catalog = bench.new()
    bench.scan(catalog)
    tag = bench.catalogs.photos.tag

    def scanned_meanwhile(catalog_id: UUID, tags: Any, guard: Any) -> None:
        found = list(tags)
        bench.paint("a.png", shade=9)
        facts = {**next(bench.catalogs.photos.all(catalog)).facts, "sha256": "0" * 64}
        bench.catalogs.photos.save(catalog, [(str(bench.folder / "a.png"), facts)], lambda _: None)
        tag(catalog_id, found, guard)

    monkeypatch.setattr(bench.catalogs.photos, "tag", scanned_meanwhile)
    bench.tag(catalog)
    assert bench.tagged(catalog) == set()


def test_a_part_of_the_comparing_that_fails_leaves_the_rest(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.paint("a.png", "b.png")
    shutil.copy(bench.folder / "a.png", bench.folder / "copy.png")
    catalog = bench.new()
    bench.scan(catalog)
    monkeypatch.setattr(kinds.Duplicates, "_keep_hashes", lambda *_: ("0" * 64, 3))
    job = bench.catalogs.start_duplicates(catalog, 4, by=ADA)
    ended = bench.ended(job)
    assert ended.state is JobState.SUCCEEDED
    assert (ended.progress.failed, ended.result["status"]) == (5, "completed_with_errors")
    assert ended.result["error_details"][0]["part"] == "bits 1, part 1 of 1"
    assert (ended.result["copies"], ended.result["exact_groups"]) == (1, 1)
    assert len(bench.app.items.list(job.id, statuses=[ItemStatus.ERROR])) == 5
