"""The records of uploaded files; their bytes are on disk."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import BigInteger, Insert, Select, String, bindparam, insert, select

from penstock.lifecycle.callers import Caller, Visibility
from penstock.store.dialects.dialect import Dialect
from penstock.store.queries.built_once import built_once
from penstock.store.queries.visibility import visible_to
from penstock.store.tables import files
from penstock.store.transaction import Transaction
from penstock.store.types import Identifier


class NewFile(NamedTuple):
    """A file whose bytes are kept already."""

    id: UUID
    user_id: str | None
    name: str
    media_type: str | None
    size_bytes: int
    sha256: str


class FileRow(NamedTuple):
    """A file's record."""

    id: UUID
    user_id: str | None
    name: str
    media_type: str | None
    size_bytes: int
    sha256: str
    created_at: datetime


def insert_file(transaction: Transaction, new: NewFile) -> datetime:
    """Record a file whose bytes are already kept; the answer is when."""
    [created_at] = transaction.values(datetime, _insert_file(transaction.dialect), new._asdict())
    return created_at


@built_once
def _insert_file(dialect: Dialect) -> Insert:
    source = select(
        bindparam("id", type_=Identifier),
        bindparam("user_id", type_=String),
        bindparam("name", type_=String),
        bindparam("media_type", type_=String),
        bindparam("size_bytes", type_=BigInteger),
        bindparam("sha256", type_=String),
        dialect.now(),
    )
    return insert(files).from_select([*NewFile._fields, "created_at"], source).returning(files.c.created_at)


def hold_file(transaction: Transaction, file_id: UUID) -> bool:
    """Is the file's record there? It stays until this transaction ends."""
    return bool(transaction.values(UUID, _hold_file(transaction.dialect), {"file_id": file_id}))


@built_once
def _hold_file(_: Dialect) -> Select[Any]:
    is_meant = files.c.id == bindparam("file_id", type_=Identifier)
    return select(files.c.id).where(is_meant).with_for_update(read=True, key_share=True)


def file_by_id(transaction: Transaction, file_id: UUID, caller: Caller) -> FileRow | None:
    """One file's record, if the caller may see it."""
    parameters = {"file_id": file_id, "caller_id": caller.id}
    return transaction.fetch_one(FileRow, _file_by_id(transaction.dialect, caller.sight), parameters)


@built_once
def _file_by_id(_: Dialect, sight: Visibility) -> Select[Any]:
    is_meant = files.c.id == bindparam("file_id", type_=Identifier)
    return select(*(files.c[name] for name in FileRow._fields)).where(is_meant, visible_to(sight, files.c.user_id))
