"""Messages of the outbox on their way to a Kafka broker: messages a second, against a plain producer.

Ours takes them from the database in batches, sends a batch, waits until the broker has confirmed it and marks it, so
that none is lost whoever dies. The ceiling is a producer that writes the same messages from memory, with the same
promises of the broker (idempotent, all replicas), and flushes once: it could lose all of them.
"""

from __future__ import annotations

import time
from uuid import uuid4

from confluent_kafka import Producer

from benches.databases import Databases
from benches.plan import LeftOut, Plan, in_turns
from benches.report import Answer, by_pairs
from benches.workload import given, given_text
from penstock import Penstock, load_settings
from penstock.messages.kafka.transport import KafkaMessages
from penstock.operations import outbox
from penstock.store import DatabaseConnection
from tests.private_brokers import BrokerUnavailable, private_broker
from tests.transports.broker import Broker

NAME = "kafka"
_FLUSH_SECONDS = 600.0


def ask(databases: Databases, plan: Plan) -> list[Answer]:
    """Measure one database."""
    count = plan.jobs
    try:
        with private_broker(Broker) as broker:
            mine, theirs = in_turns(
                lambda: count / ours(databases, broker, count), lambda: count / ceiling(broker, count), plan.repetitions
            )
    except BrokerUnavailable as reason:
        raise LeftOut(str(reason)) from None
    batches = f"one relay, batches of {KafkaMessages.at_once:,}"
    notes = [f"{count:,} messages of as many keys, {plan.repetitions} repetitions; {batches}"]
    what = "messages of the outbox to Kafka"
    return [by_pairs(NAME, what, databases.name, "messages/s", mine, theirs, notes=notes)]


def ours(databases: Databases, broker: Broker, count: int) -> float:
    """Seconds that a relay takes for so many messages that wait."""
    topic = _new_topic(broker)
    with databases.fresh() as url:
        app = Penstock(settings=load_settings(database_url=url, transport="kafka", kafka_servers=(broker.address,)))
        try:

            def publish(connection: DatabaseConnection) -> None:
                for number in range(count):
                    app.messages.publish(topic, given(number), key=str(number), connection=connection)

            app.in_transaction(publish)
            transport = app._runtime.transport
            transport.check()  # it is connected, as a worker's is
            begun = time.perf_counter()
            while outbox.relay_through(app.store, transport):
                pass
            taken = time.perf_counter() - begun
            assert app.messages.backlog().waiting == 0
            return taken
        finally:
            app.close()


def ceiling(broker: Broker, count: int) -> float:
    """Seconds that a producer takes for the same."""
    topic = _new_topic(broker)
    producer = Producer({
        "bootstrap.servers": broker.address, "enable.idempotence": True, "partitioner": "murmur2_random",
    })  # fmt: skip
    producer.list_topics(topic, timeout=_FLUSH_SECONDS)
    begun = time.perf_counter()
    for number in range(count):
        producer.produce(topic, given_text(number), str(number))
    assert producer.flush(_FLUSH_SECONDS) == 0
    return time.perf_counter() - begun


def _new_topic(broker: Broker) -> str:
    topic = f"bench-{uuid4().hex[:12]}"
    broker.create_topics(topic, partitions=3)
    return topic
