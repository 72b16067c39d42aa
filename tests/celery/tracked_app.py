"""A Celery application whose tasks are tracked: seed 002's coordinator, and tasks that fail in every way."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from celery import Celery, chain, chord, group
from celery.exceptions import Ignore, Reject

from penstock import Penstock
from penstock.celery import Tracker, track
from penstock.settings import load_settings
from tests.waiting import eventually

PATIENCE = 60.0


@dataclass
class Tracking:
    """The three of them, and the tasks by name."""

    celery: Celery
    app: Penstock
    tracked: Tracker
    tasks: Any


def make(*, broker: str, backend: str, database_url: str, queue: str, **options: Any) -> Tracking:
    """The same in a client and in a worker."""
    celery = Celery("tracked", broker=broker, backend=backend, set_as_current=False)
    celery.conf.update(
        task_default_queue=queue,
        worker_prefetch_multiplier=1,
        broker_connection_retry_on_startup=True,
        result_expires=600,
        worker_hijack_root_logger=False,
        broker_transport_options={"max_retries": 1, "interval_max": 0.1, "socket_connect_timeout": 5},
        task_publish_retry_policy={"max_retries": 1, "interval_start": 0, "interval_max": 0.1},
        result_chord_retry_interval=0.1,
    )
    app = Penstock(settings=load_settings(database_url=database_url))
    options = {"jobs": {"tasks.coordinator": "duplicates", "tasks.part": "single"}, **options}
    return Tracking(celery, app, track(celery, app, **options), define(celery))


def send(client: Tracking, name: str, *args: Any, **kwargs: Any) -> str:
    """A task, as anybody sends one; the answer is its id."""
    task_id: str = client.tasks[f"tasks.{name}"].apply_async(args, kwargs).id
    return task_id


def define(celery: Celery) -> Any:
    """The tasks."""

    def task(name: str, **named: Any) -> Any:
        return celery.task(name=f"tasks.{name}", shared=False, **named)

    @task("part", bind=True, max_retries=5)
    def part(self: Any, number: int = 0, how: str = "ok", gate: str = "") -> int:
        if gate:
            eventually(Path(gate).exists, PATIENCE)
        match how:
            case "fail":
                raise ValueError(f"part {number} is no good")
            case "retry" if self.request.retries < 2:
                raise self.retry(countdown=0)
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "ignore":
                raise Ignore()
            case "reject":
                raise Reject("no", requeue=False)
            case "replace" if not self.request.get("replaced_task_nesting"):
                raise self.replace(chord([part.s(number), part.s(number)], total.s()))
        return number

    @task("late", acks_late=True)
    def late(gate: str = "") -> str:
        eventually(Path(gate).exists, PATIENCE)
        return "late"

    @task("total")
    def total(numbers: list[int]) -> int:
        return sum(numbers)

    @task("finalizer")
    def finalizer(numbers: Any, how: str = "ok", gate: str = "") -> dict[str, Any]:
        if gate:
            eventually(Path(gate).exists, PATIENCE)
        if how == "fail":
            raise ValueError("the finalizer is no good")
        return {"status": "completed", "processed": len(numbers)}

    @task("coordinator", bind=True)
    def coordinator(
        self: Any, count: int, how: str = "ok", gate: str = "", requeue: int = 0, finalizing: str = "ok"
    ) -> dict[str, Any]:
        """As seed 002 has it: it hands out, and returns."""
        if how == "fail-itself":
            raise RuntimeError("nothing to hand out")
        hows = ["fail" if how == "one-fails" and number == 0 else how for number in range(count)]
        hows = ["ok" if one == "one-fails" else one for one in hows]
        chord([part.s(number, hows[number], gate) for number in range(count)])(finalizer.s(finalizing))
        if requeue:
            coordinator.apply_async((count,), {"requeue": requeue - 1})
            return {"status": "requeued"}
        return {"status": "dispatched", "total_items": count, "message": f"Processing {count} items"}

    @task("nested")
    def nested(count: int) -> dict[str, Any]:
        chord([chord([part.s(n) for n in range(count)], total.s()) for _ in range(count)])(finalizer.s())
        return {"status": "dispatched"}

    @task("steps")
    def steps() -> dict[str, Any]:
        chain(part.s(1), group(part.si(2), part.si(3)), finalizer.s())()
        return {"status": "dispatched"}

    return celery.tasks


if "TRACKED_APP" in os.environ:
    tracking = make(**json.loads(os.environ["TRACKED_APP"]))
    celery = tracking.celery
