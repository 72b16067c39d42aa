"""Where files wait to be ingested: a folder, an S3 bucket, an FTP server."""

from __future__ import annotations

from penstock.ingest.sources.addresses import source_of
from penstock.ingest.sources.contract import Readable, Source, Waiting

__all__ = ["Readable", "Source", "Waiting", "source_of"]
