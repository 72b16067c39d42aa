"""Jobs that have been kept for long enough go, with all that is theirs; whoever asks for one is told."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import func, select

from penstock import owner
from penstock.errors import FileNotFound, JobNotFound, JobPruned
from penstock.lifecycle import outcomes
from penstock.lifecycle.callers import SYSTEM
from penstock.lifecycle.job import ClaimedItem, Job
from penstock.lifecycle.kind import Kind, Kinds
from penstock.lifecycle.policy import Policy
from penstock.lifecycle.retention import FOR_EVER, Retention
from penstock.lifecycle.states import JobState
from penstock.operations import control, prune
from penstock.operations.export import export_rows
from penstock.operations.prune import JOBS_AT_ONCE, PruneRules, count_overdue, count_pruned, prune_some
from penstock.operations.read_jobs import get_job
from penstock.operations.reprocess import reprocess
from penstock.operations.rerun import rerun
from penstock.store.queries.files import hold_file
from penstock.store.tables import files as files_table
from penstock.store.tables import idempotency_keys, job_events, job_items, jobs, pruned_jobs
from penstock.testing.drive import LEASE, Workbench
from tests.conformance.steps import DONE, FAILED, write
from tests.on_store import OnStore
from tests.properties.engine_kinds import PlanProcessFinalize, ProcessFinalize, process

pytestmark = pytest.mark.usefixtures("rows_are_true_in_the_end")
DAY = 86_400.0
S = JobState


def rules_of(*kinds: Kind, default: Retention = FOR_EVER, keys: float | None = None, **more: Any) -> PruneRules:
    registered = Kinds()
    for kind in kinds:
        registered.add(kind)
    return PruneRules(registered, default, keep_keys_for=keys, **more)


SHORT = Kind.of("short", process, Policy(retries=0, keep_for="1d", keep_failed_for="7d", reprocess=True))
MAILBOX = Kind.of("mailbox", process, Policy(retries=0, keep_for="1d", abandon_after="30d"))
BULK = Kind.of("bulk", ProcessFinalize, Policy(retries=0, keep_for="1d", reprocess=True))
PLANNED = Kind.of("planned", PlanProcessFinalize, Policy(retries=0, keep_for="1d"))
UNSAID = Kind.of("unsaid", process, Policy(retries=0))
FOREVER = Kind.of("forever", process, Policy(retries=0, keep_for=None))
RULES = rules_of(SHORT, MAILBOX, BULK, PLANNED, UNSAID, FOREVER)


@pytest.fixture
def bench(bench: Workbench) -> Workbench:
    bench.kinds = RULES.kinds
    return bench


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "kept"


def prune_all(bench: Workbench, folder: Path, rules: PruneRules = RULES) -> None:
    while prune_some(bench.store, rules, folder):
        pass


def ended(bench: Workbench, kind: str, how: outcomes.Outcome = DONE, **request: Any) -> Job:
    """A job of one step that is over."""
    job = bench.submit(kind, {"n": 1}, owner="ann", **request).job
    bench.record(bench.claim(kind), how)
    return bench.job(job.id)


def is_there(bench: Workbench, job: Job) -> bool:
    try:
        bench.job(job.id)
    except JobPruned:
        return False
    return True


def rows(bench: Workbench, table: Any) -> int:
    return bench.store.read(lambda one: one.values(int, select(func.count()).select_from(table)))[0]


def test_each_end_is_kept_for_as_long_as_its_kind_says(bench: Workbench, folder: Path) -> None:
    done, failed = ended(bench, "short"), ended(bench, "short", FAILED)
    canceled = bench.submit("short", owner="ann").job
    write(bench, control.cancel, canceled.id, SYSTEM)
    forever, unsaid = ended(bench, "forever"), ended(bench, "unsaid")
    flowing = bench.submit("short", owner="ann").job
    bench.clock.advance(DAY - 60)
    prune_all(bench, folder)
    assert all(is_there(bench, job) for job in (done, failed, canceled, forever, unsaid, flowing))
    bench.clock.advance(120)
    prune_all(bench, folder)
    assert [is_there(bench, job) for job in (done, failed, canceled)] == [False, True, False]
    bench.clock.advance(7 * DAY)
    prune_all(bench, folder)
    assert [is_there(bench, job) for job in (failed, forever, unsaid, flowing)] == [False, True, True, True]
    prune_all(bench, folder, rules_of(UNSAID, FOREVER, default=Retention(DAY, None)))
    assert [is_there(bench, job) for job in (forever, unsaid)] == [True, False]


def test_a_result_that_waits_for_its_owner_is_used_or_abandoned_first(bench: Workbench, folder: Path) -> None:
    job = ended(bench, "mailbox")
    bench.clock.advance(2 * DAY)
    prune_all(bench, folder)
    assert bench.job(job.id).state is S.SUCCEEDED
    write(bench, control.commit, job.id, owner("ann"))
    prune_all(bench, folder)
    assert not is_there(bench, job)


def test_all_that_is_theirs_goes_and_is_counted(bench: Workbench, folder: Path) -> None:
    many = bench.submit("bulk", items=[{"n": n} for n in range(3 * JOBS_AT_ONCE)], idempotency_key="i").job
    while items := bench.claim("bulk", size=500):
        bench.record(items, DONE)
    for n in range(JOBS_AT_ONCE + 3):
        bench.submit("short", {"n": n})
    bench.record(bench.claim("short", size=1_000), DONE)
    bench.clock.advance(DAY + 1)
    counted = [tuple(count) for count in count_overdue(bench.store, RULES)]
    assert counted == [("short", "succeeded", JOBS_AT_ONCE + 3, JOBS_AT_ONCE + 3), ("bulk", "succeeded", 1, 600)]
    assert rows(bench, jobs) == JOBS_AT_ONCE + 4, "counting deletes nothing"
    prune_all(bench, folder)
    assert [rows(bench, table) for table in (jobs, job_items, job_events, idempotency_keys)] == [0, 0, 0, 0]
    assert sorted(tuple(count) for count in count_pruned(bench.store)) == sorted(counted)
    again = bench.submit("bulk", items=[{"n": 1}], idempotency_key="i")
    assert again.job.id != many.id, "its key has gone with it"


def test_who_could_see_it_is_told_and_nobody_else(bench_app: OnStore, bench: Workbench, folder: Path) -> None:
    job = ended(bench, "short")
    bench.clock.advance(DAY + 1)
    prune_all(bench, folder)
    for who in (owner("ann"), SYSTEM):
        mine = bench_app.acting_as(who)
        asked = (
            mine.jobs.get, mine.jobs.history, mine.jobs.cancel, mine.jobs.commit, mine.jobs.rerun, mine.items.list,
            mine.items.export, mine.jobs.wait,
        )  # fmt: skip
        for ask in asked:
            with pytest.raises(JobPruned, match="was deleted on") as caught:
                ask(job.id)
            assert caught.value.code == "JOB_PRUNED"
    with pytest.raises(JobNotFound) as missing:
        bench_app.acting_as(owner("eve")).jobs.get(job.id)
    assert missing.value.code == "JOB_NOT_FOUND"
    bench.clock.advance(31 * DAY)
    prune_all(bench, folder)
    assert rows(bench, pruned_jobs) == 0
    with pytest.raises(JobNotFound) as forgotten:
        bench_app.jobs.get(job.id)
    assert forgotten.value.code == "JOB_NOT_FOUND", "after a month nobody knows of it"


def test_who_has_its_result_keeps_it(bench: Workbench, folder: Path) -> None:
    """A copy, and a follower, are run again by the items of the job that did the work."""
    source = ended(bench, "short", unique_key="k")
    bench.clock.advance(DAY - 60)
    copy = bench.submit("short", {"n": 1}, owner="bob", unique_key="k", fresh_for=2 * DAY).job
    bench.clock.advance(120)
    prune_all(bench, folder)
    assert is_there(bench, source)
    assert is_there(bench, copy)
    bench.clock.advance(DAY)
    prune_all(bench, folder)
    assert not is_there(bench, copy)
    prune_all(bench, folder)
    assert not is_there(bench, source), "the pass after the one that took the last copy"


def test_what_a_worker_holds_is_left_alone(bench: Workbench, folder: Path) -> None:
    job = bench.submit("bulk", items=[1]).job
    [held] = bench.claim("bulk", lease=3 * DAY)
    write(bench, control.cancel, job.id, SYSTEM)
    bench.clock.advance(2 * DAY)
    prune_all(bench, folder)
    assert is_there(bench, job)
    assert bench.record([held], DONE) == {held.item_id}
    prune_all(bench, folder)
    assert not is_there(bench, job)
    assert rows(bench, job_items) == 0


def test_a_worker_that_comes_late_changes_nothing(bench: Workbench, folder: Path) -> None:
    job = bench.submit("bulk", items=[1]).job
    [held] = bench.claim("bulk")
    write(bench, control.cancel, job.id, SYSTEM)
    bench.clock.advance(LEASE + 1)
    bench.sweep()
    bench.clock.advance(2 * DAY)
    prune_all(bench, folder)
    assert not is_there(bench, job)
    assert bench.record([held], DONE) == set()


def test_a_process_that_dies_in_between_leaves_the_rest_to_the_next(bench: Workbench, folder: Path) -> None:
    job = bench.submit("bulk", items=[1, 2, 3]).job
    write(bench, control.cancel, job.id, SYSTEM)
    bench.clock.advance(DAY + 1)
    write(bench, prune.prune_jobs, "bulk", S.CANCELED, DAY)
    assert not is_there(bench, job)
    assert rows(bench, job_items) == 3
    prune_all(bench, folder)
    assert [rows(bench, table) for table in (job_items, job_events)] == [0, 0]


def test_what_somebody_has_locked_waits_for_nobody(bench: Workbench, folder: Path) -> None:
    kept, gone = ended(bench, "short"), ended(bench, "short")
    bench.clock.advance(DAY + 1)
    if bench.store.dialect.is_embedded:
        prune_all(bench, folder)
        return
    with bench.store.engine.begin() as open_transaction:
        open_transaction.execute(select(jobs.c.id).where(jobs.c.id == kept.id).with_for_update(key_share=True))
        prune_all(bench, folder)
        assert [is_there(bench, job) for job in (kept, gone)] == [True, False]
    prune_all(bench, folder)
    assert not is_there(bench, kept)


def test_a_new_run_comes_first_or_not_at_all(bench: Workbench, folder: Path) -> None:
    job, other = ended(bench, "short", FAILED), ended(bench, "short", FAILED)
    bench.clock.advance(8 * DAY)
    write(bench, reprocess, SHORT, job.id, owner("ann"))
    prune_all(bench, folder)
    assert is_there(bench, job)
    with pytest.raises(JobPruned):
        bench.store.write(lambda one: reprocess(one, SHORT, other.id, owner("ann")))
    with pytest.raises(JobPruned):
        bench.store.write(lambda one: rerun(one, RULES.kinds, other.id, owner("ann"), max_bytes=1_000))


def test_an_export_that_is_under_way_does_not_end_as_if_it_were_whole(bench: Workbench, folder: Path) -> None:
    job = bench.submit("bulk", items=[{"n": n} for n in range(120)]).job
    while items := bench.claim("bulk", size=500):
        bench.record(items, DONE)
    lines = export_rows(bench.store, job.id, SYSTEM, ())
    next(lines)
    bench.clock.advance(DAY + 1)
    prune_all(bench, folder)
    with pytest.raises(JobPruned):
        list(lines)


def test_keys_are_forgotten_by_their_age_but_not_before_their_job_is_over(bench: Workbench, folder: Path) -> None:
    over, waiting = ended(bench, "forever", idempotency_key="over"), bench.submit("forever", idempotency_key="waits")
    bench.clock.advance(31 * DAY)
    prune_all(bench, folder, rules_of(FOREVER, keys=30 * DAY))
    assert bench.submit("forever", idempotency_key="waits").job.id == waiting.job.id
    assert bench.submit("forever", {"n": 1}, owner="ann", idempotency_key="over").job.id != over.id


# Files ----------------------------------------------------------------------------------------------------------------


@contextmanager
def _kept(bench: Workbench, folder: Path, content: bytes = b"a,b") -> Iterator[tuple[UUID, Path]]:
    files = OnStore(bench.store, folder).files
    record = files.keep(io.BytesIO(content), name="t.csv", owner="ann")
    path = files.path(record)
    os.utime(path, (0, 0))  # not of a file whose record is still to come
    yield record.id, path


def test_a_file_goes_with_the_last_job_that_has_it(bench: Workbench, folder: Path) -> None:
    with _kept(bench, folder) as (file_id, path), _kept(bench, folder, b"other") as (unused, others_path):
        first = ended(bench, "short", file_id=file_id)
        bench.clock.advance(DAY / 2)
        second = ended(bench, "short", file_id=file_id)
        bench.clock.advance(DAY / 2 + 1)
        prune_all(bench, folder)
        assert [is_there(bench, job) for job in (first, second)] == [False, True]
        assert path.exists()
        bench.clock.advance(DAY)
        prune_all(bench, folder)
        assert not path.exists()
        with pytest.raises(FileNotFound):
            bench.submit("short", file_id=file_id)
        assert others_path.exists(), "one that no job ever had is not ours to judge"
        assert rows(bench, files_table) == 1
        assert unused != file_id


def test_bytes_stay_while_another_record_has_them_or_may_be_about_to(bench: Workbench, folder: Path) -> None:
    with _kept(bench, folder) as (file_id, path), _kept(bench, folder) as (same_bytes, _):
        ended(bench, "short", file_id=file_id)
        bench.clock.advance(DAY + 1)
        prune_all(bench, folder)
        assert path.exists()
        ended(bench, "short", file_id=same_bytes)
        bench.clock.advance(DAY + 1)
        path.touch()  # somebody keeps the same bytes just now; the record is to come
        prune_all(bench, folder)
        assert path.exists()
        assert rows(bench, files_table) == 0


def test_an_application_keeps_what_its_own_tables_have(bench: Workbench, folder: Path) -> None:
    with _kept(bench, folder) as (file_id, path):
        ended(bench, "short", file_id=file_id)
        bench.clock.advance(DAY + 1)
        prune_all(bench, folder, rules_of(SHORT, file_users=[lambda file_ids: file_ids]))
        assert path.exists()
        assert rows(bench, files_table) == 1


def test_a_file_that_is_being_submitted_stays(bench: Workbench, folder: Path) -> None:
    with _kept(bench, folder) as (file_id, path):
        ended(bench, "short", file_id=file_id)
        bench.clock.advance(DAY + 1)

        def submit_while_others_prune(transaction: Any) -> None:
            assert hold_file(transaction, file_id)
            if not bench.store.dialect.is_embedded:
                prune_all(bench, folder)

        bench.store.write(submit_while_others_prune)
        assert path.exists()
        prune_all(bench, folder)
        assert not path.exists()


def test_the_same_transaction_reads_what_was_pruned_as_one_does_alone(bench: Workbench, folder: Path) -> None:
    job = ended(bench, "short")
    bench.clock.advance(DAY + 1)
    prune_all(bench, folder)
    with pytest.raises(JobPruned):
        bench.store.read(lambda one: get_job(one, job.id, SYSTEM))


def test_a_claim_goes_on_beside_it(bench: Workbench, folder: Path) -> None:
    ended(bench, "short")
    bench.clock.advance(DAY + 1)
    bench.submit("short")
    held: list[ClaimedItem] = bench.claim("short")
    prune_all(bench, folder)
    assert bench.record(held, DONE) == {held[0].item_id}
