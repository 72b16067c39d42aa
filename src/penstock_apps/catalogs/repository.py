"""What is kept of catalogs, and of the jobs that work on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Row, and_, delete, insert, select, update

from penstock import Caller, Penstock
from penstock.errors import JobNotFound
from penstock.lifecycle import Actor
from penstock_apps.catalogs.payloads import LastScan
from penstock_apps.catalogs.tables import catalog_jobs, catalogs, photos, unreadable_photos

AnyRow: TypeAlias = Row[Any]
"""What a query of SQLAlchemy answers with: it knows no types of columns."""


@dataclass(frozen=True, slots=True)
class Catalog:
    """A name for some folders of photos."""

    id: UUID
    user_id: str | None
    name: str
    source_directories: tuple[str, ...]
    created_at: datetime
    last_scan: LastScan | None


@dataclass(frozen=True, slots=True)
class CatalogJob:
    """The last job that was started for some work on a catalog."""

    job_id: UUID
    unique_key: str


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
        query = select(catalogs).where(_visible(catalog_id, by))
        return _require_found(
            self._app.in_transaction(lambda connection: connection.execute(query).one_or_none(), reads=True), catalog_id
        )

    def lock(self, connection: Connection, catalog_id: UUID, *, by: Caller) -> Catalog:
        """The same inside of a transaction that changes something about it: one after the other."""
        query = select(catalogs).where(_visible(catalog_id, by))
        return _require_found(connection.execute(query.with_for_update()).one_or_none(), catalog_id)

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

    def change(
        self, connection: Connection, catalog_id: UUID, name: str | None, source_directories: Sequence[str] | None
    ) -> None:
        """Give a catalog another name or other folders; what is None stays as it is."""
        values: dict[str, object] = {}
        if name is not None:
            values["name"] = name
        if source_directories is not None:
            # What the last scan asked is about the folders of before.
            values |= {"source_directories": list(source_directories), "last_scan": None}
        if values:
            connection.execute(update(catalogs).where(catalogs.c.id == catalog_id).values(values))

    def remember_scan(self, connection: Connection, catalog_id: UUID, last_scan: LastScan) -> None:
        """Keep how the last scan has ended."""
        connection.execute(update(catalogs).where(catalogs.c.id == catalog_id).values(last_scan=last_scan))

    def remove(self, connection: Connection, catalog_id: UUID) -> None:
        """Forget a catalog and its photos."""
        for table in (photos, unreadable_photos, catalog_jobs):
            connection.execute(delete(table).where(table.c.catalog_id == catalog_id))
        connection.execute(delete(catalogs).where(catalogs.c.id == catalog_id))

    # The jobs that work on a catalog ------------------------------------------------------------------------------

    def job(self, connection: Connection, catalog_id: UUID, work: str) -> CatalogJob | None:
        """The last job that was started for some work."""
        query = select(catalog_jobs.c.job_id, catalog_jobs.c.unique_key).where(_of_work(catalog_id, work))
        row = connection.execute(query).one_or_none()
        return None if row is None else CatalogJob(row.job_id, row.unique_key)

    def jobs(self, connection: Connection, catalog_id: UUID) -> Sequence[UUID]:
        """The last jobs of all works."""
        query = select(catalog_jobs.c.job_id).where(catalog_jobs.c.catalog_id == catalog_id)
        return connection.execute(query.order_by(catalog_jobs.c.job_id)).scalars().all()

    def set_job(self, connection: Connection, catalog_id: UUID, work: str, job: CatalogJob) -> None:
        """From now on this job does the work."""
        connection.execute(delete(catalog_jobs).where(_of_work(catalog_id, work)))
        row = {"catalog_id": catalog_id, "work": work, "job_id": job.job_id, "unique_key": job.unique_key}
        connection.execute(insert(catalog_jobs).values(row))


def _visible(catalog_id: UUID, by: Caller) -> ColumnElement[bool]:
    is_it = catalogs.c.id == catalog_id
    return and_(is_it, catalogs.c.user_id.is_not_distinct_from(by.id)) if by.actor is Actor.OWNER else is_it


def _of_work(catalog_id: UUID, work: str) -> ColumnElement[bool]:
    return and_(catalog_jobs.c.catalog_id == catalog_id, catalog_jobs.c.work == work)


def _require_found(row: AnyRow | None, catalog_id: UUID) -> Catalog:
    if row is None:
        raise JobNotFound(f"there is no catalog {catalog_id}", code="CATALOG_NOT_FOUND")
    return _catalog(row)


def _catalog(row: AnyRow) -> Catalog:
    created_at = row.created_at if row.created_at.tzinfo else row.created_at.replace(tzinfo=UTC)  # SQLite keeps no zone
    return Catalog(row.id, row.user_id, row.name, tuple(row.source_directories), created_at, row.last_scan)
