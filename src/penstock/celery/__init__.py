"""Celery: the handlers of an app on somebody's cluster, and Celery's own tasks as jobs (``penstock[celery]``).

``ticket.py`` says what a message is, ``ticket_task.py`` is the task that works one off, ``lost_child.py`` is what the
worker's main process does when a child dies over one, ``ticket_queue.py`` sends them, and ``ticket_dispatcher.py``
decides how many. ``engine.py`` puts them together.

For those who keep their tasks, ``tracking.py`` keeps one job for many of them: ``task_signals.py`` hears Celery's
signals, ``task_sightings.py`` and ``canvas.py`` say what they mean, ``sighting_buffer.py`` writes it, and
``worker_watch.py`` stops what was canceled and asks about what is quiet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.celery.engine import run_on_celery
    from penstock.celery.tracking import Tracker, track
else:
    from penstock.lazy import lazy_names

    __getattr__, __dir__ = lazy_names(
        __name__, {"penstock.celery.engine": "run_on_celery", "penstock.celery.tracking": "Tracker track"}
    )

__all__ = ["Tracker", "run_on_celery", "track"]
