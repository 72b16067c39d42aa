"""The comparison with peers, on the one peer that is always there: ourselves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benches.peers.driving import PeerFailed, running
from benches.peers.questions import QUESTIONS
from benches.peers.roster import PEERS, Peer
from benches.peers.servers import Servers, servers
from benches.peers.size import Size
from benches.peers.table import JOBS, growth_columns, roster_table, spreads, table
from tests.sizes import LARGE

SMALL = Size(
    one_at_a_time=5, in_bulk=50, drained=50, pick_ups=3, units=100, canceled=3_000, killed=3_000, tables=(4_000, 8_000)
)

[OURS] = [one for one in PEERS if one.name == "Penstock on SQLite"]


@pytest.fixture
def started() -> Iterator[Servers]:
    with servers() as where:
        yield where


@pytest.mark.parametrize("question", ["enqueue", "drain", "pick-up"] if LARGE else ["drain"])
def test_a_question_is_answered_with_figures(started: Servers, question: str) -> None:
    figures = QUESTIONS[question](OURS, started, SMALL)
    assert figures
    assert all(value is not None and value > 0 for value in figures.values()), figures


@pytest.mark.large
def test_one_users_work_is_done_canceled_and_survives_a_kill(started: Servers) -> None:
    done = QUESTIONS["work"](OURS, started, SMALL)
    assert done["units_left"] == 0
    assert (done["units"] or 0) > 0
    assert done["progress_p50"] is not None
    canceled = QUESTIONS["cancel"](OURS, started, SMALL)["cancel_started"]
    assert canceled is not None
    assert canceled < SMALL.canceled
    killed = QUESTIONS["kill"](OURS, started, SMALL)
    assert killed["unfinished"] == 0
    assert (killed["whole_after_s"] or 0) > 0


@pytest.mark.large
def test_a_table_that_grows_is_claimed_from_and_read(started: Servers) -> None:
    figures = QUESTIONS["growth"](OURS, started, SMALL)
    assert sorted(figures) == ["claim_ms_4000", "claim_ms_8000", "page_ms_4000", "page_ms_8000"]
    assert all(value is not None and value > 0 for value in figures.values()), figures
    [redis] = [one for one in PEERS if one.name == "RQ on Redis"]
    assert QUESTIONS["growth"](redis, started, SMALL) == {}


def test_what_started_is_reported_by_number(started: Servers) -> None:
    with running(OURS, started.fresh(OURS.server)) as one, one.worker():
        one.client.ask("enqueue", 7, 2)
        assert sorted(number for number, _ in one.reports.wait_for(2, 30.0)) == [7, 8]
        one.wait_until_nothing_is_left(30.0)


def test_a_client_that_fails_says_what_it_said(started: Servers) -> None:
    with running(OURS, started.fresh(OURS.server)) as one, pytest.raises(PeerFailed, match="died"):
        one.client.ask("no_such_method")


def test_every_peer_names_its_adapter_its_lock_and_its_promises() -> None:
    for one in PEERS:
        assert one.durable
        assert one.settings
        assert one.packages
        assert one.server in {"postgresql", "redis", "sqlite"}
    assert len({one.name for one in PEERS}) == len(PEERS)


def test_the_table_marks_the_best_and_leaves_a_dash_for_what_is_not_offered() -> None:
    samples: dict[str, dict[str, list[float | None]]] = {
        "us": {"drain": [100.0, 300.0, 200.0], "pick_up_p95": [5.0]},
        "them": {"drain": [150.0], "pick_up_p95": [4.0], "enqueue_bulk": [None]},
    }
    lines = table(samples, JOBS).splitlines()
    assert lines[0] == "| | in bulk, jobs/s | drain, jobs/s | pick-up p95, ms |"
    assert lines[2:] == ["| us |  | **200** | 5 |", "| them | – | 150 | **4** |"]
    assert spreads(samples) == "- us: drain, jobs/s 150–250"


def test_a_table_nobody_was_asked_for_is_left_out() -> None:
    samples: dict[str, dict[str, list[float | None]]] = {
        "us": {"claim_ms_1000": [1.0], "claim_ms_10": [2.0]},
        "them": {"drain": [1.0]},
    }
    assert table({"us": {}}, JOBS) == ""
    columns = growth_columns(samples, "claim_ms")
    assert list(columns) == ["claim_ms_10", "claim_ms_1000"]
    assert table(samples, columns).splitlines()[2:] == ["| us | **2** | **1** |"]


def test_the_roster_tells_what_is_kept() -> None:
    one = Peer(
        "it", "it_jobs", None, "redis", settings="s", durable="d", result_kept=False, packages=("it",), recovers="r"
    )
    assert roster_table([one], {"it": "it 1.0"}).splitlines()[-1] == "| it | it 1.0 | s | d | no | r |"
