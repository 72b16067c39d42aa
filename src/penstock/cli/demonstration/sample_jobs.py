"""The jobs of the demonstration: those of the applications, lines counted, and a slow one stopped half way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.error import HTTPError

from penstock import JobState, owner
from penstock.cli.demonstration import kinds
from penstock.cli.scoreboard import Row
from penstock.lifecycle.callers import SYSTEM
from penstock.samples import SampleJob, Samples, Visitor

if TYPE_CHECKING:
    from uuid import UUID

    from penstock import Job, Penstock

USER = "demo"
REASON = "half was enough"


class SampleJobs:
    """Submitted one after the other; an application may have more once one of its own has ended."""

    def __init__(self, app: Penstock, samples: Mapping[str, Samples], visitor: Visitor) -> None:
        self._app = app
        self._samples = samples
        self._visitor = visitor
        self._slow: UUID | None = None
        self._asked_to_go_on: set[UUID] = set()
        self.jobs: list[SampleJob] = []
        self.rows: list[Row] = []

    def submit(self) -> None:
        """A job of each sample."""
        for name, samples in self._samples.items():
            why = samples.why_left_out()
            if why is not None:
                print(f"left out: {name}; {why}\n", flush=True)
                continue
            for job in samples.submit(self._visitor):
                self._add(job)
        self._count()

    def look(self, jobs: Sequence[Job]) -> None:
        """Stop the slow one half way, and go on with what waited for the end of another."""
        for job in jobs:
            if job.id == self._slow and job.state is JobState.RUNNING and job.fraction >= 0.5:
                self._slow = None
                self._stop(job.id)
            if job.finished and job.id not in self._asked_to_go_on:
                self._asked_to_go_on.add(job.id)
                for samples in self._samples.values():
                    for following in samples.go_on(job, self._visitor):
                        self._add(following)

    def _add(self, job: SampleJob) -> None:
        self.jobs.append(job)
        kind = self._app.acting_as(SYSTEM).jobs.get(job.id).kind
        self.rows.append(Row.of(self._app.kinds, kind, job.id, job.name))

    def _count(self) -> None:
        """The demonstration's own kinds have no address to be submitted at; a program does it like this."""
        counting = self._app.acting_as(owner(USER)).submit(kinds.COUNT_WORDS, {"lines": kinds.LINES}).job
        self._add(SampleJob(counting.id, kinds.COUNT_WORDS))
        slow = self._app.acting_as(owner(USER)).submit(kinds.SLOW_COUNT, items=range(1, kinds.SLOW_ITEMS + 1)).job
        self._slow = slow.id
        self._add(SampleJob(slow.id, kinds.SLOW_COUNT, JobState.CANCELED))

    def _stop(self, job: UUID) -> None:
        try:
            self._visitor.stop(job, REASON)
        except HTTPError as error:
            if error.code != 409:  # it ended in this very moment; the summary will say so
                raise
