"""What a dispatcher sends, with a real broker and no worker: lost tickets, doubled dispatchers, backlogs, outages."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from penstock import ItemStatus
from penstock.celery.ticket_dispatcher import TicketDispatcher
from penstock.celery.ticket_queue import TicketQueue
from tests.celery.brokers import Broker
from tests.celery.cluster import Cluster

NewCluster = Callable[..., Cluster]
WINDOW = 4


class Bench:
    """A cluster without a worker, and dispatchers that are asked for one look at a time."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.queue = cluster.tickets()

    def dispatcher(self, kinds: tuple[str, ...] = ("count",), queue: TicketQueue | None = None) -> TicketDispatcher:
        app = self.cluster.app
        return TicketDispatcher(app.store, app.settings, kinds, queue or self.queue, window=WINDOW)

    def purge(self) -> None:
        """All tickets are lost."""
        self.cluster.celery.amqp.queues[self.cluster.queue](self.queue._connection.default_channel).purge()

    def take(self) -> list[dict[str, object]]:
        """The arguments of the tickets that wait; they are taken."""
        found = []
        consumer = self.cluster.celery.amqp.queues[self.cluster.queue](self.queue._connection.default_channel)
        while (message := consumer.get(no_ack=True)) is not None:
            found.append(message.payload[1])
        return found


@pytest.fixture
def bench(broker: Broker, new_cluster: NewCluster) -> Iterator[Bench]:
    """On each broker, with leases that are over in a moment."""
    made = Bench(new_cluster(broker, LOCK_FLOOR_MS="100", LOCK_CAP_MS="100"))
    yield made
    made.queue.close()


def test_tickets_are_sent_while_work_is_due_and_the_queue_is_short(bench: Bench) -> None:
    dispatcher = bench.dispatcher()
    dispatcher.top_up()
    assert bench.queue.count_waiting() == 0, "nothing is due"
    bench.cluster.app.submit("count", items=range(1_000))
    dispatcher.top_up()
    assert bench.queue.count_waiting() == WINDOW
    dispatcher.top_up()
    assert bench.queue.count_waiting() == WINDOW, "the window is full"
    assert bench.take() == [{"kind": "count", "size": 250}] * WINDOW


def test_few_items_take_few_tickets_and_kinds_take_turns(bench: Bench) -> None:
    for kind in ("count", "pair"):
        bench.cluster.app.submit(kind, items=range(2))
    bench.dispatcher(("count", "pair")).top_up()
    assert sorted(str(ticket["kind"]) for ticket in bench.take()) == ["count", "count", "pair", "pair"]


def test_lost_tickets_are_sent_again(bench: Bench) -> None:
    bench.cluster.app.submit("count", items=range(100))
    dispatcher = bench.dispatcher()
    dispatcher.top_up()
    bench.purge()
    dispatcher.top_up()
    assert bench.queue.count_waiting() == WINDOW


def test_two_dispatchers_do_no_harm(bench: Bench) -> None:
    bench.cluster.app.submit("count", items=range(100))
    second_queue = bench.cluster.tickets()
    first, second = bench.dispatcher(), bench.dispatcher(queue=second_queue)
    for dispatcher in (first, second, first, second):
        dispatcher.top_up()
    second_queue.close()
    assert bench.queue.count_waiting() == WINDOW


def test_nothing_that_waits_in_the_broker_holds_a_lease(bench: Bench) -> None:
    job = bench.cluster.app.submit("count", items=range(40)).job
    bench.dispatcher().top_up()
    assert bench.queue.count_waiting() == WINDOW
    items = bench.cluster.app.items.list(job.id)
    assert {(item.status, item.locked_by, item.attempts) for item in items} == {(ItemStatus.PENDING, None, 0)}
    assert bench.cluster.app.system.sweep().leases_expired == 0


def test_a_ticket_that_found_nothing_is_not_followed_by_a_flood(bench: Bench) -> None:
    bench.cluster.app.submit("count", items=range(4))
    dispatcher = bench.dispatcher()
    pauses = []
    for _ in range(8):
        pauses.append(dispatcher.top_up())
        bench.purge()
    assert pauses == sorted(pauses)
    assert pauses[-1] > 10 * pauses[0]
