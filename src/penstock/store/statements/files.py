"""The records of uploaded files; their bytes are on disk."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Insert, Select, String, bindparam, insert, select

from penstock.lifecycle.callers import Visibility
from penstock.store.dialects.contract import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.statements.visibility import visible_to
from penstock.store.tables import files
from penstock.store.types import Identifier


@built_once
def insert_file(dialect: Dialect) -> Insert:
    """Record a file whose bytes are already kept."""
    source = select(
        bindparam("the_file_id", type_=Identifier),
        bindparam("the_user_id", type_=String),
        bindparam("the_name", type_=String),
        bindparam("the_media_type", type_=String),
        bindparam("the_size_bytes", type_=BigInteger),
        bindparam("the_sha256", type_=String),
        dialect.now(),
    )
    columns = ["id", "user_id", "name", "media_type", "size_bytes", "sha256", "created_at"]
    return insert(files).from_select(columns, source)


@built_once
def file_by_id(dialect: Dialect, sight: Visibility) -> Select[Any]:
    """One file's record, if the caller may see it."""
    named = files.c.id == bindparam("the_file_id", type_=Identifier)
    return select(*files.c).where(named, visible_to(sight, files.c.user_id))
