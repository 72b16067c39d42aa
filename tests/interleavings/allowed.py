"""What is known and allowed, each with its reason: waits of workers, and ends that no order one by one would give."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from tests.interleavings.scheduler import Wait

WORKERS_WAIT_AT = {
    "finish_items": "the items are its own; a sweep, a heartbeat or a reprocess has them for a moment",
    "finish_held_items": "the same",
    "end_items": "the same",
    "lock_jobs": "outcomes are counted one after the other",
    "hold_plan": "the plan is its own",
    "extend_plan": "somebody pauses or cancels the job just now",
    "lock_followers": "a follower is being canceled",
    "restore_turn": "the sweep lets a job go on",
    "count_more_lost": "two sweeps count the same dead worker",
    "insert_death": "the same",
    "add_to_counts": "two passes count what they have pruned",
    "begin_count": "the same",
}
"""Statements at which a worker, a sweep or a relay may wait for a lock, within a bound, and why."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """Two operations whose interleaving may end, or be answered, as neither order one by one would."""

    first: str
    second: str
    reason: str
    scene: str = "*"

    def covers(self, scene: str, operations: tuple[str, ...]) -> bool:
        """Are both among the operations, and is it the scene?"""
        if not fnmatchcase(scene, self.scene):
            return False
        return any(fnmatchcase(one, self.first) for one in operations) and any(
            fnmatchcase(one, self.second) for one in operations
        )


_PASSED_OVER = "a follower that somebody has locked at that moment is passed over, and the sweep lets it end or start"
_PARTLY = "of two jobs it passes over the one that somebody has locked, and takes the other"
_READ_BACK = "the answer is the job as it is when it is read back: it may have ended since it was found"
ALLOWED: tuple[Allowed, ...] = (
    *(
        Allowed(f"* {follower}", by_worker, _PASSED_OVER)
        for follower in "FG"
        for by_worker in ("done *", "fail *", "claim *", "rescue*", "settle left behind")
    ),
    Allowed("rescue*", "*", _PARTLY, scene="two_running"),
    Allowed("abandon unused", "submit *", _PARTLY, scene="limited_unused"),
    *(Allowed(f"{change} L", "submit by ann with i", _READ_BACK) for change in ("cancel", "resume")),
)


def allowed(scene: str, operations: tuple[str, ...]) -> bool:
    """May these end as no order one by one would?"""
    return any(one.covers(scene, operations) for one in ALLOWED)


def unexpected(wait: Wait) -> bool:
    """May a worker not wait there?"""
    return wait.statement not in WORKERS_WAIT_AT or not wait.bounded
