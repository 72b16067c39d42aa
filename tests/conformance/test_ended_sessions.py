"""Sessions that were ended: who is told of them, and for how long."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from penstock.errors import InvalidInput
from penstock.operations.ended_sessions import (
    EVERYBODY,
    end_everybodys,
    end_one,
    end_users,
    read_ended,
    session_subject,
    user_subject,
)
from penstock.store.queries.ended_sessions import EndedSession
from penstock.testing.drive import Workbench

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def ended(bench: Workbench, since: datetime = LONG_AGO) -> dict[str, EndedSession]:
    rows = bench.store.read(lambda transaction: read_ended(transaction, since), single_statement=True)
    return {row.subject: row for row in rows}


def test_a_user_everybody_and_one_session_are_told_apart(bench: Workbench) -> None:
    bench.store.write(lambda one: end_users(one, EVERYBODY, NOON))
    assert list(ended(bench)) == [user_subject(EVERYBODY)], "a user may be called that"
    bench.store.write(lambda one: end_everybodys(one, NOON))
    bench.store.write(lambda one: end_one(one, "a" * 64, NOON, expires_at=NOON + timedelta(days=999)))
    assert ended(bench).keys() == {user_subject(EVERYBODY), EVERYBODY, session_subject("a" * 64)}
    assert {row.issued_before for row in ended(bench).values()} == {NOON}


def test_a_later_ending_counts_and_an_earlier_one_changes_nothing(bench: Workbench) -> None:
    for moment, counts in ((NOON, NOON), (NOON + timedelta(hours=1), NOON + timedelta(hours=1)), (NOON, None)):
        bench.store.write(partial(end_users, user="ada", now=moment))
        [row] = ended(bench).values()
        assert row.issued_before == (counts or NOON + timedelta(hours=1))


def test_only_what_is_new_is_read(bench: Workbench) -> None:
    bench.store.write(lambda one: end_users(one, "ada", NOON))
    [first] = ended(bench).values()
    bench.clock.advance(60)
    assert not ended(bench, first.ended_at + timedelta(seconds=1))
    bench.store.write(lambda one: end_users(one, "bob", NOON))
    assert list(ended(bench, first.ended_at + timedelta(seconds=1))) == [user_subject("bob")]
    bench.clock.advance(60)
    bench.store.write(lambda one: end_users(one, "ada", NOON + timedelta(hours=1)))
    assert list(ended(bench, first.ended_at + timedelta(seconds=61))) == [user_subject("ada")], "ended again"


def test_a_session_whose_token_has_run_out_is_forgotten_and_a_user_is_not(bench: Workbench) -> None:
    now = bench.clock.held()
    bench.store.write(lambda one: end_one(one, "short", now, expires_at=now + timedelta(hours=1)))
    bench.store.write(lambda one: end_one(one, "long", now, expires_at=now + timedelta(hours=3)))
    bench.store.write(lambda one: end_users(one, "ada", now))
    bench.clock.advance(2 * 3600)
    bench.store.write(lambda one: end_users(one, "bob", now))
    assert ended(bench).keys() == {session_subject("long"), user_subject("ada"), user_subject("bob")}


@pytest.mark.parametrize("name", ["", "x" * 256, "nul\0"])
def test_a_name_that_nobody_can_have_is_refused(bench: Workbench, name: str) -> None:
    with pytest.raises(InvalidInput):
        bench.store.write(lambda one: end_users(one, name, NOON))


def test_the_longest_name_fits(bench: Workbench) -> None:
    bench.store.write(lambda one: end_users(one, "ü" * 255, NOON))
    assert list(ended(bench)) == [user_subject("ü" * 255)]
