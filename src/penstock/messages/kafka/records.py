"""A message on the wire: the key and the id beside the payload, and what a stranger's record is taken for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from penstock.errors import MessageRefused, PayloadTooLarge
from penstock.lifecycle.bounds import MESSAGE_ID, MESSAGE_KEY
from penstock.lifecycle.payloads import JSON, decode, encode, storable_text
from penstock.lifecycle.transport import Message

if TYPE_CHECKING:
    from confluent_kafka import Message as ClientMessage

MESSAGE_ID_HEADER = "message-id"
CREATED_AT_HEADER = "created-at"
_LONGEST_HEADER = 2_000
_NO_TIME = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class Record:
    """What is kept of a record, as the client gave it to us."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Mapping[str, bytes] = field(default_factory=dict)
    written_at: datetime = _NO_TIME

    @property
    def place(self) -> tuple[str, int]:
        """The topic and partition it is in."""
        return self.topic, self.partition

    @property
    def id(self) -> str:
        """What it is known by: its header, or else where and when it was written.

        The time is a part of it because a topic that was deleted and made again counts from nought.
        """
        header = self.header(MESSAGE_ID_HEADER)
        if header is not None and 0 < len(header) <= MESSAGE_ID.longest and storable_text(header) == header:
            return header
        return f"{self.partition}@{self.offset}@{int(self.written_at.timestamp() * 1000)}"

    def header(self, name: str) -> str | None:
        """The text of a header; None where there is none, or no text in it."""
        value = self.headers.get(name)
        try:
            return None if value is None else value.decode()
        except UnicodeDecodeError:
            return None


def as_record(message: ClientMessage) -> Record:
    """A record of the client's, which has no error; of two headers of one name the last counts."""
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    if topic is None or partition is None or offset is None:
        raise AssertionError("what was fetched has a place")
    _, milliseconds = message.timestamp()
    client_headers = message.headers() or []
    pairs = client_headers.items() if isinstance(client_headers, dict) else client_headers
    headers = {name: value for name, value in pairs if isinstance(value, bytes)}
    return Record(
        topic, partition, offset, _as_bytes(message.key()), _as_bytes(message.value()), headers, _moment(milliseconds)
    )


def _as_bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _moment(milliseconds: int) -> datetime:
    """A record's time is whatever its writer says."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return _NO_TIME


def read_message(record: Record, *, max_bytes: int) -> Message:
    """The message of a record; what cannot be one is refused, by its size before anything is parsed."""
    size = len(record.value or b"")
    if size > max_bytes:
        raise MessageRefused(
            f"it has {size:,} bytes; at most {max_bytes:,} are read (PENSTOCK_KAFKA_MAX_MESSAGE_BYTES)"
        )
    try:
        payload = decode(record.value)
    except ValueError as error:
        raise MessageRefused(f"it is no JSON: {error}") from None
    return Message(record.id, record.topic, _read_key(record.key), payload, _created_at(record))


def _read_key(key: bytes | None) -> str | None:
    """A key that is no text, or too long for one of ours, is none: the order of its partition holds nonetheless."""
    try:
        text = None if key is None else key.decode()
    except UnicodeDecodeError:
        return None
    return text if text and len(text) <= MESSAGE_KEY.longest and storable_text(text) == text else None


def _created_at(record: Record) -> datetime:
    try:
        moment = datetime.fromisoformat(record.header(CREATED_AT_HEADER) or "")
    except ValueError:
        return record.written_at
    return moment if moment.tzinfo is not None else record.written_at


def write_value(payload: JSON, *, max_bytes: int) -> bytes:
    """A payload as it is written: JSON, within the bound."""
    try:
        return encode(payload, max_bytes=max_bytes, at="payload").encode()
    except PayloadTooLarge as error:
        size = error.message.partition(";")[0]
        raise PayloadTooLarge(f"{size}; at most {max_bytes:,} are sent (PENSTOCK_KAFKA_MAX_MESSAGE_BYTES)") from None


def message_headers(message_id: str, created_at: datetime) -> dict[str, str]:
    """What is said about a message beside its payload."""
    return {MESSAGE_ID_HEADER: message_id, CREATED_AT_HEADER: created_at.astimezone(UTC).isoformat()}


def short_text(text: str) -> str:
    """A text that fits into a header."""
    return storable_text(text)[:_LONGEST_HEADER]
