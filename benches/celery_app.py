"""The app of the bench of handlers on Celery: ``celery -A benches.celery_app:celery worker``."""

from __future__ import annotations

import os
import time

from celery import Celery

from penstock import ItemContext, Penstock
from penstock.celery import run_on_celery

QUEUE = "bench"
SECONDS = 0.02


def make_app(broker: str, url: str | None = None) -> tuple[Penstock, Celery]:
    """The same in every process."""
    app = Penstock(url)

    @app.kind("noop")
    def noop(_: ItemContext) -> None:
        """Nothing."""

    @app.kind("short")
    def short(_: ItemContext) -> None:
        time.sleep(SECONDS)

    celery = Celery("bench", broker=broker)
    run_on_celery(celery, app, queue=QUEUE)
    return app, celery


app, celery = make_app(os.environ.get("BENCH_BROKER", "memory://"))
