"""The app of the bench of tracked chords: ``celery -A benches.tracked_app:celery worker``."""

from __future__ import annotations

import os
from typing import Any

from celery import Celery, chord

from penstock import Penstock
from penstock.celery import Tracker, track

MODES = ("untracked", "batched", "at-once")
FLUSH_SECONDS = {"batched": 0.2, "at-once": 0}


def make_apps(broker: str, backend: str, url: str | None, *, mode: str) -> tuple[Penstock, Any, Tracker | None]:
    """The same in every process but for the mode: how what is heard of tasks is written, if at all."""
    celery = Celery("tracked", broker=broker, backend=backend)
    celery.conf.update(worker_prefetch_multiplier=4, result_expires=600, result_chord_retry_interval=0.1)
    app, tracker = Penstock(url), None
    if mode in FLUSH_SECONDS:
        jobs = {f"bench.{tracked}": "chord" for tracked in FLUSH_SECONDS}
        tracker = track(celery, app, jobs=jobs, flush_every=FLUSH_SECONDS[mode])

    @celery.task(name="bench.part")  # type: ignore[untyped-decorator]
    def part(number: int) -> int:
        return number

    @celery.task(name="bench.total")  # type: ignore[untyped-decorator]
    def total(numbers: list[int]) -> int:
        return len(numbers)

    for name in MODES:

        @celery.task(name=f"bench.{name}")  # type: ignore[untyped-decorator]
        def coordinator(tasks: int, queue: str = name) -> str:
            parts = [part.s(number).set(queue=queue) for number in range(tasks)]
            return str(chord(parts)(total.s().set(queue=queue)).id)

    return app, celery, tracker


app, celery, _ = make_apps(
    os.environ.get("BENCH_BROKER", "memory://"),
    os.environ.get("BENCH_BACKEND", "cache+memory://"),
    None,
    mode=os.environ.get("BENCH_MODE", "untracked"),
)
