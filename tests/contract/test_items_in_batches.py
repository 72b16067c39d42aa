"""Items that become text together are kept as if each had come by itself, whatever is among them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Text, cast, select

from penstock import Job, JobState, Penstock, Planned, WorkItem, WorkJob
from penstock.errors import PayloadNotStorable, PayloadTooLarge
from penstock.lifecycle.payloads import encode_each
from penstock.operations.items import item_text, item_texts
from penstock.store.engine import Store
from penstock.store.tables import job_items
from penstock.testing.drive import MOST
from tests.contract.test_payloads_kept import KEPT, MENDED
from tests.on_store import OnStore

PATIENCE = 60.0
LIMIT = 2_000
PLAIN: list[Any] = [*KEPT, 1.0, 1e16, -0.0, 5e-324, 2**53 + 1]


def planned_job(store: Store, folder: Path, rows: list[Any], **settings: Any) -> tuple[Penstock, Job]:
    """A job whose plan has yielded ``rows``, and whose items have run."""

    class Rows:
        def plan(self, job: WorkJob) -> Iterator[Any]:
            yield from rows

        def process(self, item: WorkItem) -> None: ...

    app = OnStore(store, folder, **settings)
    app.kind("rows", retries=0)(Rows)
    job = app.submit("rows").job
    assert app.work_off(timeout=PATIENCE)
    return app, app.get(job.id)


def kept_texts(store: Store, job: Job) -> list[tuple[str | None, str | None]]:
    """What the database itself has of each item, in order."""
    both = select(cast(job_items.c.input_json, Text), cast(job_items.c.normalized_json, Text))
    of_job = both.where(job_items.c.job_id == job.id, job_items.c.position > 0).order_by(job_items.c.position)
    with store.engine.connect() as connection:
        return [(given, normalized) for given, normalized in connection.execute(of_job)]


# Into text ------------------------------------------------------------------------------------------------------------


def test_together_they_become_the_same_texts_as_one_by_one() -> None:
    batch = [Planned({"n": one}, [one]) for one in PLAIN] + [Planned(one) for one in PLAIN] + PLAIN
    assert item_texts(batch, MOST) == [item_text(one, MOST) for one in batch]
    quick = [one for one in PLAIN if "u0000" not in str(one)]
    assert encode_each(quick, most=MOST) == [item_text(one, MOST)[0] for one in quick]
    assert item_texts(quick, MOST) == [item_text(one, MOST) for one in quick]


@pytest.mark.parametrize("odd", [value for value, _ in MENDED], ids=[str(at) for at in range(len(MENDED))])
@pytest.mark.parametrize("face", ["input", "normalized"])
def test_what_must_be_mended_is_mended_among_others_too(odd: Any, face: str) -> None:
    batch = [Planned({"n": 1}, {"t": 1}), Planned({"n": 2}, {"t": 2})._replace(**{face: odd}), {"n": 3}]
    assert item_texts(batch, MOST) == [item_text(one, MOST) for one in batch]


def test_a_backslash_before_u0000_is_no_zero_character() -> None:
    assert item_texts([r"\u0000", "\0"], MOST) == [(r'"\\u0000"', None), ('"�"', None)]


def test_each_may_be_as_long_as_the_bound_and_no_longer() -> None:
    longest = "é" * ((LIMIT - 2) // 2)
    assert item_texts([longest, Planned(longest, longest)], LIMIT) == [(f'"{longest}"', None), (f'"{longest}"',) * 2]
    with pytest.raises(PayloadTooLarge, match=f"the input takes {LIMIT + 1:,} bytes"):
        item_texts(["short", longest + "x", "short"], LIMIT)
    with pytest.raises(PayloadTooLarge, match="the normalized input takes"):
        item_texts(["short", Planned("short", longest + "x")], LIMIT)


def test_the_first_that_cannot_be_kept_is_the_one_that_is_named() -> None:
    with pytest.raises(PayloadTooLarge, match="the normalized input"):
        item_texts([1, Planned(object(), "x" * LIMIT), object()], LIMIT)
    with pytest.raises(PayloadNotStorable, match="the input cannot"):
        item_texts([1, object(), "x" * LIMIT], LIMIT)


def test_nothing_becomes_nothing() -> None:
    assert item_texts([], MOST) == []


# Into the database ----------------------------------------------------------------------------------------------------


def test_every_row_keeps_its_own_text_whatever_its_neighbours_hold(store: Store, tmp_path: Path) -> None:
    letters = ["a", "é", "漢", "🥘", "", "\\", '"', "\n", "\u2028"]
    rows = [Planned({"n": n, "t": letters[n % 9] * (n % 7)}, [n] if n % 3 else None) for n in range(700)]
    app, job = planned_job(store, tmp_path, rows)
    assert (job.state, job.progress.total) == (JobState.SUCCEEDED, len(rows))
    assert [(one.input, one.normalized) for one in app.items(job.id, limit=1_000)] == rows


def test_a_row_that_must_be_mended_changes_no_other(store: Store, tmp_path: Path) -> None:
    plain = [Planned({"v": one}, {"v": one}) for one in PLAIN]
    odd = [Planned({"v": value}, {"v": value}) for value, _ in MENDED]
    _, job = planned_job(store, tmp_path, plain)
    app, mixed = planned_job(store, tmp_path, [*plain, *odd])
    assert kept_texts(store, mixed)[: len(plain)] == kept_texts(store, job)
    mended = [one.input for one in app.items(mixed.id, limit=1_000)][len(plain) :]
    assert mended == [{"v": expected} for _, expected in MENDED]


@pytest.mark.parametrize("face", ["input", "normalized"])
def test_a_row_too_large_ends_the_plan_behind_the_batches_before_it(store: Store, tmp_path: Path, face: str) -> None:
    rows = [Planned({"n": n}, {"n": n}) for n in range(300)]
    rows[250] = rows[250]._replace(**{face: {"text": "x" * LIMIT}})
    app, job = planned_job(store, tmp_path, rows, max_payload_bytes=LIMIT, ingest_min_rows=100, ingest_max_rows=100)
    assert (job.state, job.error_code, job.progress.total) == (JobState.FAILED, "PAYLOAD_TOO_LARGE", 200)
    assert [one.input for one in app.items(job.id, limit=1_000)] == [one.input for one in rows[:200]]
