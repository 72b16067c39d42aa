"""What is asked of every peer: how fast jobs go in, through, and how soon they are picked up."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from benches.peers.driving import NotOffered, PeerFailed, Running, running
from benches.peers.growth import growth
from benches.peers.roster import Peer
from benches.peers.servers import Servers
from benches.peers.size import Figures, Size
from benches.peers.users_work import cancel, kill, work
from benches.report import p95

REST_SECONDS = (0.02, 0.05)
WARM_UP = 20


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
            reports = one.reports.wait_for(size.drained, size.patience)
            if len(reports) < size.drained:
                raise PeerFailed(f"{len(reports)} of {size.drained} jobs started:\n{one.last_words()}")
            ended = one.wait_until_nothing_is_left(size.patience)
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


def _fill(one: Running, count: int) -> None:
    try:
        one.client.ask("enqueue_in_bulk", 0, count)
    except NotOffered:
        one.client.ask("enqueue", 0, count)


QUESTIONS: dict[str, Callable[[Peer, Servers, Size], Figures]] = {
    "enqueue": enqueue, "drain": drain, "pick-up": pick_up, "work": work, "cancel": cancel, "kill": kill,
    "growth": growth,
}  # fmt: skip
