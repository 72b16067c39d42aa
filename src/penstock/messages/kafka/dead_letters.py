"""Records that nobody can take: written to a topic of their own with the reason, listed, replayed or dropped.

A dead letter is the record as it came, with headers that say what happened to it. Which of them were seen to is kept by
the broker, as the offsets of a group that has no members: all before the offset were replayed or dropped. A replayed
message has an id made of the dead letter's place, so a replay that dies before its offset is committed does no harm.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import TypeVar
from uuid import UUID, uuid5

from confluent_kafka import OFFSET_BEGINNING, OFFSET_INVALID, Consumer, KafkaException, TopicPartition

from penstock.errors import BrokerUnavailable, InvalidInput, PenstockError
from penstock.lifecycle.transport import dead_letter_topic, is_dead_letter_topic
from penstock.messages.kafka.client_options import Options
from penstock.messages.kafka.failures import configuration_error, error_of
from penstock.messages.kafka.producer import KafkaProducer
from penstock.messages.kafka.records import MESSAGE_ID_HEADER, Record, as_record, short_text

_REASON, _TRIES, _TOPIC, _PARTITION, _OFFSET, _LEFT_OUT = (
    "reason", "tries", "topic", "partition", "offset", "left-out-bytes",
)  # fmt: skip
_REPLAYS = UUID("0b3b7f3b-5b0d-4f35-a6a6-7d1d8c3d3c55")
"""What ids of replayed messages are made in: it must never change."""
_ANSWER_SECONDS = 10.0
_AT_ONCE = 100
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One of them, and what is known about it."""

    record: Record

    @property
    def reason(self) -> str:
        """Why it was put aside."""
        return self.record.header(_REASON) or "not said"

    @property
    def tries(self) -> int:
        """How often it was handed to a subscriber, and failed."""
        return _number(self.record.header(_TRIES)) or 0

    @property
    def topic(self) -> str:
        """The topic it belongs to."""
        topic = self.record.header(_TOPIC)
        return topic or self.record.topic.removesuffix(dead_letter_topic(""))

    @property
    def first_place(self) -> str:
        """Where it was read the first time."""
        return f"{self.topic}/{self.record.header(_PARTITION) or '?'}@{self.record.header(_OFFSET) or '?'}"

    @property
    def left_out_bytes(self) -> int | None:
        """The size of its value, where that was too large to be kept; None where it is here."""
        return _number(self.record.header(_LEFT_OUT))

    @property
    def put_aside_at(self) -> datetime:
        """When that was."""
        return self.record.written_at

    def as_object(self) -> dict[str, object]:
        """What a program is told of it; a value that is no text is shown with marks in place of its bytes."""
        value, key = self.record.value, self.record.key
        return {
            "topic": self.topic,
            "first_place": self.first_place,
            "key": None if key is None else key.decode(errors="replace"),
            "value": None if value is None else value.decode(errors="replace"),
            "reason": self.reason,
            "tries": self.tries,
            "put_aside_at": self.put_aside_at,
        }


def write_dead_letter(producer: KafkaProducer, record: Record, reason: str, *, tries: int, max_bytes: int) -> None:
    """Put a record aside, and return when it is safe there."""
    value: bytes | None = record.value
    headers: dict[str, str | bytes | None] = dict(record.headers) | {
        MESSAGE_ID_HEADER: record.id,
        _REASON: short_text(reason),
        _TRIES: str(tries),
        _TOPIC: record.topic,
        _PARTITION: str(record.partition),
        _OFFSET: str(record.offset),
    }
    if value is not None and len(value) > max_bytes:
        headers[_LEFT_OUT] = str(len(value))
        value = None
    producer.write(dead_letter_topic(record.topic), value, key=record.key, headers=headers).wait()


class DeadLetters:
    """The dead letters of one broker."""

    def __init__(self, options: Options, producer: KafkaProducer) -> None:
        self._options = {**options, "enable.auto.commit": False, "enable.partition.eof": False}
        self._producer = producer

    def topics(self) -> list[str]:
        """The topics that have dead letters, by the names of those they belong to."""
        with _reading(self._options) as reader:
            names = reader.topics()
        return sorted(name.removesuffix(dead_letter_topic("")) for name in names if is_dead_letter_topic(name))

    def waiting(self, topic: str, *, limit: int) -> list[DeadLetter]:
        """The oldest of them that wait."""
        with _reading(self._options) as reader:
            return [DeadLetter(record) for record in islice(reader.read(dead_letter_topic(topic)), limit)]

    def replay(self, topic: str, *, limit: int | None = None) -> int:
        """Write the oldest of them to their topic again, up to those that are there now; the answer is how many.

        One whose value was left out stops it: drop it, or write it again from its first place.
        """
        return self._see_to(topic, limit, self._write_again)

    def drop(self, topic: str, *, limit: int | None = None) -> int:
        """Let the oldest of them go; the answer is how many."""
        return self._see_to(topic, limit, lambda letters: None)

    def _see_to(self, topic: str, limit: int | None, act: Callable[[list[DeadLetter]], None]) -> int:
        count = 0
        with _reading(self._options) as reader:
            records = islice(reader.read(dead_letter_topic(topic)), limit)
            while batch := list(islice(records, _AT_ONCE)):
                act([DeadLetter(record) for record in batch])
                reader.commit(batch)
                count += len(batch)
        return count

    def _write_again(self, letters: list[DeadLetter]) -> None:
        for letter in letters:
            if letter.left_out_bytes is not None:
                raise InvalidInput(
                    f"the dead letter of {letter.first_place} cannot be replayed: its {letter.left_out_bytes:,} bytes "
                    "were too many to be kept; drop those up to it, or write it again from its first place",
                    code="DEAD_LETTER_LEFT_OUT",
                )
        deliveries = [
            self._producer.write(letter.topic, letter.record.value, key=letter.record.key, headers=_headers(letter))
            for letter in letters
        ]
        for delivery in deliveries:
            delivery.wait()


class _Reader:
    """Reads a topic from the offsets of a group to its end as it is now, without being a member."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    def topics(self) -> list[str]:
        """The topics that there are."""
        return list(self._ask(lambda: self._consumer.list_topics(timeout=_ANSWER_SECONDS)).topics)

    def read(self, topic: str) -> Iterator[Record]:
        """All that wait there, partition after partition."""
        metadata = self._ask(lambda: self._consumer.list_topics(topic, timeout=_ANSWER_SECONDS)).topics.get(topic)
        if metadata is None or metadata.error is not None:
            raise PenstockError(f"the broker has no topic {topic!r}", code="TOPIC_UNKNOWN")
        for partition in sorted(metadata.partitions):
            yield from self._read_partition(TopicPartition(topic, partition))

    def commit(self, records: list[Record]) -> None:
        """All of these were seen to."""
        ends = {record.place: record.offset + 1 for record in records}
        offsets = [TopicPartition(*place, offset) for place, offset in ends.items()]
        self._ask(lambda: self._consumer.commit(offsets=offsets, asynchronous=False))

    def _read_partition(self, partition: TopicPartition) -> Iterator[Record]:
        low, end = self._ask(lambda: self._consumer.get_watermark_offsets(partition, timeout=_ANSWER_SECONDS))
        [committed] = self._ask(lambda: self._consumer.committed([partition], timeout=_ANSWER_SECONDS))
        position = low if committed.offset in (OFFSET_INVALID, OFFSET_BEGINNING) else max(low, committed.offset)
        if position >= end:
            return
        self._consumer.assign([TopicPartition(partition.topic, partition.partition, position)])
        deadline = time.monotonic() + _ANSWER_SECONDS
        while position < end:
            client_message = self._ask(lambda: self._consumer.poll(0.2))
            if client_message is None:
                if time.monotonic() > deadline:
                    raise BrokerUnavailable(f"the broker has sent nothing of {partition.topic!r} for some seconds")
                continue
            if (error := client_message.error()) is not None:
                raise BrokerUnavailable(f"{partition.topic!r} cannot be read: {error.str()}")
            record = as_record(client_message)
            position = record.offset + 1
            deadline = time.monotonic() + _ANSWER_SECONDS
            if record.offset < end:
                yield record

    def _ask(self, question: Callable[[], Answer]) -> Answer:
        try:
            return question()
        except KafkaException as exception:
            raise BrokerUnavailable(f"the broker does not answer: {error_of(exception).str()}") from None


@contextmanager
def _reading(options: Options) -> Iterator[_Reader]:
    try:
        consumer = Consumer(options)
    except KafkaException as exception:
        raise configuration_error(exception) from None
    try:
        yield _Reader(consumer)
    finally:
        consumer.close()


def _headers(letter: DeadLetter) -> dict[str, str | bytes | None]:
    """Those that the record came with, and an id of its own."""
    ours = {_REASON, _TRIES, _TOPIC, _PARTITION, _OFFSET, _LEFT_OUT, MESSAGE_ID_HEADER}
    record = letter.record
    headers: dict[str, str | bytes | None] = {name: value for name, value in record.headers.items() if name not in ours}
    place = f"{record.topic}/{record.partition}@{record.offset}@{record.written_at.isoformat()}"
    return headers | {MESSAGE_ID_HEADER: str(uuid5(_REPLAYS, place))}


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 19 else None
