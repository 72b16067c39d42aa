"""The broker's queue of tickets: how many wait there, and sending more.

One connection, which is made again after any trouble with it. Every wait is bounded, and nothing is tried twice: who
looks a moment later sees what is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from penstock.celery.ticket import Ticket
from penstock.celery.ticket_task import TicketTask

_ANSWER_SECONDS = 5.0
_TRANSIENT = 1
"""A ticket need not survive its broker: no disk is written for it."""
_OPTIONS = {"confirm_publish": True}
"""RabbitMQ says when a ticket is in the queue, so that the next look counts it; other brokers do so anyway."""


class TicketQueue:
    """Where the tickets of one task wait; for one thread."""

    def __init__(self, task: TicketTask, queue: str, *, expires: float) -> None:
        self._task = task
        self._queue = queue
        self._expires = expires
        self._connection: Any = None
        self._producer: Any = None

    def count_waiting(self) -> int:
        """How many tickets no worker has yet."""
        self._connect()
        answer = self._task.app.amqp.queues[self._queue](self._connection.default_channel).queue_declare()
        return int(answer.message_count)

    def send(self, tickets: Sequence[Ticket]) -> None:
        """Send tickets; those that do not arrive are missed at the next look."""
        self._connect()
        for ticket in tickets:
            self._task.apply_async(
                kwargs=ticket.message(),
                queue=self._queue,
                expires=self._expires,
                producer=self._producer,
                retry=False,
                delivery_mode=_TRANSIENT,
                confirm_timeout=_ANSWER_SECONDS,
            )

    def close(self) -> None:
        """Let go of the broker, also of one that does not answer."""
        connection, self._connection, self._producer = self._connection, None, None
        if connection is not None:
            with suppress(Exception):
                connection.collect(socket_timeout=_ANSWER_SECONDS)

    def _connect(self) -> None:
        if self._connection is not None:
            return
        app = self._task.app
        connection = app.connection_for_write(connect_timeout=_ANSWER_SECONDS, transport_options=_OPTIONS)
        connection.ensure_connection(max_retries=1, interval_start=0.0, interval_step=0.0, timeout=_ANSWER_SECONDS)
        self._connection = connection
        app.amqp.queues[self._queue](connection.default_channel).declare()
        self._producer = app.amqp.Producer(connection.default_channel, auto_declare=False)
