"""Indexes that cover some rows of a table."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement


def only_where(condition: ColumnElement[bool]) -> dict[str, Any]:
    """The arguments of an Index that covers the rows of which the condition holds, on each database that can.

    A statement that says the condition in the same words, constants and all, can use it.
    """
    return {"postgresql_where": condition, "sqlite_where": condition}
