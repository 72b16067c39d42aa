"""Reading what people upload: tables of delimited text and spreadsheets, a row at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.ingest.archives import ArchiveLimits, look_at_archive, pictures
    from penstock.ingest.detection import Found, detect_type
    from penstock.ingest.limits import TableLimits
    from penstock.ingest.opening import look_at_table, open_table, table_limits
    from penstock.ingest.sources.addresses import source_of
    from penstock.ingest.sources.contract import Source, Waiting
    from penstock.ingest.tables import Row, Table, TableShape
else:
    from penstock.lazy import lazy_names

    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "penstock.ingest.archives": "ArchiveLimits look_at_archive pictures",
            "penstock.ingest.detection": "Found detect_type",
            "penstock.ingest.limits": "TableLimits",
            "penstock.ingest.opening": "look_at_table open_table table_limits",
            "penstock.ingest.sources.addresses": "source_of",
            "penstock.ingest.sources.contract": "Source Waiting",
            "penstock.ingest.tables": "Row Table TableShape",
        },
    )

__all__ = [
    "ArchiveLimits", "Found", "Row", "Source", "Table", "TableLimits", "TableShape", "Waiting", "detect_type",
    "look_at_archive", "look_at_table", "open_table", "pictures", "source_of", "table_limits",
]  # fmt: skip
