"""What is kept of catalogs and their photos."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import Connection, Row, bindparam, delete, insert, select, update

from penstock import Caller, Penstock
from penstock.errors import FileNotFound, JobNotFound
from penstock.lifecycle import JSON, Actor
from penstock_apps.catalogs.payloads import PhotoFacts
from penstock_apps.catalogs.tables import catalogs, photos

_BATCH_SIZE = 500
Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True)
class Catalog:
    """A name for some folders of photos."""

    id: UUID
    user_id: str | None
    name: str
    source_directories: tuple[str, ...]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class PhotoRecord:
    """A photo as the last scan found it, with what was found out since."""

    key: str
    """What it is called in its catalog: its path is too long for that."""
    path: str
    size: int
    modified: int
    sha256: str
    perceptual_hash: int
    facts: PhotoFacts
    tags: list[str] | None
    group_id: str | None
    """The best copy's SHA-256, of photos that have copies."""


class CatalogRepository:
    """The catalogs of one Penstock's database."""

    def __init__(self, app: Penstock) -> None:
        self._app = app

    def create(
        self,
        connection: Connection,
        catalog_id: UUID,
        name: str,
        source_directories: Sequence[str],
        *,
        user: str | None,
    ) -> None:
        """Record a catalog, inside of a transaction."""
        row = {
            "id": catalog_id,
            "user_id": user,
            "name": name,
            "source_directories": list(source_directories),
            "created_at": datetime.now(UTC),
        }
        connection.execute(insert(catalogs).values(row))

    def get(self, catalog_id: UUID, *, by: Caller) -> Catalog:
        """A catalog of the caller's; an admin and the system see everybody's."""
        query = select(catalogs).where(catalogs.c.id == catalog_id)
        if by.actor is Actor.OWNER:
            query = query.where(catalogs.c.user_id.is_not_distinct_from(by.id))
        row = self._app.in_transaction(lambda connection: connection.execute(query).one_or_none(), reads=True)
        if row is None:
            raise JobNotFound(f"there is no catalog {catalog_id}", code="CATALOG_NOT_FOUND")
        return _catalog(row)

    def all(self, *, by: Caller, after: UUID | None, limit: int) -> Sequence[Catalog]:
        """The caller's catalogs, in the order of their ids; an admin's list has everybody's."""
        query = select(catalogs).order_by(catalogs.c.id).limit(limit)
        if after is not None:
            query = query.where(catalogs.c.id > after)
        if by.actor is Actor.OWNER:
            query = query.where(catalogs.c.user_id.is_not_distinct_from(by.id))
        return [
            _catalog(row)
            for row in self._app.in_transaction(lambda connection: connection.execute(query).all(), reads=True)
        ]

    def photos(self, catalog_id: UUID) -> Iterator[PhotoRecord]:
        """All photos of a catalog, a page at a time."""
        after = ""
        while page := self.page(catalog_id, after=after, limit=_BATCH_SIZE):
            yield from page
            after = page[-1].key

    def page(self, catalog_id: UUID, *, after: str, limit: int) -> Sequence[PhotoRecord]:
        """Some photos of a catalog, in the order of their keys."""
        query = (
            select(photos)
            .where(photos.c.catalog_id == catalog_id, photos.c.path_sha256 > after)
            .order_by(photos.c.path_sha256)
            .limit(limit)
        )
        return [
            _photo(row)
            for row in self._app.in_transaction(lambda connection: connection.execute(query).all(), reads=True)
        ]

    def photo(self, catalog_id: UUID, key: str) -> PhotoRecord:
        """One photo of a catalog."""
        query = select(photos).where(photos.c.catalog_id == catalog_id, photos.c.path_sha256 == key)
        row = self._app.in_transaction(lambda connection: connection.execute(query).one_or_none(), reads=True)
        if row is None:
            raise FileNotFound(f"there is no photo {key} in this catalog", code="PHOTO_NOT_FOUND")
        return _photo(row)

    def save(self, catalog_id: UUID, facts: Iterable[tuple[str, Mapping[str, JSON]]]) -> int:
        """Keep what a scan found of photos, by their paths; what was known of them before is replaced."""
        saved_count = 0
        for batch in _in_batches(facts):
            rows = [_row(catalog_id, path, photo_facts) for path, photo_facts in batch]

            def replace(connection: Connection, rows: list[dict[str, object]] = rows) -> None:
                _forget(connection, catalog_id=catalog_id, keys=[str(row["path_sha256"]) for row in rows])
                connection.execute(insert(photos), rows)

            self._app.in_transaction(replace)
            saved_count += len(rows)
        return saved_count

    def remove(self, catalog_id: UUID, paths: Iterable[str]) -> int:
        """Forget photos that are not there any more."""
        removed_count = 0
        for batch in _in_batches(paths):
            keys = [_key(path) for path in batch]
            self._app.in_transaction(partial(_forget, catalog_id=catalog_id, keys=keys))
            removed_count += len(keys)
        return removed_count

    def tag(self, catalog_id: UUID, tags: Iterable[tuple[str, list[str]]]) -> None:
        """Keep the tags of photos."""
        self._set(catalog_id, "tags", tags)

    def group(self, catalog_id: UUID, groups: Iterable[tuple[str, str | None]]) -> None:
        """Keep which group of copies a photo is in, and forget the groups of before."""
        statement = update(photos).where(photos.c.catalog_id == catalog_id, photos.c.group_id.is_not(None))
        self._app.in_transaction(lambda connection: connection.execute(statement.values(group_id=None)))
        self._set(catalog_id, "group_id", groups)

    def _set(self, catalog_id: UUID, column: str, values: Iterable[tuple[str, object]]) -> None:
        statement = (
            update(photos)
            .where(photos.c.catalog_id == catalog_id, photos.c.path_sha256 == bindparam("the_key"))
            .values({column: bindparam("the_value", type_=photos.c[column].type)})
        )
        for batch in _in_batches(values):
            rows = [{"the_key": _key(path), "the_value": value} for path, value in batch]
            self._app.in_transaction(partial(Connection.execute, statement=statement, parameters=rows))


def _catalog(row: Row[Any]) -> Catalog:
    created_at = row.created_at if row.created_at.tzinfo else row.created_at.replace(tzinfo=UTC)  # SQLite keeps no zone
    return Catalog(row.id, row.user_id, row.name, tuple(row.source_directories), created_at)


def _photo(row: Row[Any]) -> PhotoRecord:
    perceptual_hash = int(row.perceptual_hash, 16)
    return PhotoRecord(
        row.path_sha256,
        row.path,
        row.size,
        row.modified,
        row.sha256,
        perceptual_hash,
        row.facts,
        row.tags,
        row.group_id,
    )


def _row(catalog_id: UUID, path: str, facts: Mapping[str, JSON]) -> dict[str, object]:
    return {
        "catalog_id": catalog_id,
        "path_sha256": _key(path),
        "path": path,
        "size": facts["size"],
        "modified": facts["modified"],
        "sha256": facts["sha256"],
        "perceptual_hash": facts["perceptual_hash"],
        "facts": dict(facts),
        "tags": None,
        "group_id": None,
        "updated_at": datetime.now(UTC),
    }


def _forget(connection: Connection, *, catalog_id: UUID, keys: Sequence[str]) -> None:
    connection.execute(delete(photos).where(photos.c.catalog_id == catalog_id, photos.c.path_sha256.in_(keys)))


def _key(path: str) -> str:
    """A path may be longer than what an index takes."""
    return hashlib.sha256(path.encode(errors="surrogateescape")).hexdigest()


def _in_batches(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    remaining = iter(entries)
    while batch := list(islice(remaining, _BATCH_SIZE)):
        yield batch
