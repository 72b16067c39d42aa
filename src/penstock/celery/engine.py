"""Putting an app's handlers on a Celery cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from celery import Celery, signals

from penstock.app.penstock import Penstock
from penstock.celery.ticket_dispatcher import TicketDispatcher
from penstock.celery.ticket_queue import TicketQueue
from penstock.celery.ticket_task import TicketTask
from penstock.errors import ConfigurationError
from penstock.settings import Settings
from penstock.store.engine import Store
from penstock.worker.dispatching import require_shared


class CeleryEngine:
    """The kinds of an app that run on a Celery cluster."""

    name = "celery"

    def __init__(self, task: TicketTask, kinds: Sequence[str], queue: str, *, window: int, expires: float) -> None:
        self._task = task
        self._kinds = kinds
        self._queue = queue
        self._window = window
        self._expires = expires

    def dispatcher(self, store: Store, settings: Settings) -> TicketDispatcher:
        """One that sends tickets to this cluster's queue."""
        require_shared(store)
        queue = TicketQueue(self._task, self._queue, expires=self._expires)
        return TicketDispatcher(store, settings, self._kinds, queue, window=self._window)

    def settle_prefetch(self, sender: Any, **_: Any) -> None:
        """A worker that has our queue alone takes one ticket ahead for each process, and leaves others to others."""
        if sender.app is self._task.app and set(sender.app.amqp.queues.consume_from) == {self._queue}:
            sender.prefetch_multiplier = 1


def run_on_celery(
    celery_app: Celery,
    app: Penstock,
    *,
    kinds: Sequence[str] | None = None,
    queue: str = "penstock",
    window: int = 16,
    expires: float = 600.0,
) -> None:
    """Have the handlers of ``kinds`` (all that are registered, unless they are named) run on a Celery cluster.

    Call it where the Celery app is made, after the kinds are registered: in the workers and in the dispatcher. Then
    ``celery -A shop:celery worker -Q penstock`` runs handlers, and ``penstock dispatch --celery`` tells it of work.

    ``queue`` is the broker's queue that the tickets go through, ``window`` how many of them wait there while there is
    work (about twice the processes that take from it), and after ``expires`` seconds one is not worth taking any more.
    """
    names = list(dict.fromkeys(kinds)) if kinds is not None else [kind.name for kind in app.kinds]
    if isinstance(kinds, str) or not names:
        raise ConfigurationError(
            "run_on_celery needs the names of kinds, in a list; register them before it is called", code="NO_KINDS"
        )
    for name in names:
        app.kinds.get(name)
    if not queue or window < 1 or expires <= 0:
        raise ConfigurationError(
            f"run_on_celery needs a queue's name, a window of at least 1 and a time to expire above 0, not {queue!r}, "
            f"{window!r} and {expires!r}"
        )
    task_name = f"penstock.ticket.{queue}"
    if task_name in celery_app.tasks:
        raise ConfigurationError(f"the queue {queue!r} has tickets of other kinds already; name another queue")
    task = celery_app.register_task(TicketTask(app, names, task_name))
    engine = CeleryEngine(task, names, queue, window=window, expires=expires)
    signals.worker_init.connect(engine.settle_prefetch, weak=False)
    app.add_engine(engine)
