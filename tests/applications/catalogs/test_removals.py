"""Which photos a scan forgets: those that are gone for sure, and not too many of them without a word."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock_apps.catalogs.folders import Walk
from penstock_apps.catalogs.removals import Removal, decide_removal


def walked(*, unreadable: tuple[str, ...] = (), empty: tuple[str, ...] = ()) -> Walk:
    walk = Walk([])
    walk.unreadable.update(unreadable)
    walk.empty.update(empty)
    return walk


def decided(
    known: str,
    present: str,
    *,
    folders: str = "/p",
    share: float = 0.5,
    yes: int | None = None,
    walk: Walk | None = None,
) -> Removal:
    directories = folders.split()
    return decide_removal(
        known.split(), set(present.split()), walk or walked(), directories, share=share, max_removed=yes
    )


def test_a_part_goes_and_half_is_no_large_part() -> None:
    assert decided("/p/a /p/b", "/p/a") == Removal(("/p/b",))
    assert decided("/p/a /p/b /p/c", "/p/a") == Removal((), missing=2)
    assert decided("/p/a", "/p/a") == Removal(())


@pytest.mark.parametrize(("yes", "forgets"), [(None, 0), (0, 0), (1, 0), (2, 2), (9, 2)])
def test_a_yes_holds_for_so_many(yes: int | None, forgets: int) -> None:
    removal = decided("/p/a /p/b", "", yes=yes)
    assert (len(removal.forget), removal.missing) == (forgets, 2 - forgets)


def test_each_folder_counts_and_a_folder_in_another_does_not() -> None:
    known = "/p/1 /p/2 /p/3 /p/4 /q/1"
    assert decided(known, "/p/1 /p/2 /p/3 /p/4", folders="/p /q") == Removal((), missing=1)
    assert decided("/p/a/1 /p/2 /p/3", "/p/2 /p/3", folders="/p /p/a") == Removal(("/p/a/1",))


def test_what_is_in_no_folder_of_the_catalog_goes_without_a_word() -> None:
    assert decided("/old/1 /old/2 /pq/3 /p/4", "/p/4") == Removal(("/old/1", "/old/2", "/pq/3"))
    assert decided("/old/1 /p/4", "") == Removal(("/old/1",), missing=1)


def test_nothing_goes_below_what_could_not_be_read() -> None:
    walk = walked(unreadable=("/p/usb", "/p/x.jpg"))
    removal = decided("/p/usb/deep/1 /p/usb/2 /p/x.jpg /p/usbs/3 /p/4 /p/5", "/p/4 /p/5", walk=walk)
    assert removal == Removal(("/p/usbs/3",), out_of_sight=3)


def test_a_folder_that_is_empty_now_is_asked_about() -> None:
    known, present = "/p/usb/1 /p/2 /p/3 /p/4", "/p/2 /p/3 /p/4"
    assert decided(known, present) == Removal(("/p/usb/1",)), "the folder is gone, too"
    walk = walked(empty=("/p/usb",))
    assert decided(known, present, walk=walk) == Removal((), missing=1)
    assert decided(known, present, walk=walk, share=1.0) == Removal(("/p/usb/1",)), "told never to ask"


def test_a_walk_tells_what_it_could_not_see(tmp_path: Path) -> None:
    deep = tmp_path
    for _ in range(66):
        deep /= "d"
    deep.mkdir(parents=True)
    (tmp_path / "a.jpg").write_bytes(b"a")
    (tmp_path / "hollow").mkdir()
    (tmp_path / "link.jpg").symlink_to("a.jpg")
    walk = Walk([str(tmp_path), str(tmp_path / "d"), str(tmp_path / "away")])
    assert [Path(file.path).name for file in walk.files()] == ["a.jpg"]
    assert walk.misses(str(deep / "too deep.jpg")), "what is not looked at is not gone"
    assert walk.empty == {str(tmp_path / "hollow")}
    assert not walk.misses(str(tmp_path / "b.jpg"))
    alone = Walk([str(tmp_path / "away")])
    assert list(alone.files()) == []
    assert alone.misses(str(tmp_path / "away" / "x.jpg"))
