"""A program that meets a real fault of its disk: ``python -m tests.sqlite.trouble WHAT DATABASE``.

It submits until that fails, with a worker or without, says the code, lets the cause go away, and goes on. At its end
every job that was accepted has been done, and the file is whole; else it ends with an error.
"""

from __future__ import annotations

import resource
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing, nullcontext
from pathlib import Path
from uuid import UUID

from penstock import Penstock, load_settings
from penstock.errors import StoreUnavailable

CHUNK = b"\0" * 4096
Undo = Callable[[], None]


def fill_the_disk(path: Path) -> Undo:
    """Nobody can write a byte more to the file system."""
    filler = path.with_name("filler")
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(CHUNK):
                pass
        except OSError:
            pass
    return filler.unlink


def limit_the_files(path: Path) -> Undo:
    """No file can grow: SQLite's writes fail with EFBIG, which it calls an I/O error."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.with_name(f"{path.name}-wal").stat().st_size, before[1]))
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, before)


FAULTS = {"full": fill_the_disk, "io": limit_the_files}


def submit_until_it_fails(app: Penstock, accepted: list[UUID]) -> str:
    """With which code it did."""
    for _ in range(10_000):
        try:
            accepted.append(app.submit("noop", "x" * 500).job.id)
        except StoreUnavailable as error:
            return error.code
    return "never"


def main(what: str, path: Path, *, with_worker: bool) -> None:
    """Meet the fault, and come out of it."""
    app = Penstock(settings=load_settings(database_url=f"sqlite:///{path}", heartbeat_seconds=1.0))
    app.kind("noop")(lambda item: None)
    accepted = [app.submit("noop").job.id for _ in range(3)]
    with app.working() if with_worker else nullcontext():
        undo = FAULTS[what](path)
        codes = {submit_until_it_fails(app, accepted) for _ in range(5)}
        undo()
        print(*codes)
        accepted.append(app.submit("noop").job.id)
        if not with_worker:
            app.drain()
        states = {app.jobs.wait(one, timeout=90).state.value for one in accepted}
    assert states == {"succeeded"}, states
    assert len(app.jobs.list(limit=1)) == 1
    app.close()
    with closing(sqlite3.connect(path)) as link:
        assert link.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert link.execute("SELECT count(*) FROM jobs").fetchone() == (len(accepted),)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), with_worker=sys.argv[3] == "worker")
