"""How an adapter speaks with the bench; the standard library alone, because it runs in each peer's own environment.

An adapter is a module with a class ``Client`` and a function ``work``, and ends with ``speak(Client, work)``. It is run
as a program in two ways:

``python -m benches.peers.adapters.NAME client URL``
    reads one command a line, ``name FIRST COUNT``, calls the client's method of that name with the range of numbers,
    and answers one line of JSON: when it began and ended by CLOCK_MONOTONIC, and what it answered. The methods:

    ``prepare``             make the tables
    ``enqueue``             one job for each number, one call after the other
    ``enqueue_in_bulk``     the same by the peer's own way of adding many
    ``left``                how many jobs are not at their end
    ``begin``               one user's work: a unit for each number, so that its progress can be read and it can be
                            canceled as a whole
    ``progress``            how many of its units have ended
    ``cancel``              ask that no more of its units start
    ``grow``                so many more units wait, by whatever is fastest
    ``claim``               take as many units as there are numbers, by the peer's own statement
    ``page``                read as many jobs as there are numbers, beginning at about the first of them

    A method raises ``NotOffered`` where the peer has no such thing.

``python -m benches.peers.adapters.NAME work URL``
    runs a worker until it is told to stop by SIGTERM. Its handler calls ``report(number)`` and nothing else: sixteen
    bytes into a pipe the bench reads, with the job's number and the time. Writes of that size are never torn.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import time
import traceback
from collections.abc import Callable
from functools import cache
from typing import Any

REPORTS = "PENSTOCK_BENCH_REPORTS"
"""The environment variable that names the pipe."""

RESULT = {"text": "r" * 189}
"""What every handler answers: 200 bytes of JSON, as in our other benches."""

RECORD = struct.Struct("<qq")


class NotOffered(Exception):
    """The peer has no such thing; the text says what its documentation offers instead."""


def report(number: int) -> None:
    """Tell the bench that the job with this number has started."""
    os.write(_pipe(os.getpid()), RECORD.pack(number, time.monotonic_ns()))


@cache
def _pipe(_process: int) -> int:
    """Opened once by each process: a worker's children are forked before they report."""
    return os.open(os.environ[REPORTS], os.O_WRONLY)


def speak(client: Callable[[str], Any], work: Callable[[str], None]) -> None:
    """Be what the command line asks for."""
    role, url = sys.argv[1:3]
    if role == "work":
        work(url)
        return
    answering = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever the peer prints is for people
    one = client(url)
    print(json.dumps({"answer": "ready"}), file=answering)
    for line in sys.stdin:
        name, first, count = line.split()
        print(json.dumps(_answer(getattr(one, name), range(int(first), int(first) + int(count)))), file=answering)


def _answer(method: Callable[[range], Any], numbers: range) -> dict[str, Any]:
    begun = time.monotonic_ns()
    try:
        answer = method(numbers)
    except NotOffered as error:
        return {"not_offered": str(error)}
    except Exception:  # noqa: BLE001 - the bench shows it; the other peers are still worth asking
        return {"failed": traceback.format_exc()}
    return {"begun": begun, "ended": time.monotonic_ns(), "answer": answer}
