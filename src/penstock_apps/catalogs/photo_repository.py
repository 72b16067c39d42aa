"""What is kept of the photos of catalogs, and of those that could not be read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import TypeVar
from uuid import UUID

from sqlalchemy import Connection, Table, and_, bindparam, delete, func, insert, select, update

from penstock import Penstock
from penstock.errors import FileNotFound
from penstock.lifecycle import JSON, storable_text
from penstock_apps.catalogs.payloads import PhotoFacts
from penstock_apps.catalogs.photo_paths import path_bytes, path_key
from penstock_apps.catalogs.repository import AnyRow
from penstock_apps.catalogs.tables import photos, unreadable_photos

_BATCH_SIZE = 500
Entry = TypeVar("Entry")
Answer = TypeVar("Answer")
Guard = Callable[[Connection], None]
"""Called first in each transaction that writes; it raises where the job behind it may write no more."""


@dataclass(frozen=True, slots=True)
class PhotoRecord:
    """A photo as the last scan found it, with what was found out since."""

    key: str
    """What it is called in its catalog."""
    path: str
    size: int
    modified: int
    sha256: str
    perceptual_hash: int
    facts: PhotoFacts
    tags: list[str] | None
    group_id: str | None
    """The best copy's SHA-256, of photos that have copies."""


@dataclass(frozen=True, slots=True)
class UnreadablePhoto:
    """A photo that the last scan could not read, and why."""

    path: str
    error_code: str | None
    error: str | None


class PhotoRepository:
    """The photos of the catalogs of one Penstock's database."""

    def __init__(self, app: Penstock) -> None:
        self._app = app

    def all(self, catalog_id: UUID, *, after: str = "") -> Iterator[PhotoRecord]:
        """All photos of a catalog behind a key, in the order of their keys, a page at a time."""
        while page := self.page(catalog_id, after=after, limit=_BATCH_SIZE):
            yield from page
            after = page[-1].key

    def page(self, catalog_id: UUID, *, after: str, limit: int) -> Sequence[PhotoRecord]:
        """Some photos of a catalog, in the order of their keys."""
        return [_photo(row) for row in self._page(photos, catalog_id, after, limit)]

    def get(self, catalog_id: UUID, key: str) -> PhotoRecord:
        """One photo of a catalog."""
        query = select(photos).where(photos.c.catalog_id == catalog_id, photos.c.path_sha256 == key)
        row = self._app.in_transaction(lambda connection: connection.execute(query).one_or_none(), reads=True)
        if row is None:
            raise FileNotFound(f"there is no photo {key} in this catalog", code="PHOTO_NOT_FOUND")
        return _photo(row)

    def unreadable(self, catalog_id: UUID, *, after: str, limit: int) -> Sequence[UnreadablePhoto]:
        """Some photos that the last scan could not read, in the order of their keys."""
        return [
            UnreadablePhoto(_path(row), row.error_code, row.error)
            for row in self._page(unreadable_photos, catalog_id, after, limit)
        ]

    def unreadable_in(self, catalog_id: UUID, scan_id: UUID) -> set[str]:
        """The keys of the photos that a scan could not read, of all its parts."""
        table = unreadable_photos
        query = select(table.c.path_sha256).where(table.c.catalog_id == catalog_id, table.c.scan_id == scan_id)
        return set(self._app.in_transaction(lambda connection: connection.execute(query).scalars().all(), reads=True))

    def count(self, connection: Connection, catalog_id: UUID) -> tuple[int, int]:
        """How many photos there are, and how many more could not be read."""
        counts = (
            connection.execute(select(func.count()).select_from(table).where(table.c.catalog_id == catalog_id))
            for table in (photos, unreadable_photos)
        )
        readable, unreadable = (int(result.scalar_one()) for result in counts)
        return readable, unreadable

    def save(self, catalog_id: UUID, facts: Iterable[tuple[str, Mapping[str, JSON]]], guard: Guard) -> int:
        """Keep what a scan found of photos, by their paths.

        Of a photo whose bytes are the same, tags and copies are known already; of another they are to be found anew.
        """

        def replace(connection: Connection, batch: Sequence[tuple[str, Mapping[str, JSON]]]) -> int:
            by_key = {path_key(path): (path, photo_facts) for path, photo_facts in batch}
            rows_before = _rows_of(connection, catalog_id, list(by_key))
            for table in (photos, unreadable_photos):
                _forget(connection, table, catalog_id, list(by_key))
            rows = [_row(catalog_id, key, *entry, rows_before.get(key)) for key, entry in by_key.items()]
            connection.execute(insert(photos), rows)
            return len(rows)

        return sum(self._write(batch, replace, guard) for batch in _in_batches(facts))

    def save_unreadable(
        self, catalog_id: UUID, scan_id: UUID, failures: Iterable[tuple[UnreadablePhoto, bool]], guard: Guard
    ) -> None:
        """Keep which photos a scan could not read; of those where that is final, what was known of them is over."""

        def replace(connection: Connection, batch: Sequence[tuple[UnreadablePhoto, bool]]) -> None:
            by_key = {path_key(photo.path): (photo, is_final) for photo, is_final in batch}
            _forget(connection, unreadable_photos, catalog_id, list(by_key))
            _forget(connection, photos, catalog_id, [key for key, (_, is_final) in by_key.items() if is_final])
            rows = [
                {
                    "catalog_id": catalog_id,
                    "path_sha256": key,
                    **_path_columns(photo.path),
                    "error_code": photo.error_code,
                    "error": photo.error,
                    "scan_id": scan_id,
                    "updated_at": datetime.now(UTC),
                }
                for key, (photo, _) in by_key.items()
            ]
            connection.execute(insert(unreadable_photos), rows)

        for batch in _in_batches(failures):
            self._write(batch, replace, guard)

    def forget_unreadable_but(self, catalog_id: UUID, scan_id: UUID, guard: Guard) -> None:
        """Forget what earlier scans could not read: this one has looked at everything."""
        table = unreadable_photos
        statement = delete(table).where(table.c.catalog_id == catalog_id, table.c.scan_id != scan_id)
        self._write((), lambda connection, _: connection.execute(statement), guard)

    def remove(self, catalog_id: UUID, paths: Iterable[str], guard: Guard) -> int:
        """Forget photos that are not there any more."""

        def forget(connection: Connection, batch: Sequence[str]) -> int:
            _forget(connection, photos, catalog_id, [path_key(path) for path in batch])
            return len(batch)

        return sum(self._write(batch, forget, guard) for batch in _in_batches(paths))

    def tag(self, catalog_id: UUID, tags: Iterable[tuple[str, str, list[str]]], guard: Guard) -> None:
        """Keep the tags of photos, by their paths and the SHA-256 of the bytes that were looked at."""
        statement = (
            update(photos)
            .where(
                photos.c.catalog_id == catalog_id,
                photos.c.path_sha256 == bindparam("the_key"),
                photos.c.sha256 == bindparam("the_content"),
            )
            .values(tags=bindparam("the_tags", type_=photos.c.tags.type))
        )

        def update_tags(connection: Connection, batch: Sequence[tuple[str, str, list[str]]]) -> None:
            rows = [
                {"the_key": path_key(path), "the_content": sha256, "the_tags": words} for path, sha256, words in batch
            ]
            connection.execute(statement, rows)

        for batch in _in_batches(tags):
            self._write(batch, update_tags, guard)

    def group(self, catalog_id: UUID, groups: Mapping[str, str | None], guard: Guard) -> None:
        """Keep which group of copies photos are in, by their keys: all of them at once, or none."""
        statement = (
            update(photos)
            .where(photos.c.catalog_id == catalog_id, photos.c.path_sha256 == bindparam("the_key"))
            .values(group_id=bindparam("the_group", type_=photos.c.group_id.type))
        )
        rows = [{"the_key": key, "the_group": group} for key, group in sorted(groups.items())]

        def regroup(connection: Connection, _: Sequence[str]) -> None:
            for batch in _in_batches(rows):
                connection.execute(statement, batch)

        self._write((), regroup, guard)

    def _write(
        self, batch: Sequence[Entry], change: Callable[[Connection, Sequence[Entry]], Answer], guard: Guard
    ) -> Answer:
        def operation(connection: Connection) -> Answer:
            guard(connection)
            return change(connection, batch)

        return self._app.in_transaction(operation)

    def _page(self, table: Table, catalog_id: UUID, after: str, limit: int) -> Sequence[AnyRow]:
        query = (
            select(table)
            .where(table.c.catalog_id == catalog_id, table.c.path_sha256 > after)
            .order_by(table.c.path_sha256)
            .limit(limit)
        )
        return self._app.in_transaction(lambda connection: connection.execute(query).all(), reads=True)


def _rows_of(connection: Connection, catalog_id: UUID, keys: Sequence[str]) -> dict[str, AnyRow]:
    """What tags and groups are known of photos, by their keys."""
    query = select(photos).where(photos.c.catalog_id == catalog_id, photos.c.path_sha256.in_(keys))
    rows: Sequence[AnyRow] = connection.execute(query).all()
    return {row.path_sha256: row for row in rows}


def _path(row: AnyRow) -> str:
    return str(row.path) if row.path_bytes is None else os.fsdecode(row.path_bytes)


def _path_columns(path: str) -> dict[str, object]:
    return {"path": storable_text(path), "path_bytes": path_bytes(path)}


def _photo(row: AnyRow) -> PhotoRecord:
    return PhotoRecord(
        row.path_sha256,
        _path(row),
        row.size,
        row.modified,
        row.sha256,
        int(row.perceptual_hash, 16),
        row.facts,
        row.tags,
        row.group_id,
    )


def _row(
    catalog_id: UUID, key: str, path: str, facts: Mapping[str, JSON], row_before: AnyRow | None
) -> dict[str, object]:
    same = row_before if row_before is not None and row_before.sha256 == facts["sha256"] else None
    return {
        "catalog_id": catalog_id,
        "path_sha256": key,
        **_path_columns(path),
        "size": facts["size"],
        "modified": facts["modified"],
        "sha256": facts["sha256"],
        "perceptual_hash": facts["perceptual_hash"],
        "facts": dict(facts),
        "tags": None if same is None else same.tags,
        "group_id": None if same is None else same.group_id,
        "updated_at": datetime.now(UTC),
    }


def _forget(connection: Connection, table: Table, catalog_id: UUID, keys: Sequence[str]) -> None:
    if keys:
        connection.execute(delete(table).where(and_(table.c.catalog_id == catalog_id, table.c.path_sha256.in_(keys))))


def _in_batches(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    remaining = iter(entries)
    while batch := list(islice(remaining, _BATCH_SIZE)):
        yield batch
