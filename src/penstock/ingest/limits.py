"""The bounds on an uploaded table, in one place so that every format keeps to the same ones."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TableLimits:
    """How large an uploaded table may be; each bound has its own error code."""

    rows: int = 5_000_000
    """More raise TOO_MANY_ROWS while the rows are read."""

    columns: int = 500
    """A wider header raises TOO_MANY_COLUMNS before any row is read."""

    cell_characters: int = 32_767
    """A longer cell makes its row bad (CELL_TOO_LONG), not the file. A spreadsheet cell holds no more than this."""

    decompressed_bytes: int = 2 * 1024**3
    """A compressed file that unpacks to more raises DECOMPRESSED_TOO_LARGE."""
