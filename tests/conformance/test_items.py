"""Items that become text together are kept as if each had come by itself, whatever is among them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Text, cast, select

from penstock import ItemContext, Job, JobContext, JobState, Penstock, Planned
from penstock.errors import PayloadNotStorable, PayloadTooLarge
from penstock.lifecycle.payloads import encode_each
from penstock.operations.items import item_text, item_texts
from penstock.store.engine import Store
from penstock.store.tables import job_items
from penstock.testing.drive import MAX_BYTES
from tests.conformance.payload_values import CONVERTED, KEPT, REFUSED
from tests.on_store import OnStore

PATIENCE = 60.0
LIMIT = 2_000
PLAIN: list[Any] = KEPT


def planned_job(store: Store, folder: Path, rows: list[Any], **settings: Any) -> tuple[Penstock, Job]:
    """A job whose plan has yielded ``rows``, and whose items have run."""

    class Rows:
        def plan(self, job: JobContext) -> Iterator[Any]:
            yield from rows

        def process(self, item: ItemContext) -> None: ...

    app = OnStore(store, folder, **settings)
    app.kind("rows", retries=0)(Rows)
    job = app.submit("rows").job
    assert app.drain(timeout=PATIENCE)
    return app, app.jobs.get(job.id)


def kept_texts(store: Store, job: Job) -> list[tuple[str | None, str | None]]:
    """What the database itself has of each item, in order."""
    both = select(cast(job_items.c.input_json, Text), cast(job_items.c.normalized_json, Text))
    of_job = both.where(job_items.c.job_id == job.id, job_items.c.position > 0).order_by(job_items.c.position)
    with store.engine.connect() as connection:
        return [(given, normalized) for given, normalized in connection.execute(of_job)]


# Into text ------------------------------------------------------------------------------------------------------------


def one_by_one(batch: list[Any]) -> list[tuple[str, str | None]]:
    return [item_text(one, MAX_BYTES, index) for index, one in enumerate(batch)]


def test_together_they_become_the_same_texts_as_one_by_one() -> None:
    batch = [Planned({"n": one}, [one]) for one in PLAIN] + [Planned(one) for one in PLAIN] + PLAIN
    assert item_texts(batch, MAX_BYTES, 0) == one_by_one(batch)
    quick = [one for one in PLAIN if "u0000" not in str(one) and "e+" not in str(one)]
    assert encode_each(quick, max_bytes=MAX_BYTES) == [text for text, _ in one_by_one(quick)]
    assert item_texts(quick, MAX_BYTES, 0) == one_by_one(quick)


@pytest.mark.parametrize("odd", [value for value, _ in CONVERTED], ids=[str(at) for at in range(len(CONVERTED))])
@pytest.mark.parametrize("face", ["input", "normalized"])
def test_what_is_converted_is_converted_among_others_too(odd: Any, face: str) -> None:
    batch = [Planned({"n": 1}, {"t": 1}), Planned({"n": 2}, {"t": 2})._replace(**{face: odd}), {"n": 3}]
    assert item_texts(batch, MAX_BYTES, 0) == one_by_one(batch)


@pytest.mark.parametrize("number", range(len(REFUSED)))
@pytest.mark.parametrize("face", ["input", "normalized"])
def test_what_is_refused_is_refused_among_others_too(number: int, face: str) -> None:
    make, path, _ = REFUSED[number]
    odd = Planned({"n": 2}, {"t": None})._replace(**{face: make()})
    with pytest.raises(PayloadNotStorable) as raised:
        item_texts([{"n": None}, odd, {"n": 3}], MAX_BYTES, after=40)
    assert raised.value.message.startswith("item 42: items[41]")
    at = "items[41]" if face == "input" else "items[41].normalized"
    assert str(raised.value.field).startswith(at + path)


def test_a_backslash_before_u0000_is_no_zero_character() -> None:
    assert item_texts([r"\u0000"], MAX_BYTES, 0) == [(r'"\\u0000"', None)]


def test_each_may_be_as_long_as_the_bound_and_no_longer() -> None:
    longest = "é" * ((LIMIT - 2) // 2)
    kept = [(f'"{longest}"', None), (f'"{longest}"', f'"{longest}"')]
    assert item_texts([longest, Planned(longest, longest)], LIMIT, 0) == kept
    with pytest.raises(PayloadTooLarge, match=rf"item 2: items\[1\] takes {LIMIT + 1:,} bytes"):
        item_texts(["short", longest + "x", "short"], LIMIT, 0)
    with pytest.raises(PayloadTooLarge, match=r"items\[1\].normalized takes"):
        item_texts(["short", Planned("short", longest + "x")], LIMIT, 0)


def test_the_first_that_cannot_be_kept_is_the_one_that_is_named() -> None:
    with pytest.raises(PayloadNotStorable, match=r"items\[1\] cannot"):
        item_texts([1, Planned(object(), "x" * LIMIT), object()], LIMIT, 0)
    with pytest.raises(PayloadNotStorable, match=r"items\[1\] cannot"):
        item_texts([1, object(), "x" * LIMIT], LIMIT, 0)


def test_nothing_becomes_nothing() -> None:
    assert item_texts([], MAX_BYTES, 0) == []


# Into the database ----------------------------------------------------------------------------------------------------


def test_every_row_keeps_its_own_text_whatever_its_neighbours_hold(store: Store, tmp_path: Path) -> None:
    letters = ["a", "é", "漢", "🥘", "", "\\", '"', "\n", "\u2028"]
    rows = [Planned({"n": n, "t": letters[n % 9] * (n % 7)}, [n] if n % 3 else None) for n in range(700)]
    app, job = planned_job(store, tmp_path, rows)
    assert (job.state, job.progress.total) == (JobState.SUCCEEDED, len(rows))
    assert [(one.input, one.normalized) for one in app.items.list(job.id, limit=1_000)] == rows


def test_a_row_that_is_converted_changes_no_other(store: Store, tmp_path: Path) -> None:
    plain = [Planned({"v": one}, {"v": one}) for one in PLAIN]
    odd = [Planned({"v": value}, {"v": value}) for value, _ in CONVERTED]
    _, job = planned_job(store, tmp_path, plain)
    app, mixed = planned_job(store, tmp_path, [*plain, *odd])
    assert kept_texts(store, mixed)[: len(plain)] == kept_texts(store, job)
    converted = [one.input for one in app.items.list(mixed.id, limit=1_000)][len(plain) :]
    assert converted == [{"v": expected} for _, expected in CONVERTED]


@pytest.mark.parametrize("face", ["input", "normalized"])
def test_a_row_too_large_ends_the_plan_behind_the_batches_before_it(store: Store, tmp_path: Path, face: str) -> None:
    rows = [Planned({"n": n}, {"n": n}) for n in range(300)]
    rows[250] = rows[250]._replace(**{face: {"text": "x" * LIMIT}})
    app, job = planned_job(store, tmp_path, rows, max_payload_bytes=LIMIT, ingest_min_rows=100, ingest_max_rows=100)
    assert (job.state, job.error_code, job.progress.total) == (JobState.FAILED, "PAYLOAD_TOO_LARGE", 200)
    assert [one.input for one in app.items.list(job.id, limit=1_000)] == [one.input for one in rows[:200]]
