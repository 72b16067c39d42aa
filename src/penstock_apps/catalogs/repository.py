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

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from penstock import Actor, Caller, FileNotFound, JobNotFound, Penstock
from penstock_apps.catalogs.tables import catalogs, photos

_AT_ONCE = 500
One = TypeVar("One")


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
    facts: Mapping[str, Any]
    tags: list[str] | None
    group_id: str | None
    """The best copy's SHA-256, of photos that have copies."""


class CatalogRepository:
    """The catalogs of one Penstock's database."""

    def __init__(self, app: Penstock) -> None:
        self._app = app

    def create(
        self, link: Connection, catalog_id: UUID, name: str, source_directories: Sequence[str], *, user: str | None
    ) -> None:
        """Record a catalog, inside of a transaction."""
        row = {
            "id": catalog_id,
            "user_id": user,
            "name": name,
            "source_directories": list(source_directories),
            "created_at": datetime.now(UTC),
        }
        link.execute(insert(catalogs).values(row))

    def get(self, catalog_id: UUID, *, by: Caller) -> Catalog:
        """A catalog of the caller's; an admin and the system see everybody's."""
        asked = select(catalogs).where(catalogs.c.id == catalog_id)
        if by.actor is Actor.OWNER:
            asked = asked.where(catalogs.c.user_id.is_not_distinct_from(by.id))
        row = self._app.in_transaction(lambda link: link.execute(asked).one_or_none(), reads=True)
        if row is None:
            raise JobNotFound(f"there is no catalog {catalog_id}", code="CATALOG_NOT_FOUND")
        return _catalog(row)

    def all(self, *, by: Caller, after: UUID | None, limit: int) -> Sequence[Catalog]:
        """The caller's catalogs, in the order of their ids; an admin's list has everybody's."""
        asked = select(catalogs).order_by(catalogs.c.id).limit(limit)
        if after is not None:
            asked = asked.where(catalogs.c.id > after)
        if by.actor is Actor.OWNER:
            asked = asked.where(catalogs.c.user_id.is_not_distinct_from(by.id))
        return [_catalog(row) for row in self._app.in_transaction(lambda link: link.execute(asked).all(), reads=True)]

    def photos(self, catalog_id: UUID) -> Iterator[PhotoRecord]:
        """All photos of a catalog, a page at a time."""
        after = ""
        while page := self.page(catalog_id, after=after, limit=_AT_ONCE):
            yield from page
            after = page[-1].key

    def page(self, catalog_id: UUID, *, after: str, limit: int) -> Sequence[PhotoRecord]:
        """Some photos of a catalog, in the order of their keys."""
        asked = (
            select(photos)
            .where(photos.c.catalog_id == catalog_id, photos.c.path_sha256 > after)
            .order_by(photos.c.path_sha256)
            .limit(limit)
        )
        return [_photo(row) for row in self._app.in_transaction(lambda link: link.execute(asked).all(), reads=True)]

    def photo(self, catalog_id: UUID, key: str) -> PhotoRecord:
        """One photo of a catalog."""
        asked = select(photos).where(photos.c.catalog_id == catalog_id, photos.c.path_sha256 == key)
        row = self._app.in_transaction(lambda link: link.execute(asked).one_or_none(), reads=True)
        if row is None:
            raise FileNotFound(f"there is no photo {key} in this catalog", code="PHOTO_NOT_FOUND")
        return _photo(row)

    def save(self, catalog_id: UUID, found: Iterable[tuple[str, Mapping[str, Any]]]) -> int:
        """Keep what a scan found of photos, by their paths; what was known of them before is replaced."""
        saved = 0
        for some in _in_batches(found):
            rows = [_row(catalog_id, path, facts) for path, facts in some]

            def replace(link: Connection, rows: list[dict[str, Any]] = rows) -> None:
                _forget(link, catalog_id=catalog_id, keys=[row["path_sha256"] for row in rows])
                link.execute(insert(photos), rows)

            self._app.in_transaction(replace)
            saved += len(rows)
        return saved

    def remove(self, catalog_id: UUID, paths: Iterable[str]) -> int:
        """Forget photos that are not there any more."""
        removed = 0
        for some in _in_batches(paths):
            keys = [_key(path) for path in some]
            self._app.in_transaction(partial(_forget, catalog_id=catalog_id, keys=keys))
            removed += len(keys)
        return removed

    def tag(self, catalog_id: UUID, found: Iterable[tuple[str, list[str]]]) -> None:
        """Keep the words for photos."""
        self._set(catalog_id, "tags", found)

    def group(self, catalog_id: UUID, found: Iterable[tuple[str, str | None]]) -> None:
        """Keep which group of copies a photo is in, and forget the groups of before."""
        grouped = update(photos).where(photos.c.catalog_id == catalog_id, photos.c.group_id.is_not(None))
        self._app.in_transaction(lambda link: link.execute(grouped.values(group_id=None)))
        self._set(catalog_id, "group_id", found)

    def _set(self, catalog_id: UUID, column: str, found: Iterable[tuple[str, Any]]) -> None:
        statement = (
            update(photos)
            .where(photos.c.catalog_id == catalog_id, photos.c.path_sha256 == bindparam("the_key"))
            .values({column: bindparam("the_value", type_=photos.c[column].type)})
        )
        for some in _in_batches(found):
            rows = [{"the_key": _key(path), "the_value": value} for path, value in some]
            self._app.in_transaction(partial(Connection.execute, statement=statement, parameters=rows))


def _catalog(row: Any) -> Catalog:
    created = row.created_at if row.created_at.tzinfo else row.created_at.replace(tzinfo=UTC)  # SQLite keeps no zone
    return Catalog(row.id, row.user_id, row.name, tuple(row.source_directories), created)


def _photo(row: Any) -> PhotoRecord:
    looks = int(row.perceptual_hash, 16)
    return PhotoRecord(
        row.path_sha256, row.path, row.size, row.modified, row.sha256, looks, row.facts, row.tags, row.group_id
    )


def _row(catalog_id: UUID, path: str, facts: Mapping[str, Any]) -> dict[str, Any]:
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


def _forget(link: Connection, *, catalog_id: UUID, keys: Sequence[str]) -> None:
    link.execute(delete(photos).where(photos.c.catalog_id == catalog_id, photos.c.path_sha256.in_(keys)))


def _key(path: str) -> str:
    """A path may be longer than what an index takes."""
    return hashlib.sha256(path.encode(errors="surrogateescape")).hexdigest()


def _in_batches(found: Iterable[One]) -> Iterator[list[One]]:
    waiting = iter(found)
    while some := list(islice(waiting, _AT_ONCE)):
        yield some
