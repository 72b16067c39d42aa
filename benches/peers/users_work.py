"""One user's work of many units, as each peer's documentation says to do it: done, canceled, and cut off by a kill."""

from __future__ import annotations

import time
from collections import Counter

from benches.peers.driving import NotOffered, PeerFailed, Running, running
from benches.peers.roster import Peer
from benches.peers.servers import Servers
from benches.peers.size import Figures, Size

READ_EVERY = 0.25
SILENCE = 3.0


def work(peer: Peer, servers: Servers, size: Size) -> Figures:
    """Units a second, from before the submit until a reading of the progress says that all have ended.

    Somebody reads the progress four times a second meanwhile; the cost of a reading is what they wait for it. A peer
    that is not done when its time is up is counted by the progress it has made.
    """
    units = size.units_of_the_slow if peer.slow else size.units
    with running(peer, servers.fresh(peer.server)) as one, one.worker():
        begun = one.client.ask("begin", 0, units)["begun"]
        readings = []
        done, read_at = 0, begun
        while done < units and read_at - begun < size.work_seconds * 1e9:
            time.sleep(READ_EVERY)
            reading = one.client.ask("progress")
            readings.append((reading["ended"] - reading["begun"]) / 1e6)
            done, read_at = reading["answer"], reading["begun"]
        if not done:
            raise PeerFailed(f"no progress in {size.work_seconds:g} s:\n{one.last_words()}")
        return {
            "units_of": float(units),
            "units": done / (read_at - begun) * 1e9,
            "progress_p50": sorted(readings)[len(readings) // 2],
            "progress_worst": max(readings),
            "units_left": float(units - done),
        }


def cancel(peer: Peer, servers: Servers, size: Size) -> Figures:
    """Milliseconds from the request to the start of the last unit, and how many started meanwhile."""
    with running(peer, servers.fresh(peer.server)) as one, one.worker():
        one.client.ask("begin", 0, size.canceled)
        before = len(one.reports.wait_for(size.canceled // 10, size.patience))
        try:
            asked = one.client.ask("cancel")["begun"]
        except NotOffered:
            return {"cancel_ms": None, "cancel_started": None}
        while len(seen := one.reports.wait_for(before + 1, SILENCE)) > before:
            before = len(seen)
        after = [at for _, at in seen if at > asked]
        return {"cancel_ms": (max(after, default=asked) - asked) / 1e6, "cancel_started": float(len(after))}


def kill(peer: Peer, servers: Servers, size: Size) -> Figures:
    """SIGKILL the worker when a quarter has started, and start another at once, as a supervisor would."""
    with running(peer, servers.fresh(peer.server)) as one:
        one.client.ask("begin", 0, size.killed)
        with one.worker() as worker:
            one.reports.wait_for(size.killed // 4, size.patience)
            worker.kill()
        before = len(one.reports.wait_for(0, 0))
        killed = time.monotonic_ns()
        with one.worker():
            done, done_at = _until_whole(one, size)
        started = one.reports.wait_for(0, 0)
        times = Counter(number for number, _ in started)
        return {
            "unfinished": float(size.killed - done),
            "doubled": float(sum(count - 1 for count in times.values())),
            "goes_on_after_s": (min((at for _, at in started[before:]), default=killed) - killed) / 1e9,
            "whole_after_s": (done_at - killed) / 1e9 if done == size.killed else None,
        }


def _until_whole(one: Running, size: Size) -> tuple[int, int]:
    """How many units have ended by the peer's own word, and when: all of them, or no more for a while."""
    most, most_at = -1, time.monotonic_ns()
    while True:
        reading = one.client.ask("progress")
        if reading["answer"] > most:
            most, most_at = reading["answer"], reading["begun"]
        if most >= size.killed or reading["begun"] - most_at > size.silence * 1e9:
            return most, most_at
        time.sleep(READ_EVERY)
