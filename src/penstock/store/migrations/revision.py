"""A revision that is written in a program, where a folder of files would be too much."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Revision:
    """One step of a schema: its name, which sorts behind those before it, and what it does with Alembic's ``op``."""

    revision: str
    upgrade: Callable[[], None]
