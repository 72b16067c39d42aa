"""Objects that wait in a bucket, on a real S3 server of our own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import obstore
import pytest

from penstock.errors import ConfigurationError, InvalidInput, NotFound, Permanent, Retryable
from penstock.ingest.sources import s3
from penstock.ingest.sources.contract import Waiting
from penstock.ingest.sources.s3 import Access, Bucket
from tests.ingest.conftest import http_server_that_answers


@pytest.fixture
def filled(s3_access: Access, s3_bucket: str) -> obstore.store.S3Store:
    """The store as somebody else sees it, who puts files there."""
    return s3._store(s3_bucket, s3_access, 30.0)


def names(source: Bucket) -> list[str]:
    return [one.name for one in source.waiting()]


def only(source: Bucket) -> Waiting:
    (one,) = source.waiting()
    return one


def test_objects_below_the_prefix_are_listed_and_read(
    filled: obstore.store.S3Store, s3_bucket: str, s3_access: Access
) -> None:
    keys = ["in/a b.csv", "in/deep/50%20 #?ü.csv", "in/x.part", "in/.hidden", "inside.csv", "in/empty"]
    for key in keys:
        obstore.put(filled, key, b"" if key == "in/empty" else key.encode())
    source = Bucket(s3_bucket, "in", s3_access)
    found = {one.address: one for one in source.waiting()}
    assert set(found) == {f"s3://{s3_bucket}/in/a b.csv", f"s3://{s3_bucket}/in/deep/50%2520 #?ü.csv"}
    for one in found.values():
        with source.open(one) as content:
            assert content.read().decode().endswith(one.name)


def test_one_object_is_a_source_too(filled: obstore.store.S3Store, s3_bucket: str, s3_access: Access) -> None:
    obstore.put(filled, "in/x.csv", b"12345")
    one = only(Bucket(s3_bucket, "in/x.csv", s3_access))
    assert (one.name, one.size) == ("x.csv", 5)
    assert one.version == obstore.head(filled, "in/x.csv")["e_tag"]


def test_an_empty_bucket_has_nothing_waiting(s3_bucket: str, s3_access: Access) -> None:
    assert names(Bucket(s3_bucket, "", s3_access)) == []


def test_oldest_first(s3_bucket: str, s3_access: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    from datetime import UTC, datetime

    def listed(*_: object, **__: object) -> Iterator[list[dict[str, Any]]]:
        for key, year in [("b", 2003), ("c", 2001), ("a", 2002)]:
            moment = datetime(year, 1, 1, tzinfo=UTC)
            yield [{"path": key, "size": 1, "last_modified": moment, "e_tag": None, "version": None}]

    monkeypatch.setattr(obstore, "list", listed)
    assert names(Bucket(s3_bucket, "", s3_access)) == ["c", "a", "b"]


def test_a_large_object_is_read_in_ranges(
    filled: obstore.store.S3Store, s3_bucket: str, s3_access: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    obstore.put(filled, "x.bin", bytes(20 << 20))
    source = Bucket(s3_bucket, "", s3_access)
    ranges: list[tuple[int, int]] = []
    get = obstore.get

    def recorded(store: Any, path: str, *, options: Any) -> Any:
        ranges.append(options["range"])
        return get(store, path, options=options)

    monkeypatch.setattr(obstore, "get", recorded)
    with source.open(only(source)) as content:
        sizes = [len(piece) for piece in iter(lambda: content.read(1 << 16), b"")]
    assert sum(sizes) == 20 << 20
    assert max(sizes) <= 1 << 16
    assert len(ranges) == 5
    assert max(end - start for start, end in ranges) == s3.RANGE_BYTES


def test_an_object_that_went_away(filled: obstore.store.S3Store, s3_bucket: str, s3_access: Access) -> None:
    obstore.put(filled, "x.csv", b"12345")
    source = Bucket(s3_bucket, "", s3_access)
    one = only(source)
    obstore.delete(filled, "x.csv")
    with pytest.raises(NotFound) as caught, source.open(one):
        pass
    assert caught.value.code == "SOURCE_FILE_GONE"


@pytest.mark.parametrize("before", [True, False])
def test_an_object_that_was_replaced(
    filled: obstore.store.S3Store, s3_bucket: str, s3_access: Access, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    monkeypatch.setattr(s3, "RANGE_BYTES", 4)
    obstore.put(filled, "x.csv", b"12345678")
    source = Bucket(s3_bucket, "", s3_access)
    one = only(source)
    if before:
        obstore.put(filled, "x.csv", b"abcdefgh")
    with pytest.raises(Retryable) as caught, source.open(one) as content:  # noqa: PT012
        assert content.read(4) == b"1234"
        obstore.put(filled, "x.csv", b"abcdefgh")
        content.read(4)
    assert caught.value.code == "SOURCE_FILE_CHANGED"


def test_an_object_replaced_after_its_last_byte(
    filled: obstore.store.S3Store, s3_bucket: str, s3_access: Access
) -> None:
    obstore.put(filled, "x.csv", b"12345678")
    source = Bucket(s3_bucket, "", s3_access)
    with pytest.raises(Retryable) as caught, source.open(only(source)) as content:  # noqa: PT012
        assert content.read(8) == b"12345678"
        obstore.put(filled, "x.csv", b"abcdefgh")
        content.read(1)
    assert caught.value.code == "SOURCE_FILE_CHANGED"


def test_more_objects_than_the_bound(filled: obstore.store.S3Store, s3_bucket: str, s3_access: Access) -> None:
    for number in range(3):
        obstore.put(filled, f"{number}.csv", b"1")
    assert len(names(Bucket(s3_bucket, "", s3_access, max_entries=3))) == 3
    with pytest.raises(InvalidInput) as caught:
        names(Bucket(s3_bucket, "", s3_access, max_entries=2))
    assert caught.value.code == "SOURCE_TOO_LARGE"


@pytest.mark.parametrize("prefix", ["", "in"])
def test_a_bucket_that_is_not_there(s3_access: Access, prefix: str) -> None:
    with pytest.raises(InvalidInput, match="s3://no-such-bucket") as caught:
        names(Bucket("no-such-bucket", prefix, s3_access))
    assert caught.value.code == "SOURCE_MISSING"


def test_a_key_that_cannot_be_read_is_named_as_the_reason(s3_endpoint: str, s3_bucket: str, s3_access: Access) -> None:
    import urllib.request

    request = urllib.request.Request(f"{s3_endpoint}/{s3_bucket}/a//b.csv", data=b"1", method="PUT")
    urllib.request.urlopen(request, timeout=20).close()
    with pytest.raises(InvalidInput, match="empty part") as caught:
        names(Bucket(s3_bucket, "", s3_access))
    assert caught.value.code == "SOURCE_KEY_WRONG"


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("prefix", ["", "in"])
def test_a_store_that_refuses_the_keys(status: int, prefix: str) -> None:
    with http_server_that_answers(status) as endpoint, pytest.raises(Permanent) as caught:
        names(Bucket("inbox", prefix, Access("key", "hush", endpoint=endpoint)))
    assert caught.value.code == "SOURCE_REFUSED"
    assert "hush" not in str(caught.value)


def test_a_store_that_is_down(s3_access: Access) -> None:
    with http_server_that_answers(503) as endpoint, pytest.raises(Retryable) as caught:
        names(Bucket("inbox", "", replace(s3_access, endpoint=endpoint)))
    assert caught.value.code == "SOURCE_UNAVAILABLE"
    # And now nobody listens there.
    with pytest.raises(Retryable) as caught:
        names(Bucket("inbox", "", replace(s3_access, endpoint=endpoint)))
    assert caught.value.code == "SOURCE_UNAVAILABLE"


def test_without_the_library_the_extra_is_named(s3_access: Access, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(ConfigurationError, match=r"penstock\[s3\]"):
        Bucket("inbox", "", s3_access)


def test_an_object_of_another_source_is_refused(s3_bucket: str, s3_access: Access) -> None:
    one = Waiting("x", "s3://other/in/x", 1, '"1"')
    with pytest.raises(InvalidInput) as caught, Bucket(s3_bucket, "in/", s3_access).open(one):
        pass
    assert caught.value.code == "SOURCE_ADDRESS_WRONG"
