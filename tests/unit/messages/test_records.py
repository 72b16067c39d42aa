"""Records of strangers: what they are known by, and what of them is not believed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from penstock.errors import MessageRefused, PayloadTooLarge
from penstock.messages.kafka.records import Record, message_headers, read_message, write_value

WRITTEN = datetime(2026, 1, 1, tzinfo=UTC)
PUBLISHED = datetime(2025, 12, 31, 23, tzinfo=UTC)


def record(value: bytes | None = b"1", *, key: bytes | None = None, **headers: bytes) -> Record:
    return Record("t", 2, 7, key, value, {name.replace("_", "-"): text for name, text in headers.items()}, WRITTEN)


def test_a_message_of_ours_is_read_as_it_was_written() -> None:
    headers = {name: text.encode() for name, text in message_headers("an-id", PUBLISHED).items()}
    value = write_value({"a": [1, "ü"]}, max_bytes=100)
    message = read_message(Record("t", 0, 0, b"key", value, headers, WRITTEN), max_bytes=100)
    assert (message.id, message.topic, message.key) == ("an-id", "t", "key")
    assert (message.payload, message.created_at) == ({"a": [1, "ü"]}, PUBLISHED)


@pytest.mark.parametrize("header", [b"", b"\xff", b"x" * 256, b"a\x00b"])
def test_an_id_that_cannot_be_kept_is_none_and_the_place_stands_for_it(header: bytes) -> None:
    assert record(message_id=header).id == record().id == "2@7@1767225600000"


def test_a_topic_made_again_has_other_ids() -> None:
    assert Record("t", 2, 7, None, b"1", {}, PUBLISHED).id != record().id


@pytest.mark.parametrize("key", [b"", b"\xff", b"x" * 256, b"a\x00b"])
def test_a_key_that_cannot_be_kept_is_none(key: bytes) -> None:
    assert read_message(record(key=key), max_bytes=10).key is None


@pytest.mark.parametrize("moment", [b"", b"yesterday", b"2026-01-01T00:00:00", b"\xff"])
def test_a_moment_that_is_none_is_that_of_the_record(moment: bytes) -> None:
    assert read_message(record(created_at=moment), max_bytes=10).created_at == WRITTEN


@pytest.mark.parametrize(
    ("value", "words"),
    [(b"", "no JSON"), (b"{", "no JSON"), (b"\xff", "no JSON"), (b"[" * 2000, "no JSON"), (b" " * 2001, "2,001 bytes")],
)
def test_what_is_no_message_is_refused(value: bytes, words: str) -> None:
    with pytest.raises(MessageRefused, match=words):
        read_message(record(value), max_bytes=2000)


def test_a_record_without_a_value_has_no_payload() -> None:
    assert read_message(record(None), max_bytes=10).payload is None


def test_what_is_too_large_is_not_sent() -> None:
    with pytest.raises(PayloadTooLarge, match="12 bytes as JSON; at most 10 are sent"):
        write_value("x" * 10, max_bytes=10)
