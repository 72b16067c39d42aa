"""One job whose items change under way, by the adaptive worker and by every fixed setting of a grid: seconds.

The engine is the real one, on the embedded database. Only the provider is a model, in the same process. From the middle
of the job on its calls cost a hundred times as much, or a hundredth, and it takes only so many at once and so many a
second. A call beyond that is refused at once and may be made again 50 ms later. There are three such providers:

- one becomes slow, and counts the calls it took, like the simulator's;
- a strict one becomes slow, and counts those it refused as well, so that whoever keeps asking too often is let in less
  and less;
- one becomes quick, and takes only a few at once: many slots are right for its first half, few for its second.

A fixed setting is one concurrency and one claim size from the first item to the last. It honours the same refusals, and
it is given up when it has taken twice as long as the adaptive run.
"""

from __future__ import annotations

import asyncio
import math
import statistics
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benches.adaptive_plot import Moment, draw
from benches.databases import Databases, SQLiteDatabases
from benches.plan import Plan, say
from benches.report import Answer, Bar
from penstock import Penstock, Retryable, Settings
from penstock.lifecycle.states import FINISHED, JobState
from penstock.settings import load_settings
from penstock.worker.control.concurrency import ConcurrencySample
from penstock.worker.interpreter import settle_interpreter
from penstock.worker.worker import Worker

NAME = "adaptive"
BAR = Bar(1.0, at_least=False)
KIND = "ask-provider"
CONCURRENCIES = (1, 4, 16, 32, 64, 128)
CLAIM_SIZES = (1, 50, 500)
CHEAP_SECONDS, DEAR_SECONDS = 0.0002, 0.02
RETRY_AFTER = 0.05
GIVE_UP = 2.0
SAMPLE_SECONDS = 0.2
PLOT = Path(__file__).parent.parent / "docs" / "images" / "adaptive-run.svg"


@dataclass(frozen=True, slots=True)
class Scene:
    """What a provider is like before and after the middle of the job."""

    name: str
    before_seconds: float
    after_seconds: float
    at_once: int
    a_second: float
    counts_refusals: bool = False


SCENES = (
    Scene("becomes slow", CHEAP_SECONDS, DEAR_SECONDS, at_once=40, a_second=2_500),
    Scene("becomes slow, strict", CHEAP_SECONDS, DEAR_SECONDS, at_once=40, a_second=2_500, counts_refusals=True),
    Scene("becomes quick", DEAR_SECONDS, CHEAP_SECONDS, at_once=4, a_second=math.inf),
)
DRAWN = SCENES[2]


class Provider:
    """Somebody else's server: patient with the first half of the items, strict with the second."""

    def __init__(self, items: int, scene: Scene) -> None:
        self._middle = items // 2
        self._scene = scene
        self._in_flight = 0
        self._calls: deque[float] = deque()
        self.refused = 0

    async def call(self, number: int) -> None:
        """One call for the item of this number."""
        if number <= self._middle:
            await asyncio.sleep(self._scene.before_seconds)
            return
        self._require_room()
        self._in_flight += 1
        try:
            await asyncio.sleep(self._scene.after_seconds)
        finally:
            self._in_flight -= 1

    def _require_room(self) -> None:
        now, calls, scene = time.monotonic(), self._calls, self._scene
        while calls and calls[0] < now - 1.0:
            calls.popleft()
        refuses = self._in_flight >= scene.at_once or len(calls) >= scene.a_second
        if not refuses or scene.counts_refusals:
            calls.append(now)
        if refuses:
            self.refused += 1
            raise Retryable("too many calls", code="PROVIDER_THROTTLED", retry_after=RETRY_AFTER)


@dataclass(frozen=True, slots=True)
class Fixed:
    """Settings that stay as they are."""

    concurrency: int
    claim_size: int

    def __str__(self) -> str:
        return f"{self.concurrency} at once, claims of {self.claim_size}"


class _Held:
    """A controller that answers one setting, whatever it is told."""

    def __init__(self, setting: int) -> None:
        self.setting = setting

    def observe(self, _sample: ConcurrencySample) -> int:
        return self.setting


@dataclass(frozen=True, slots=True)
class Run:
    """How one run went; without seconds it was given up."""

    seconds: float | None
    refused: int
    done: int
    moments: Sequence[Moment] = field(default_factory=tuple)


def ask(databases: Databases, plan: Plan) -> list[Answer]:
    """Measure the embedded database; a server would only add its own noise to the same controllers."""
    if not isinstance(databases, SQLiteDatabases):
        return []
    return [_grid(databases, plan, scene) for scene in SCENES]


def _grid(databases: SQLiteDatabases, plan: Plan, scene: Scene) -> Answer:
    items = plan.adaptive_items
    say(f"  {NAME}: a provider that {scene.name}")
    runs = [run(databases, items, None, None, scene) for _ in range(plan.repetitions_of_adaptive)]
    times = [one.seconds for one in runs if one.seconds is not None]
    adaptive = statistics.median(times)
    say(f"  {NAME}: adaptive {', '.join(f'{one:.2f}' for one in times)} s, refused {[one.refused for one in runs]}")
    fixed: dict[Fixed, Run] = {}
    for concurrency in CONCURRENCIES:
        for size in CLAIM_SIZES:
            setting = Fixed(concurrency, size)
            fixed[setting] = seen = run(databases, items, setting, GIVE_UP * adaptive, scene)
            taken = "given up" if seen.seconds is None else f"{seen.seconds:.2f} s"
            say(f"  {NAME}: {setting}: {taken}, {seen.done:,} done, {seen.refused:,} refused")
    finished = {setting: one.seconds for setting, one in fixed.items() if one.seconds is not None}
    middle = min(runs, key=lambda one: abs((one.seconds or 0.0) - adaptive))
    if items == Plan().adaptive_items and scene is DRAWN:
        draw(PLOT, middle.moments, adaptive, {str(setting): one.seconds for setting, one in fixed.items()}, GIVE_UP)
    best = min(finished, key=lambda setting: finished[setting]) if finished else None
    against = finished[best] if best is not None else GIVE_UP * adaptive
    notes = [
        f"{items:,} items, adaptive {len(times)} times; the ceiling column is the best fixed setting: {best}",
        f"refused calls: adaptive {middle.refused:,}" + (f", best fixed {fixed[best].refused:,}" if best else ""),
        f"{len(fixed) - len(finished)} of {len(fixed)} fixed settings were given up after {GIVE_UP:g} times as long",
    ]
    samples = {str(setting): [one.seconds or -1.0] for setting, one in fixed.items()}
    ratios = [one / against for one in times]
    what = f"a job whose provider {scene.name}, adaptive against the best fixed"
    return Answer(
        NAME, what, databases.name, "s", adaptive, against, adaptive / against, ratios, BAR, notes,
        {"ours": times, **samples},
    )  # fmt: skip


def run(databases: Databases, items: int, fixed: Fixed | None, most_seconds: float | None, scene: Scene) -> Run:
    """Do the whole job once, from the moment it is let go with an idle worker waiting."""
    provider = Provider(items, scene)
    with databases.fresh() as url:
        app = Penstock(settings=_settings(url, fixed))

        # The least wait is the kind's own backoff: as short as what the provider asks for, for everybody.
        @app.kind(
            KIND, retries=1_000_000, backoff="50ms fixed", concurrency=None if fixed is None else fixed.concurrency
        )
        async def ask_provider(item: Any) -> None:
            await provider.call(item.input["n"])

        try:
            job = app.submit(KIND, items=[{"n": number} for number in range(1, items + 1)], hold=True).job
            settle_interpreter()
            worker = app.worker()
            worker.signals.listen()
            worker.start()
            try:
                assert worker.signals.wait("idle"), "the worker did not become idle"
                if fixed is not None:
                    _hold(worker, fixed.concurrency)
                begun = time.perf_counter()
                app.jobs.release(job.id)
                moments = _watch(app, worker, job.id, begun, most_seconds)
                taken = time.perf_counter() - begun
            finally:
                worker.stop(grace=0.5)
            job = app.jobs.get(job.id)
        finally:
            app.close()
    if job.state not in FINISHED:
        return Run(None, provider.refused, job.progress.done, moments)
    assert job.state is JobState.SUCCEEDED, f"the job ended as {job.state}: {job.last_error}"
    assert job.progress.done == items, f"{job.progress.done} of {items} items are done"
    assert job.completed_at is not None
    assert job.started_at is not None
    return Run(min(taken, (job.completed_at - job.started_at).total_seconds()), provider.refused, items, moments)


def _settings(url: str, fixed: Fixed | None) -> Settings:
    if fixed is None:
        return load_settings(database_url=url)
    return load_settings(database_url=url, claim_min=fixed.claim_size, claim_max=fixed.claim_size)


def _hold(worker: Worker, concurrency: int) -> None:
    """Keep the concurrency where it is: an engine whose business is to adapt has no setting for that."""
    [lane] = worker._lanes
    assert lane.controllers.slots == concurrency
    lane.controllers.concurrency = _Held(concurrency)  # type: ignore[assignment]


def _watch(app: Penstock, worker: Worker, job_id: Any, begun: float, most_seconds: float | None) -> list[Moment]:
    """Look at the settings now and then, until the job is over or has taken too long."""
    [lane] = worker._lanes
    moments: list[Moment] = []
    while True:
        idle = worker.signals.wait("idle", worker.signals.count("idle") + 1, timeout=SAMPLE_SECONDS)
        now = time.perf_counter() - begun
        job = app.jobs.get(job_id)
        moments.append(Moment(now, lane.controllers.claim_size.setting, lane.controllers.slots, job.progress.done))
        if job.state in FINISHED:
            return moments
        if most_seconds is not None and now > most_seconds:
            return moments
        assert now < 600, f"not over after {now:.0f} s (idle: {idle})"
