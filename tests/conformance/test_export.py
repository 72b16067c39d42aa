"""All of a job's items as lines of its grid, read a stretch at a time."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import ItemStatus
from penstock.lifecycle import outcomes
from penstock.operations import export
from penstock.testing.drive import Workbench
from tests.conformance.steps import DONE
from tests.on_store import OnStore


def lines_of(app: OnStore, job: Any, statuses: list[ItemStatus] | None = None) -> list[dict[str, Any]]:
    """The lines, by their headers."""
    headers, lines, _ = app.items.export(job.id, statuses=statuses)
    return [dict(zip(headers, line, strict=True)) for line in lines]


@pytest.mark.parametrize("most", [export._BATCH_BYTES, 1], ids=["light", "heavy"])
def test_every_item_comes_once_and_in_order(
    bench: Workbench, bench_app: OnStore, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(export, "_BATCH_BYTES", most)  # heavy ones are read one by one
    job = bench.submit("bulk", items=[{"n": n} for n in range(1, 212)]).job
    assert [line["row"] for line in lines_of(bench_app, job)] == list(range(1, 212))


def test_those_of_some_statuses_alone(bench: Workbench, bench_app: OnStore) -> None:
    job = bench.submit("bulk", items=list(range(1, 61))).job
    failed = outcomes.failed("it broke", "BROKEN")
    bench.hand_in([(one, failed if one.position % 20 == 0 else DONE) for one in bench.claim("bulk", size=60)])
    found = lines_of(bench_app, job, [ItemStatus.ERROR])
    assert [(line["row"], line["attempts"], line["error_code"], line["error"]) for line in found] == [
        (position, 1, "BROKEN", "it broke") for position in (20, 40, 60)
    ]
    assert len(lines_of(bench_app, job, [ItemStatus.DONE, ItemStatus.ERROR])) == 60
    assert lines_of(bench_app, job, [ItemStatus.SKIPPED]) == []


def test_a_job_without_items_has_no_lines(bench: Workbench, bench_app: OnStore) -> None:
    assert lines_of(bench_app, bench.submit("planned").job) == []
