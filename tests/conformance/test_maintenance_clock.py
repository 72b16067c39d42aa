"""A database whose clock is set back (NTP, a restored machine): what is in line goes on."""

from __future__ import annotations

import pytest

from penstock.testing.drive import Workbench


@pytest.mark.parametrize("items", [[1], [1, 2, 3]], ids=["queued", "running"])
def test_what_is_in_line_is_put_back_in_line_by_the_sweep(bench: Workbench, items: list[int]) -> None:
    """Its turn was now, and lies in the future since: no such turn is ever written for a job with fresh items."""
    job = bench.submit("bulk", items=items).job
    if len(items) > 1:
        assert len(bench.claim("bulk", size=1, lease=1000)) == 1
    bench.clock.advance(-900)
    assert bench.claim("bulk") == []
    assert bench.sweep().postponed == 1
    assert {one.job_id for one in bench.claim("bulk")} == {job.id}


def test_what_is_submitted_afterwards_does_not_wait_for_the_sweep(bench: Workbench) -> None:
    bench.submit("single")
    bench.clock.advance(-900)
    after = bench.submit("single").job
    assert [one.job_id for one in bench.claim("single")] == [after.id]
