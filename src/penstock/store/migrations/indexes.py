"""Indexes on tables that are in service, for revisions.

A revision has an ``upgrade`` function, which runs in one transaction, or ``indexes``, which are built one after the
other without one: PostgreSQL then lets everybody go on writing while it builds (CREATE INDEX CONCURRENTLY). Each of
them is built only if it is not there yet, so a revision that was interrupted is simply run again. One with both has its
indexes built first, so that ``upgrade`` can drop those they replace; they must not need what it adds.

::

    revision = "0042"
    down_revision = "0041"
    indexes = (NewIndex("ix_jobs_kind_state", "jobs", ("kind", "state"), where="state = 'queued'"),)
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NewIndex:
    """An index to be built on a table that is in service."""

    name: str
    table: str
    columns: tuple[str, ...]
    """Names of columns, or expressions in parentheses as SQL has them."""
    unique: bool = False
    where: str | None = None
