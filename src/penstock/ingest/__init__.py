"""Reading what people send: what a file is, its text, tables a row at a time, archives and sources; within bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.ingest.archives import ArchiveLimits, look_at_archive, pictures
    from penstock.ingest.detection import FileType, detect_type
    from penstock.ingest.limits import TableLimits
    from penstock.ingest.signatures import OLE, ZIP, is_image, known_signature
    from penstock.ingest.sources.addresses import source_of
    from penstock.ingest.sources.contract import Source, Waiting
    from penstock.ingest.sources.owners import require_known_places
    from penstock.ingest.sources.settings import SourceSettings
    from penstock.ingest.table_files import SeenFile, archive_limits, look_at_file, open_table, table_limits
    from penstock.ingest.tables import NO_DELIMITER, Row, Table, TableShape
    from penstock.ingest.text import DecodedText, byte_order_mark, declarable_encoding, decode_text, guess_utf_16
    from penstock.ingest.zip_files import ZipLimits, ZipProblem, ZipRefused, check_zip, open_zip, read_member
    from penstock.lifecycle.intake import HandedFile, Intake, RefusedFile, Sender, TakenFiles, UploadOptions
else:
    from penstock.lazy import lazy_names

    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "penstock.ingest.archives": "ArchiveLimits look_at_archive pictures",
            "penstock.ingest.detection": "FileType detect_type",
            "penstock.ingest.limits": "TableLimits",
            "penstock.ingest.table_files": "SeenFile archive_limits look_at_file open_table table_limits",
            "penstock.ingest.signatures": "OLE ZIP is_image known_signature",
            "penstock.ingest.sources.addresses": "source_of",
            "penstock.ingest.sources.contract": "Source Waiting",
            "penstock.ingest.sources.owners": "require_known_places",
            "penstock.ingest.sources.settings": "SourceSettings",
            "penstock.ingest.tables": "NO_DELIMITER Row Table TableShape",
            "penstock.ingest.text": "DecodedText byte_order_mark declarable_encoding decode_text guess_utf_16",
            "penstock.ingest.zip_files": "ZipLimits ZipProblem ZipRefused check_zip open_zip read_member",
            "penstock.lifecycle.intake": "HandedFile Intake RefusedFile Sender TakenFiles UploadOptions",
        },
    )

__all__ = [
    "ArchiveLimits", "DecodedText", "FileType", "HandedFile", "Intake", "NO_DELIMITER", "OLE", "RefusedFile", "Row",
    "SeenFile", "Sender", "Source", "SourceSettings", "Table", "TableLimits", "TableShape", "TakenFiles",
    "UploadOptions", "Waiting", "ZIP", "ZipLimits", "ZipProblem", "ZipRefused", "archive_limits", "byte_order_mark",
    "check_zip", "declarable_encoding", "decode_text", "detect_type", "guess_utf_16", "is_image", "known_signature",
    "look_at_archive", "look_at_file", "open_table", "open_zip", "pictures", "read_member",
    "require_known_places", "source_of", "table_limits",
]  # fmt: skip
