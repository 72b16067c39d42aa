"""Tables out: rows as CSV text or as a workbook, however many, in the same memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.exports.csv_text import csv_chunks
    from penstock.exports.workbook import workbook_chunks
else:
    from penstock.lazy import lazy_names

    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "penstock.exports.csv_text": "csv_chunks",
            "penstock.exports.workbook": "workbook_chunks",
        },
    )

__all__ = [
    "csv_chunks", "workbook_chunks",
]  # fmt: skip
