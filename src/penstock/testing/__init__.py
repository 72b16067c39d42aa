"""What our tests and yours need to try Penstock out: a public package that nothing in the library imports."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.testing.drive import Workbench
    from penstock.testing.fault_points import StoppedDead, count_points, fail_at, stop_dead_at
    from penstock.testing.invariants import violations
    from penstock.testing.postgres import PostgresServer, private_postgres
else:
    from penstock.lazy import lazy_names

    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "penstock.testing.drive": "Workbench",
            "penstock.testing.fault_points": "StoppedDead count_points fail_at stop_dead_at",
            "penstock.testing.invariants": "violations",
            "penstock.testing.postgres": "PostgresServer private_postgres",
        },
    )

__all__ = [
    "PostgresServer", "StoppedDead", "Workbench", "count_points", "fail_at", "private_postgres",
    "stop_dead_at", "violations",
]  # fmt: skip
