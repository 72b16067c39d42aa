"""A consumer without a broker: what it holds back, pauses, drops and commits, by a client that is told."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from penstock.errors import MessageRefused, StoreUnavailable
from penstock.lifecycle.transport import Message
from penstock.messages.kafka import consumer as consumer_module
from penstock.messages.kafka.consumer import MAX_WAITING, KafkaConsumer

TOPIC = "orders"


class Fetched:
    """A record as the client has it."""

    def __init__(self, offset: int, partition: int = 0, value: bytes | None = None) -> None:
        self._place = (partition, offset)
        self._value = f"{partition}{offset:03}".encode().lstrip(b"0") or b"0" if value is None else value

    def error(self) -> None:
        return None

    def topic(self) -> str:
        return TOPIC

    def partition(self) -> int:
        return self._place[0]

    def offset(self) -> int:
        return self._place[1]

    def key(self) -> None:
        return None

    def value(self) -> bytes:
        return self._value

    def headers(self) -> None:
        return None

    def timestamp(self) -> tuple[int, int]:
        return 1, 0


class Client:
    """Stands for the library's consumer: hands out what a test put there, and notes what it is told."""

    def __init__(self, _options: Any, **_more: Any) -> None:
        self.records: deque[Fetched] = deque()
        self.stored: dict[int, int] = {}
        self.paused: list[list[int]] = []
        self.resumed: list[list[int]] = []
        self.callbacks: dict[str, Callable[[Any, list[TopicPartition]], None]] = {}
        self.is_closed = False

    def subscribe(self, _topics: list[str], **callbacks: Any) -> None:
        self.callbacks = callbacks

    def poll(self, _seconds: float) -> Fetched | None:
        return self.records.popleft() if self.records else None

    def store_offsets(self, offsets: list[TopicPartition]) -> None:
        self.stored |= {place.partition: place.offset for place in offsets}

    def pause(self, places: list[TopicPartition]) -> None:
        self.paused.append(sorted(place.partition for place in places))

    def resume(self, places: list[TopicPartition]) -> None:
        self.resumed.append(sorted(place.partition for place in places))

    def close(self) -> None:
        self.is_closed = True


class Producer:
    """Keeps dead letters, or refuses to."""

    def __init__(self) -> None:
        self.written: list[tuple[str, Any, dict[str, Any]]] = []
        self.errors: list[Exception] = []

    def write(self, topic: str, value: Any, *, key: Any, headers: dict[str, Any]) -> Producer:
        if self.errors:
            raise self.errors.pop()
        self.written.append((topic, value, headers))
        return self

    def wait(self) -> None:
        return None


class Bench:
    """A consumer between a client that is told and a function that is told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(consumer_module, "Consumer", Client)
        monkeypatch.setattr(consumer_module, "monotonic", lambda: self.now)
        monkeypatch.setattr(consumer_module, "_POLL_SECONDS", 0.001)
        self.handled: list[Any] = []
        self.errors: dict[Any, list[Exception]] = {}
        self.producer = Producer()
        made = KafkaConsumer({}, [TOPIC], self._handle, self.producer, max_bytes=1000)  # type: ignore[arg-type]
        self.consumer = made
        self.client: Client = made._consumer  # type: ignore[assignment]

    def _handle(self, message: Message) -> None:
        self.handled.append(message.payload)
        if self.errors.get(message.payload):
            raise self.errors[message.payload].pop(0)

    def fetch(self, *records: Fetched) -> None:
        self.client.records.extend(records)
        for _ in records:
            self.consumer.poll()

    def handle(self, times: int = 1) -> list[Any]:
        before = len(self.handled)
        for _ in range(times):
            self.consumer.handle()
        self.consumer.poll()
        return self.handled[before:]

    def revoke(self, *partitions: int) -> None:
        self.client.callbacks["on_revoke"](self.client, [TopicPartition(TOPIC, number) for number in partitions])


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A consumer by a clock that the test holds."""
    return Bench(monkeypatch)


def test_an_offset_is_stored_when_its_record_was_handled(reading: Bench) -> None:
    reading.fetch(Fetched(0), Fetched(1))
    assert reading.client.stored == {}
    assert reading.handle() == [0]
    assert reading.client.stored == {0: 1}
    assert reading.handle() == [1]
    assert reading.client.stored == {0: 2}


def test_one_that_fails_holds_up_its_partition_and_no_other(reading: Bench) -> None:
    reading.errors[0] = [RuntimeError("not now")]
    reading.fetch(Fetched(0), Fetched(1), Fetched(0, partition=1))
    assert reading.handle(3) == [0, 1000]
    assert reading.client.stored == {1: 1}
    reading.now += 1.1
    assert reading.handle(2) == [0, 1]
    assert reading.client.stored == {0: 2, 1: 1}


def test_after_some_tries_it_goes_to_the_dead_letters_and_the_next_goes_on(reading: Bench) -> None:
    reading.errors[0] = [RuntimeError("a defect")] * 10
    reading.fetch(Fetched(0), Fetched(1))
    for _ in range(9):
        reading.handle()
        reading.now += 31
    assert reading.producer.written == []
    assert reading.handle(2) == [0, 1]
    [(topic, value, headers)] = reading.producer.written
    assert (topic, value, headers["tries"]) == ("orders-dead-letters", b"0", "10")
    assert headers["reason"] == "it failed 10 times, at last with RuntimeError: a defect"
    assert reading.client.stored == {0: 2}


def test_while_the_database_is_away_no_try_is_used_up(reading: Bench) -> None:
    reading.errors[0] = [StoreUnavailable("gone")] * 30
    reading.fetch(Fetched(0))
    for _ in range(30):
        reading.handle()
        reading.now += 5.1
    assert reading.handle() == [0]
    assert (reading.producer.written, reading.client.stored) == ([], {0: 1})


def test_a_record_is_kept_until_its_dead_letter_is_safe(reading: Bench) -> None:
    reading.errors[0] = [MessageRefused("never"), MessageRefused("never")]
    reading.producer.errors = [RuntimeError("no such topic")]
    reading.fetch(Fetched(0))
    reading.handle()
    assert (reading.producer.written, reading.client.stored) == ([], {})
    reading.now += 1
    reading.handle()
    assert (len(reading.producer.written), reading.client.stored) == (1, {0: 1})


def test_a_partition_of_which_enough_waits_is_paused_and_goes_on_at_half(reading: Bench) -> None:
    reading.fetch(*(Fetched(number) for number in range(MAX_WAITING)))
    assert (reading.client.paused, reading.client.resumed) == ([[0]], [])
    reading.handle(MAX_WAITING // 2 - 1)
    assert reading.client.resumed == []
    reading.handle()
    assert reading.client.resumed == [[0]]


def test_records_of_a_partition_that_is_taken_away_are_dropped(reading: Bench) -> None:
    reading.fetch(Fetched(0), Fetched(0, partition=1))
    reading.revoke(0)
    assert reading.handle(2) == [1000]
    assert reading.client.stored == {1: 1}


def test_what_was_handled_before_is_stored_when_a_partition_is_taken_away(reading: Bench) -> None:
    reading.fetch(Fetched(0))
    reading.consumer.handle()
    assert reading.client.stored == {}
    reading.revoke(0)
    assert reading.client.stored == {0: 1}


def test_who_finishes_late_does_not_set_back_what_others_have_done(reading: Bench) -> None:
    """The partition goes and comes back while a record of it is being handled: its offset is not ours to store."""
    reading.fetch(Fetched(0))
    entry = reading.consumer._next()
    assert entry is not None
    reading.revoke(0)
    reading.fetch(Fetched(7))
    reading.consumer._note_handled(entry)
    assert reading.handle() == [7]
    assert reading.client.stored == {0: 8}
    reading.consumer._put_back(entry, 0.0, RuntimeError("late"))
    assert reading.handle() == []


def test_closing_commits_what_was_handled(reading: Bench) -> None:
    reading.fetch(Fetched(0))
    reading.consumer.handle()
    reading.consumer.close()
    assert (reading.client.stored, reading.client.is_closed) == ({0: 1}, True)


def test_what_is_handled_at_once_is_committed_as_far_as_all_of_it_is(
    reading: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second and the third are handled while the first is: should this member die, all of them are read again."""
    stored: list[dict[int, int]] = []

    def handle(message: Message) -> None:
        reading.handled.append(message.payload)
        if message.payload == 0:
            reading.consumer.handle()
            reading.consumer.handle()
            reading.consumer.poll()
            stored.append(dict(reading.client.stored))

    monkeypatch.setattr(reading.consumer, "_handle_message", handle)
    reading.fetch(Fetched(0), Fetched(1), Fetched(2), Fetched(3))
    assert reading.handle() == [0, 1, 2]
    assert (stored, reading.client.stored) == ([{0: 0}], {0: 3})
    assert reading.handle() == [3]
    assert reading.client.stored == {0: 4}
