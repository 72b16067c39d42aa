"""What a submission asks for, apart from its payloads: keys that can be kept, and a title of one line."""

from __future__ import annotations

import pytest

from penstock.errors import InvalidInput
from penstock.testing.drive import Workbench
from tests.on_store import OnStore

pytestmark = pytest.mark.usefixtures("rows_are_true_in_the_end")


@pytest.mark.parametrize("field", ["owner", "unique_key", "idempotency_key"])
@pytest.mark.parametrize("value", ["", "x" * 256, "a\0b", "a\ud800"])
def test_a_key_that_cannot_be_kept_is_refused(bench: Workbench, field: str, value: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        bench.submit("single", **{field: value})
    assert refused.value.field == field


def test_fresh_for_needs_a_key(bench: Workbench) -> None:
    with pytest.raises(InvalidInput, match="needs a unique_key"):
        bench.submit("single", fresh_for=60)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (None, None),
        ("prices.csv", "prices.csv"),
        ("", None),
        (" \t\n", None),
        ("two\r\nlines\0and\x1b[31mred", "two lines and [31mred"),
        ("half a pair \ud800", "half a pair \ufffd"),
        ("ä" * 255, "ä" * 255),
        ("😀" * 256, "😀" * 254 + "…"),
    ],
)
def test_a_title_is_one_line_that_can_be_kept(bench_app: OnStore, given: str | None, kept: str | None) -> None:
    bench_app.kind("table")(lambda item: None)
    for job in (
        bench_app.submit("table", {}, title=given).job,
        bench_app.submit("table", {}, title=given, unique_key="key").job,
        bench_app.submit("table", items=[1, 2], title=given).job,
        bench_app.submit("table", {}, title=given, hold=True, idempotency_key="once").job,
    ):
        assert (job.title, bench_app.jobs.get(job.id).title) == (kept, kept)
