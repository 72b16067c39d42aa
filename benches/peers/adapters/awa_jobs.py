"""Awa in its queue storage: a Rust core; a job that is done leaves a receipt, what its handler gave is not kept."""

from __future__ import annotations

import asyncio
import signal
from dataclasses import dataclass

import awa

from benches.peers.adapters.speaking import NotOffered, report, speak

WORKERS = 500
QUEUE = "noop"
NEXT = """
SELECT awa.reserve_enqueue_seq(queue, priority, enqueue_shard, $2) AS first, nextval('awa.job_id_seq') AS job
FROM awa.queue_enqueue_heads WHERE queue = $1
"""
IDS_USED = "SELECT setval('awa.job_id_seq', $1)"
ENTRIES = """
INSERT INTO awa.ready_entries
    (ready_slot, ready_generation, job_id, kind, queue, args, priority, max_attempts, lane_seq, enqueue_shard, run_at)
SELECT ring.current_slot, ring.generation, $3 + n, 'noop', queue, jsonb_build_object('number', $4 + n), priority, 25,
    $2 + n, enqueue_shard, now()
FROM awa.queue_enqueue_heads, awa.queue_ring_state AS ring, generate_series(0, $5 - 1) AS n
WHERE queue = $1
"""
SEGMENT = """
INSERT INTO awa.ready_segments
    (ready_slot, ready_generation, queue, priority, enqueue_shard, first_lane_seq, next_lane_seq, first_run_at)
SELECT ring.current_slot, ring.generation, queue, priority, enqueue_shard, $2, $2 + $3, now()
FROM awa.queue_enqueue_heads, awa.queue_ring_state AS ring
WHERE queue = $1
"""
CLAIM = "SELECT lane_seq FROM awa.claim_ready_runtime($1, $2, 300.0, 60.0)"
MOVE_ON = "SELECT awa.set_sequence_next(seq_name, $2) FROM awa.queue_claim_heads WHERE queue = $1"


@dataclass
class Noop:
    """What a job is about."""

    number: int


class Client:
    """Who enqueues and asks."""

    def __init__(self, url: str) -> None:
        self._awa = awa.Client(url)
        self._begun = 0

    def prepare(self, _: range) -> None:
        self._awa.migrate()
        self._awa.install_queue_storage()

    def enqueue(self, numbers: range) -> None:
        for number in numbers:
            self._awa.insert(Noop(number), queue=QUEUE)

    def enqueue_in_bulk(self, numbers: range) -> None:
        self._awa.enqueue_many_copy([Noop(number) for number in numbers], queue=QUEUE)

    def left(self, _: range) -> int:
        """What waits and what Awa says is running; it does not count a job that was only just claimed."""
        return sum(
            one.scheduled + one.available + one.retryable + one.running + one.waiting_external
            for one in self._awa.queue_stats()
        )

    def begin(self, numbers: range) -> None:
        """There are no groups: what is read and canceled as a whole is a queue, so the user's work has its own."""
        self._begun = len(numbers)
        self.enqueue_in_bulk(numbers)

    def progress(self, _: range) -> int:
        return self._begun - self.left(_)

    def cancel(self, _: range) -> None:
        """Paused first: while it is drained, which takes seconds, the workers would go on."""
        self._awa.pause_queue(QUEUE)
        self._awa.drain_queue(QUEUE)
        self._awa.resume_queue(QUEUE)

    def grow(self, numbers: range) -> None:
        """Rows as ``insert`` writes them, and the one segment that says where they lie; the first makes the queue."""
        self._awa.insert(Noop(numbers[0]), queue=QUEUE)
        count = len(numbers) - 1
        with self._awa.transaction() as transaction:
            one = transaction.fetch_one(NEXT, QUEUE, count)
            transaction.fetch_one(IDS_USED, one["job"] + count)
            transaction.execute(ENTRIES, QUEUE, one["first"], one["job"], numbers[1], count)
            transaction.execute(SEGMENT, QUEUE, one["first"], count)

    def claim(self, numbers: range) -> int:
        """The worker's function, and then, as the worker does, its cursor is moved in a transaction of its own."""
        with self._awa.transaction() as transaction:
            taken = transaction.fetch_all(CLAIM, QUEUE, len(numbers))
        with self._awa.transaction() as transaction:
            transaction.execute(MOVE_ON, QUEUE, taken[-1]["lane_seq"] + 1)
        return len(taken)

    def page(self, numbers: range) -> int:
        if numbers.start:
            raise NotOffered("list_jobs takes a limit, but neither an offset nor where to go on from")
        return len(self._awa.list_jobs(queue=QUEUE, limit=len(numbers)))


def work(url: str) -> None:
    asyncio.run(_work(url))


async def _work(url: str) -> None:
    client = awa.AsyncClient(url)

    @client.task(Noop, queue=QUEUE)
    async def noop(job: awa.Job[Noop]) -> None:
        report(job.args.number)

    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    await client.start([(QUEUE, WORKERS)])
    await stopped.wait()
    await client.shutdown()
    await client.close()


if __name__ == "__main__":
    speak(Client, work)
