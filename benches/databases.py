"""Fresh databases, all alike: made by our migrations once, then copied for every repetition."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psycopg

from penstock import Penstock
from penstock.testing.postgres import PostgresServer, private_postgres

NAMES = ("sqlite", "postgresql")


class SQLiteDatabases:
    """Files in a directory of their own, on a real disk."""

    name = "sqlite"

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._template = directory / "template.db"
        self._numbers = count(1)
        app = Penstock(f"sqlite:///{self._template}")
        app.system.migrate()
        app.close()
        with sqlite3.connect(self._template) as link:
            link.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        link.close()

    @contextmanager
    def fresh(self) -> Iterator[str]:
        """A copy of the template."""
        file = self._directory / f"bench{next(self._numbers)}.db"
        shutil.copyfile(self._template, file)
        try:
            yield f"sqlite:///{file}"
        finally:
            for leftover in self._directory.glob(f"{file.name}*"):
                leftover.unlink()

    def facts(self) -> dict[str, str]:
        """What both sides set."""
        return {"sqlite": sqlite3.sqlite_version, "sqlite_durability": "journal_mode=WAL, synchronous=NORMAL"}


class PostgreSQLDatabases:
    """Databases of a private server with PostgreSQL's own defaults."""

    name = "postgresql"

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._numbers = count(1)
        server.create_database("bench_template")
        app = Penstock(server.url("bench_template"))
        app.system.migrate()
        app.close()

    @contextmanager
    def fresh(self) -> Iterator[str]:
        """A copy of the template."""
        name = f"bench{next(self._numbers)}"
        self._server.create_database(name, template="bench_template")
        try:
            yield self._server.url(name)
        finally:
            self._server.drop_database(name)

    def facts(self) -> dict[str, str]:
        """What the server says of itself."""
        return postgresql_facts(plain(self._server.url("postgres")))


def postgresql_facts(url: str) -> dict[str, str]:
    """What a server says of itself."""
    with psycopg.connect(url) as link:
        shown = {name: str(link.execute(f"SHOW {name}".encode()).fetchone()[0]) for name in _SHOWN}  # type: ignore[index]
    durability = ", ".join(f"{name}={value}" for name, value in shown.items() if name != "server_version")
    return {"postgresql": shown["server_version"], "postgresql_durability": durability}


Databases = SQLiteDatabases | PostgreSQLDatabases
"""Somewhere to make databases."""

_SHOWN = ("server_version", "fsync", "synchronous_commit", "full_page_writes", "wal_sync_method", "shared_buffers")


def plain(url: str) -> str:
    """A URL as psycopg reads it; plain SQL finds our tables by their plain names, on either database."""
    return url.replace("postgresql+psycopg://", "postgresql://", 1) + "?options=-csearch_path%3Dpenstock"


def sqlite_path(url: str) -> str:
    """The file of a SQLite URL."""
    return url.removeprefix("sqlite:///")


@contextmanager
def databases(name: str) -> Iterator[Databases]:
    """Somewhere to make databases of this name, gone when the context ends."""
    # Not /dev/shm: what is durable must reach a disk. TMPDIR names another place.
    parent = os.environ.get("TMPDIR")
    if name == "sqlite":
        directory = Path(tempfile.mkdtemp(prefix="penstock-bench-", dir=parent))
        try:
            yield SQLiteDatabases(directory)
        finally:
            shutil.rmtree(directory, ignore_errors=True)
    else:
        with private_postgres(directory=None if parent is None else Path(parent)) as server:
            yield PostgreSQLDatabases(server)
