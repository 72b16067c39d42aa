"""Uploaded files: their bytes by what they hash to, their records by whose they are."""

from __future__ import annotations

from hashlib import sha256
from io import BytesIO
from pathlib import Path

import pytest

from penstock import Penstock, owner
from penstock.errors import FileNotFound, PayloadTooLarge
from penstock.store.engine import Store
from tests.on_store import OnStore


@pytest.fixture
def app(store: Store, tmp_path: Path) -> Penstock:
    return OnStore(store, tmp_path / "files")


def test_a_file_comes_back_as_it_was_sent(app: Penstock) -> None:
    data = b"a;b\n1;2\n" * 100_000
    kept = app.files.keep(BytesIO(data), name="C:\\prices\\May.csv", owner="ann", media_type="text/csv")
    assert (kept.name, kept.media_type, kept.user_id) == ("May.csv", "text/csv", "ann")
    assert (kept.size_bytes, kept.sha256) == (len(data), sha256(data).hexdigest())
    assert app.files.get(kept.id) == kept
    assert app.files.path(kept.id).read_bytes() == data
    assert app.files.path(kept) == app.files.path(kept.id)


def test_the_same_bytes_are_kept_once_and_recorded_for_each(app: Penstock) -> None:
    first, second = (app.files.keep(BytesIO(b"bytes"), name="a.txt", owner=name) for name in ("ann", "bob"))
    assert first.id != second.id
    assert app.files.path(first.id) == app.files.path(second.id)
    with pytest.raises(FileNotFound):
        app.acting_as(owner("bob")).files.get(first.id)


def test_one_that_is_too_large_leaves_nothing(app: Penstock, tmp_path: Path) -> None:
    with pytest.raises(PayloadTooLarge) as refused:
        app.files.keep(BytesIO(b"x" * 11), name="a.txt", max_bytes=10)
    assert refused.value.code == "FILE_TOO_LARGE"
    assert [path for path in (tmp_path / "files").rglob("*") if path.is_file()] == []
