"""Runs in which the engine and the model once disagreed, with no more steps than it took.

Each is red again when the guard that it is named after is taken out. The machine begins many of its runs with the first
steps of one of them: where one fault was, others are near.
"""

from __future__ import annotations

from typing import Any

from penstock.lifecycle.states import ItemStatus
from tests.model.side_by_side import OWNERS, Step


def submitted(**options: Any) -> Step:
    """A job of the first kind, without a key."""
    usual = {"kind": 0, "who": "ann", "keyed": False, "name": None, "address": None, "hold": False, "count": None}
    return "submit", usual | {"priority": None, "params": {"p": 1}} | options


def asked_again(who: str | None, *, fresh: float | None = None, hold: bool = False, name: str | None = None) -> Step:
    """Somebody asks for the same."""
    return "ask_for_the_same", {"index": 0, "who": OWNERS.index(who), "fresh": fresh, "name": name, "hold": hold}


def control(index: int, verb: str) -> Step:
    """An owner decides about the job that was recorded as the so-many-th."""
    return "control", {"index": index, "verb": verb, "who": "owner"}


def work(what: str) -> Step:
    """All that is there is taken, and ends in this way."""
    return "work", {"kind": 0, "by": "w1", "what": what, "result": {"r": 1}}


def claim(size: int = 6, by: str = "w1") -> Step:
    """A worker takes what is there."""
    return "claim", {"kind": 0, "by": by, "size": size}


def end(what: str, by: str = "w1") -> Step:
    """The first item that a worker holds ends in this way."""
    return "end", {"by": by, "whats": [what], "late": [], "late_first": False, "result": {"r": 1}}


def advance(seconds: float) -> Step:
    """Time passes."""
    return "advance", {"seconds": seconds}


def later(seconds: float) -> Step:
    """Time passes, and the sweep comes."""
    return "later", {"seconds": seconds}


def reprocess(*statuses: ItemStatus) -> Step:
    """The job that ended last runs again."""
    chosen = {"index": 0, "statuses": statuses, "reset": True, "permanent": True, "odd_ones": False, "codes": None}
    return "reprocess", chosen | {"who": "owner"}


KEPT: dict[str, tuple[list[str], list[Step]]] = {
    "an empty job does not wait, so a full queue does not refuse it": (
        ["limited"],
        [submitted(), submitted(), ("deploy", {"index": 0}), submitted(count=0)],
    ),
    "who inherits running work is processing, not beginning": (
        ["single"],
        [submitted(keyed=True), asked_again("bob"), claim(), control(0, "cancel")],
    ),
    "who joined while the leader was requeued runs with the heir": (
        ["single"],
        [
            submitted(keyed=True), claim(), asked_again("bob"),
            ("end", {"by": "w1", "whats": ["retryable"], "late": [], "late_first": False, "result": None}),
            later(6), asked_again("cid"), control(0, "cancel"),
        ],
    ),
    "a copy is as old as its source, and no source": (
        ["single"],
        [
            submitted(keyed=True), work("done"), advance(30), asked_again("bob", fresh=50), advance(30),
            asked_again("cid", fresh=50),
        ],
    ),
    "an heir has the normalized fields": (
        ["bulk"],
        [submitted(keyed=True, count=3), asked_again("bob"), control(0, "cancel")],
    ),
    "a key leads to the job that was the answer": (
        ["single"],
        [
            submitted(keyed=True), asked_again("ann", name="i1"), work("done"),
            ("send_again", {"index": 0, "params": None}),
        ],
    ),
    "a plan that was not found is made again": (
        ["planned"],
        [submitted(), work("not found"), reprocess(ItemStatus.ERROR)],
    ),
    "a paused job is not followed": (
        ["single"],
        [submitted(keyed=True), control(0, "pause"), asked_again("bob")],
    ),
    "a held job is not followed": (
        ["single"],
        [submitted(keyed=True, hold=True), asked_again("bob"), control(0, "cancel")],
    ),
    "run_limit of an heir counts from when it inherits": (
        ["hurried"],
        [submitted(keyed=True), claim(), asked_again("bob"), advance(79), control(0, "cancel"), later(2)],
    ),
    "run_limit does not judge a follower": (
        ["hurried"],
        [submitted(keyed=True), claim(), asked_again("bob"), later(81)],
    ),
    "wait_limit does not count during a backoff": (
        ["hurried"],
        [submitted(), work("retryable"), control(0, "pause"), control(0, "resume"), later(61)],
    ),
    "wait_limit does not judge a follower": (
        ["hurried"],
        [submitted(keyed=True), asked_again("bob"), later(61)],
    ),
    "a job whose last follower has left can be paused": (
        ["single"],
        [submitted(keyed=True), asked_again("bob"), control(1, "cancel"), control(0, "pause")],
    ),
    "a clock that is set back does not stop what is queued": (
        ["single"],
        [submitted(), ("turn_back", {"seconds": 900.0}), later(1)],
    ),
    "who has abandoned a result gets a new job from the cache": (
        ["single"],
        [submitted(keyed=True), work("done"), control(0, "abandon"), asked_again("ann", fresh=50)],
    ),
    # The seed 1942157412584001496 on SQLite: two that came back fill the claim, and the third job's place was moved.
    "a job of which nothing is taken keeps its turn": (
        ["bulk"],
        [
            submitted(count=2), submitted(count=1), claim(), end("retryable"), advance(1), end("retryable"), advance(1),
            end("retryable"), advance(60), claim(2), claim(2),
        ],
    ),
    # The seed 3290665394188388004 on PostgreSQL: a look showed the highest priority that it had not heard of, which was
    # not due, and the claim took that for all there was.
    "a due job is found beside a higher priority that is not due": (
        ["single"],
        [
            claim(), submitted(priority=5), claim(by="w2"), end("retryable", by="w2"), submitted(priority=0), claim(),
        ],
    ),
    "a job_id that is taken is refused": (
        ["single"],
        [submitted(), ("submit_as", {"index": 1, "who": "bob"})],
    ),
}  # fmt: skip
