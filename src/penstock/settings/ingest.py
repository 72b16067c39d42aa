"""Which files are taken in, and how large they may be."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from pydantic_settings import BaseSettings

from penstock.settings.types import Folders


class IngestSettings(BaseSettings):
    """Which files are taken in, and how large they may be."""

    ingest_max_file_bytes: Annotated[
        int,
        Field(validation_alias="INGEST_MAX_FILE_BYTES", ge=1, description="The largest file taken in as a job."),
    ] = 1024 * 1024 * 1024
    ingest_max_file_rows: Annotated[
        int,
        Field(validation_alias="INGEST_MAX_FILE_ROWS", ge=1, le=2_000_000_000, description="The most rows of a table."),
    ] = 5_000_000
    ingest_max_columns: Annotated[
        int, Field(validation_alias="INGEST_MAX_COLUMNS", ge=1, le=16_384, description="The most columns of a table.")
    ] = 500
    ingest_max_cell_characters: Annotated[
        int,
        Field(
            validation_alias="INGEST_MAX_CELL_CHARACTERS",
            ge=1,
            le=1_000_000,
            description="The longest cell of a table; a row with a longer one ends in an error.",
        ),
    ] = 32_767
    ingest_max_decompressed_bytes: Annotated[
        int,
        Field(
            validation_alias="INGEST_MAX_DECOMPRESSED_BYTES",
            ge=1,
            description="The most bytes an uploaded XLSX or ZIP may unfold to.",
        ),
    ] = 2 * 1024**3
    ingest_look_seconds: Annotated[
        float,
        Field(
            validation_alias="PENSTOCK_INGEST_LOOK_SECONDS",
            gt=0,
            description="The longest a look at an upload may take; its process is killed then, and the file refused.",
        ),
    ] = 60.0
    ingest_read_seconds: Annotated[
        float,
        Field(
            validation_alias="PENSTOCK_INGEST_READ_SECONDS",
            gt=0,
            description="The longest it may take to read the next rows of a table, or the next picture of an archive.",
        ),
    ] = 300.0
    ingest_memory_bytes: Annotated[
        int,
        Field(
            validation_alias="PENSTOCK_INGEST_MEMORY_BYTES",
            ge=64 * 1024**2,
            description="The most memory of the process that looks at a file, or reads its rows.",
        ),
    ] = 1024**3
    ingest_scan_files: Annotated[
        int,
        Field(
            validation_alias="PENSTOCK_INGEST_SCAN_FILES",
            ge=1,
            description="The most files that one request takes in from a source; the others wait for the next one.",
        ),
    ] = 1_000
    ingest_roots: Annotated[
        Folders,
        Field(
            validation_alias="PENSTOCK_INGEST_ROOTS",
            description="Folders below which files may be taken in by path, separated by ':'; none unless set.",
        ),
    ] = ()
    ingest_settle_seconds: Annotated[
        float,
        Field(
            validation_alias="PENSTOCK_INGEST_SETTLE_SECONDS",
            ge=0,
            description="A file that changed less long ago than this may still be written to, and is left alone.",
        ),
    ] = 2.0
    db_ingest_enabled: Annotated[
        bool,
        Field(
            validation_alias="DB_INGEST_ENABLED",
            description="Whether uploads are taken in; without, everything else goes on.",
        ),
    ] = True
