"""Celery: the handlers of an app on somebody's cluster (``penstock[celery]``).

``ticket.py`` says what a message is, ``ticket_task.py`` is the task that works one off, ``lost_child.py`` is what the
worker's main process does when a child dies over one, ``ticket_queue.py`` sends them, and ``ticket_dispatcher.py``
decides how many. ``engine.py`` puts them together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.celery.engine import run_on_celery
else:
    from penstock.lazy import lazy_names

    __getattr__, __dir__ = lazy_names(__name__, {"penstock.celery.engine": "run_on_celery"})

__all__ = ["run_on_celery"]
