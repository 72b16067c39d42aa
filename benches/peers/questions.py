"""What is asked of every peer. Each answer is a dictionary of figures; their names are those of the table's columns."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from benches.peers.driving import NotOffered, PeerFailed, Running, running
from benches.peers.roster import Peer
from benches.peers.servers import Servers
from benches.report import p95

PATIENCE = 600.0
REST_SECONDS = (0.02, 0.05)
WARM_UP = 20
STUCK_AFTER = 120.0
Figures = dict[str, float | None]


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything."""

    one_at_a_time: int = 1_000
    in_bulk: int = 20_000
    drained: int = 20_000
    pick_ups: int = 200
    killed_after: int = 5_000

    @classmethod
    def quick(cls) -> Size:
        """Enough to see that it works."""
        return cls(one_at_a_time=200, in_bulk=2_000, drained=2_000, pick_ups=40, killed_after=500)


def enqueue(peer: Peer, servers: Servers, size: Size) -> Figures:
    """Enqueue one at a time, and in bulk: jobs a second."""
    with running(peer, servers.fresh(peer.server)) as one:
        one.client.ask("enqueue", 0, 20)
        singly = size.one_at_a_time / one.client.seconds("enqueue", 20, size.one_at_a_time)
    with running(peer, servers.fresh(peer.server)) as one:
        try:
            one.client.ask("enqueue_in_bulk", 0, 20)
            in_bulk = size.in_bulk / one.client.seconds("enqueue_in_bulk", 20, size.in_bulk)
        except NotOffered:
            return {"enqueue_one": singly, "enqueue_bulk": None}
    return {"enqueue_one": singly, "enqueue_bulk": in_bulk}


def drain(peer: Peer, servers: Servers, size: Size) -> Figures:
    """Jobs a second, from the first handler's start until the peer says that nothing is left; the worker's memory."""
    with running(peer, servers.fresh(peer.server)) as one:
        _fill(one, size.drained)
        with one.worker() as worker:
            reports = one.reports.wait_for(size.drained, PATIENCE)
            if len(reports) < size.drained:
                raise PeerFailed(f"{len(reports)} of {size.drained} jobs started:\n{one.last_words()}")
            ended = one.wait_until_nothing_is_left(PATIENCE)
            begun = min(at for _, at in reports)
            return {"drain": size.drained / (ended - begun) * 1e9, "memory_mb": worker.peak_bytes / 1e6}


def pick_up(peer: Peer, servers: Servers, size: Size) -> Figures:
    """Milliseconds from before the enqueue to the start of the handler, the worker being idle."""
    with running(peer, servers.fresh(peer.server)) as one, one.worker():
        waits = []
        for number in range(WARM_UP + size.pick_ups):
            time.sleep(random.uniform(*REST_SECONDS))
            begun = one.client.ask("enqueue", number, 1)["begun"]
            reports = one.reports.wait_for(number + 1, 60.0)
            if len(reports) <= number:
                raise PeerFailed(f"job {number} was not picked up in 60 s:\n{one.last_words()}")
            waits.append((reports[number][1] - begun) / 1e6)
    waits = sorted(waits[WARM_UP:])
    return {"pick_up_p50": waits[len(waits) // 2], "pick_up_p95": p95(waits)}


def kill(peer: Peer, servers: Servers, size: Size) -> Figures:
    """SIGKILL the worker half way and start another: what is lost, doubled, and how long until everything is done."""
    with running(peer, servers.fresh(peer.server)) as one:
        _fill(one, size.drained)
        with one.worker() as worker:
            one.reports.wait_for(size.killed_after, PATIENCE)
            worker.kill()
        before = len(one.reports.wait_for(0, 0))
        killed = time.monotonic_ns()
        with one.worker():
            started = _until_all_started(one, size.drained)
        counted = Counter(number for number, _ in started)
        last = max(at for _, at in started)
        return {
            "lost": float(size.drained - len(counted)),
            "doubled": float(sum(times - 1 for times in counted.values())),
            "goes_on_after_s": (min((at for _, at in started[before:]), default=killed) - killed) / 1e9,
            "whole_after_s": None if len(counted) < size.drained else (last - killed) / 1e9,
        }


def _until_all_started(one: Running, count: int) -> list[tuple[int, int]]:
    """Wait until every job has started, or nothing has happened for two minutes."""
    seen = one.reports.wait_for(0, 0)
    while missing := count - len({number for number, _ in seen}):
        before = len(seen)
        seen = one.reports.wait_for(before + missing, STUCK_AFTER)
        if len(seen) == before:
            break
    return seen


def _fill(one: Running, count: int) -> None:
    try:
        one.client.ask("enqueue_in_bulk", 0, count)
    except NotOffered:
        one.client.ask("enqueue", 0, count)


QUESTIONS: dict[str, Callable[[Peer, Servers, Size], Figures]] = {
    "enqueue": enqueue, "drain": drain, "pick-up": pick_up, "kill": kill,
}  # fmt: skip
