"""A lane's claims, and the statements they send."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from sqlalchemy import event

from penstock.operations.claim import Claim, claim
from penstock.operations.watermarks import look
from penstock.store.engine import Store
from penstock.testing.drive import LEASE, Workbench, unhurried_marks

KIND = "single"


class Hand:
    """A lane's claims, with the marks it keeps."""

    def __init__(self, bench: Workbench) -> None:
        self.bench = bench
        self.marks = unhurried_marks()

    def claim(self, size: int = 10) -> Claim:
        return claim(self.bench.store, KIND, "w1", size=size, lease_seconds=LEASE, marks=self.marks)

    def serve(self, size: int = 10) -> set[UUID]:
        """The jobs a claim serves."""
        return {one.job_id for one in self.claim(size).items}

    def move_on(self) -> None:
        """Serve what comes, let time pass and look: the marks are then as high as they may be."""
        for _ in range(3):
            self.bench.submit(KIND)
            assert self.serve()
            self.bench.clock.advance(5)
            look(self.bench.store, KIND, self.marks)


@contextmanager
def sent_to(store: Store) -> Iterator[list[tuple[str, object]]]:
    """The statements sent meanwhile, with their parameters."""
    sent: list[tuple[str, object]] = []

    def note(_connection: object, _cursor: object, statement: str, parameters: object, *_: object) -> None:
        sent.append((statement, parameters))

    event.listen(store.engine, "before_cursor_execute", note)
    yield sent
    event.remove(store.engine, "before_cursor_execute", note)
