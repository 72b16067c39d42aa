"""The bare minimum in a process of its own: LISTEN, claim by one UPDATE … RETURNING, print when that has committed.

``python -m benches.pick_up_peer URL``; ends when its stdin does.
"""

from __future__ import annotations

import sys
import threading
import time

import psycopg
from uuid_utils.compat import uuid7

from benches.databases import plain
from benches.workload import LEASE_SECONDS, WORKER

CHANNEL = "bench"
CLAIM = """
UPDATE job_items SET status = 'PROCESSING', attempts = attempts + 1, lease = %b, locked_by = %b, locked_at = now(),
    lock_expires_at = now() + %b * interval '1 second', updated_at = now()
WHERE id = (SELECT id FROM job_items WHERE status = 'PENDING' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING id, job_id, position, attempts, input_json
"""


def main(url: str) -> None:
    """Listen until stdin ends."""
    ended = threading.Event()

    def wait_for_end() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    with psycopg.connect(plain(url), autocommit=True) as link:
        link.execute(f"LISTEN {CHANNEL}".encode())
        print("ready", flush=True)
        while not ended.is_set():
            if list(link.notifies(timeout=0.5, stop_after=1)):
                rows = link.execute(CLAIM, (uuid7(), WORKER, LEASE_SECONDS), prepare=True).fetchall()
                now = time.monotonic_ns()
                assert rows
                print(now, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
