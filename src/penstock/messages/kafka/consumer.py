"""A member of a consumer group: one thread polls, others hand what came to a function.

**Polling never waits for work.** The broker takes a member for dead that does not poll for some minutes. So the thread
that polls does nothing else: when enough records of a partition wait here it pauses that partition, and polls on. And
nobody else speaks to the client: who calls it beside a poll waits for a lock that the next poll takes again, which was
seen to last for minutes.

**Order** is that of each partition where one thread handles. Where several do, which is for functions that do not mind,
records are begun in their order and end in any. A record that fails is tried again, later and later, and those of its
partition wait behind it. After some tries it goes to the dead letters. While the database is away it is tried for as
long as that takes.

**Offsets.** A record counts as handled when the function has returned, or when it is safe among the dead letters. What
is committed is how far all are handled: one that takes long holds that up, and those behind it are handled again should
this member die. The thread that polls hands the offset to the client, which commits it within a second, when the group
is rebalanced and when it is closed. Records of partitions that are taken away are dropped here, and are for their new
owner. One that is just being handled is finished: its new owner handles it too, and the
:mod:`inbox <penstock.operations.inbox>` has its effect happen once.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TypeAlias

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from penstock.errors import BrokerUnavailable, MessageRefused, StoreUnavailable
from penstock.lifecycle.error_text import describe_error
from penstock.lifecycle.retry import Backoff
from penstock.lifecycle.transport import Message, TransportHealth
from penstock.messages.kafka.client_log import Repetitions, client_log
from penstock.messages.kafka.client_options import Options
from penstock.messages.kafka.dead_letters import write_dead_letter
from penstock.messages.kafka.failures import configuration_error
from penstock.messages.kafka.producer import KafkaProducer
from penstock.messages.kafka.records import Record, as_record, read_message
from penstock.messages.kafka.statistics import STATISTICS_MS, read_health

MAX_TRIES = 10
MAX_WAITING = 100
"""Of each partition; at half of it a paused one goes on."""
_POLL_SECONDS = 0.2
_BACKOFF = Backoff(1.0, 2.0, 30.0)
_OUTAGE_BACKOFF = Backoff(0.5, 2.0, 5.0)
_log = structlog.get_logger("penstock.kafka")

Handle: TypeAlias = Callable[[Message], None]
Place: TypeAlias = tuple[str, int]


@dataclass(slots=True, eq=False)
class _Waiting:
    """A record that is to be handled; two of them are never the same."""

    record: Record
    losses: int
    """How often its partition had been taken away when it came."""
    tries: int = 0
    outages: int = 0
    ready_at: float = 0.0


class KafkaConsumer:
    """Reads some topics as a member of a group, and has each message handled at least once."""

    def __init__(
        self, options: Options, topics: Sequence[str], handle: Handle, producer: KafkaProducer, *, max_bytes: int
    ) -> None:
        self._options = {
            **options,
            "enable.auto.offset.store": False,
            "auto.commit.interval.ms": 1000,
            # A group that is new reads what is there: nobody else will.
            "auto.offset.reset": "earliest",
            "partition.assignment.strategy": "cooperative-sticky",
            # A topic that is made later is found within seconds.
            "topic.metadata.refresh.interval.ms": 10_000,
            "queued.max.messages.kbytes": 16_384,
            "statistics.interval.ms": STATISTICS_MS,
        }
        self._topics = list(topics)
        self._handle_message = handle
        self._producer = producer
        self._max_bytes = max_bytes
        self._condition = threading.Condition()
        self._waiting: deque[_Waiting] = deque()
        self._counts: Counter[Place] = Counter()
        self._losses: Counter[Place] = Counter()
        self._places: frozenset[Place] = frozenset()
        """The partitions that are this member's."""
        self._paused: set[Place] = set()
        self._open_offsets: dict[Place, set[int]] = {}
        """The records that are being handled, or wait for their next try."""
        self._next_offsets: dict[Place, int] = {}
        """The offset up to which all records are handled, where the client does not know it yet."""
        self._ends: dict[Place, int] = {}
        """The offset behind the furthest record that was handled."""
        self._repetitions = Repetitions()
        self._last_trouble: str | None = None
        self._health: TransportHealth | None = None
        self._is_closed = False
        self._consumer = self._join()

    # The thread that polls ----------------------------------------------------------------------------------------

    def poll(self) -> None:
        """Fetch one record, if one comes within a moment; called again and again by one thread."""
        client_message = self._consumer.poll(_POLL_SECONDS)
        if client_message is not None:
            error = client_message.error()
            if error is None:
                self._take_in(as_record(client_message))
            else:
                self._tell(error)
        self._store_handled()
        self._balance()

    def _join(self) -> Consumer:
        """Connecting is left to the client's threads; only settings that cannot be used are refused here."""
        try:
            options = {**self._options, "error_cb": self._tell, "stats_cb": self._note_statistics}
            consumer = Consumer(options, logger=client_log)
        except KafkaException as exception:
            raise configuration_error(exception) from None
        consumer.subscribe(self._topics, on_assign=self._on_assign, on_revoke=self._drop, on_lost=self._drop)
        return consumer

    def _take_in(self, record: Record) -> None:
        with self._condition:
            self._waiting.append(_Waiting(record, self._losses[record.place]))
            self._counts[record.place] += 1
            self._condition.notify_all()

    def _balance(self) -> None:
        """Pause the partitions of which enough waits here, and let others go on."""
        with self._condition:
            full_places = [
                place for place, count in self._counts.items() if count >= MAX_WAITING and place not in self._paused
            ]
            resumable_places = [place for place in self._paused if self._counts[place] <= MAX_WAITING // 2]
            self._paused |= set(full_places)
            self._paused -= set(resumable_places)
        for change, places in ((self._consumer.pause, full_places), (self._consumer.resume, resumable_places)):
            if places:
                change([TopicPartition(*place) for place in places])

    def _on_assign(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        new_places = _places(partitions)
        self._places |= new_places
        with self._condition:  # the client does not pause what it is given anew
            self._paused -= new_places

    def _drop(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        """These partitions are another member's from now on."""
        self._store_handled()
        lost_places = _places(partitions)
        self._places -= lost_places
        with self._condition:
            self._waiting = deque(entry for entry in self._waiting if entry.record.place not in lost_places)
            for place in lost_places:
                del self._counts[place]
                self._open_offsets.pop(place, None)
                self._ends.pop(place, None)
            self._losses.update(lost_places)
            self._paused -= lost_places

    def _store_handled(self) -> None:
        """Tell the client how far we are; it commits that."""
        with self._condition:
            next_offsets, self._next_offsets = self._next_offsets, {}
        for (topic, partition), offset in next_offsets.items():
            try:
                self._consumer.store_offsets(offsets=[TopicPartition(topic, partition, offset)])
            except (KafkaException, RuntimeError):
                # The partition is being taken away, or we are being closed: its new owner handles it again.
                _log.info("a handled message is another member's by now", topic=topic, offset=offset - 1)

    # The thread that handles --------------------------------------------------------------------------------------

    def handle(self) -> None:
        """Handle the next record, or wait a moment for one; called again and again, by one thread to keep the order."""
        entry = self._next()
        if entry is None:
            return
        try:
            self._handle_message(read_message(entry.record, max_bytes=self._max_bytes))
        except MessageRefused as error:
            is_done = self._put_aside(entry, error.message)
        except (StoreUnavailable, BrokerUnavailable) as error:
            is_done = False
            entry.outages += 1
            self._put_back(entry, _OUTAGE_BACKOFF.delay(entry.outages), error)
        except BaseException as error:  # noqa: BLE001 - whatever a subscriber raises, the record is tried again
            entry.tries += 1
            is_done = entry.tries >= MAX_TRIES and self._put_aside(
                entry, f"it failed {entry.tries} times, at last with {describe_error(error)}"
            )
            if not is_done and entry.tries < MAX_TRIES:
                self._put_back(entry, _BACKOFF.delay(entry.tries), error)
        else:
            is_done = True
        if is_done:
            self._note_handled(entry)

    def _next(self) -> _Waiting | None:
        """The next record whose partition is not held up by one that waits for its next try."""
        with self._condition:
            entry = self._first_ready()
            if entry is None and not self._is_closed:
                self._condition.wait(_POLL_SECONDS)
                entry = self._first_ready()
            if entry is not None:
                self._waiting.remove(entry)
                self._open_offsets.setdefault(entry.record.place, set()).add(entry.record.offset)
            return entry

    def _first_ready(self) -> _Waiting | None:
        now = monotonic()
        held_up: set[Place] = set()
        for entry in self._waiting:
            if entry.ready_at > now:
                held_up.add(entry.record.place)
            elif entry.record.place not in held_up:
                return entry
        return None

    def _put_back(self, entry: _Waiting, seconds: float, error: BaseException) -> None:
        """Try a record again later, before all that are behind it; unless its partition was taken away meanwhile."""
        _log.warning(
            "a message could not be handled; it is tried again",
            topic=entry.record.topic, partition=entry.record.partition, offset=entry.record.offset,
            tries=entry.tries, seconds=seconds, error=describe_error(error),
        )  # fmt: skip
        entry.ready_at = monotonic() + seconds
        with self._condition:
            if self._is_ours(entry):
                self._waiting.appendleft(entry)

    def _put_aside(self, entry: _Waiting, reason: str) -> bool:
        """Write a record to the dead letters; where that fails it is kept, and tried again."""
        record = entry.record
        try:
            write_dead_letter(self._producer, record, reason, tries=entry.tries, max_bytes=self._max_bytes)
        except BaseException as error:  # noqa: BLE001 - the record must not be lost, whatever keeps it from being written
            entry.outages += 1
            self._put_back(entry, _OUTAGE_BACKOFF.delay(entry.outages), error)
            return False
        _log.warning(
            "a message was put aside",
            topic=record.topic, partition=record.partition, offset=record.offset, reason=reason,
        )  # fmt: skip
        return True

    def _note_handled(self, entry: _Waiting) -> None:
        place = entry.record.place
        with self._condition:
            if self._is_ours(entry):
                self._counts[place] -= 1
                open_offsets = self._open_offsets[place]
                open_offsets.remove(entry.record.offset)
                self._ends[place] = max(self._ends.get(place, 0), entry.record.offset + 1)
                # Records are begun in their order, so all that lie before the first open one are handled.
                self._next_offsets[place] = min(open_offsets, default=self._ends[place])

    def _is_ours(self, entry: _Waiting) -> bool:
        """Has its partition stayed with us since it came? What another member has done meanwhile is not undone."""
        return entry.losses == self._losses[entry.record.place]

    # ---------------------------------------------------------------------------------------------------------------

    def health(self) -> TransportHealth | None:
        """How it fares with the broker, as the client said some seconds ago; None before it has said anything."""
        return self._health

    def _note_statistics(self, text: str) -> None:
        """Called by the client, while it is polled."""
        self._health = read_health(text, self._places, trouble=self._last_trouble)

    def close(self) -> None:
        """Commit what was handled, and leave the group; both threads have stopped."""
        with self._condition:
            self._is_closed = True
            self._condition.notify_all()
        self._store_handled()
        self._consumer.close()

    def _tell(self, error: KafkaError) -> None:
        """Say what is wrong, each thing once a minute: the client reports it again and again."""
        text = error.str()
        if error.code() != KafkaError._ALL_BROKERS_DOWN or self._last_trouble is None:  # which does not say why
            self._last_trouble = text
        if self._repetitions.is_new(text):
            _log.warning("the broker cannot be read from as it should", error=text, topics=self._topics)


def _places(partitions: Sequence[TopicPartition]) -> frozenset[Place]:
    return frozenset((partition.topic, partition.partition) for partition in partitions)
