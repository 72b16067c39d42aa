"""Copies of a migrated PostgreSQL database, used again where a test has left nothing in one but rows.

A copy costs the server a third of a second of processor time, to empty one a fiftieth of that. Nobody can tell a
database that was used before from a new copy: its name is new, so that whatever a test forgot to close finds it no
more, its sequences begin again, and one whose tables, functions, statistics or settings were changed is dropped.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import psycopg
from psycopg import sql

from penstock.testing.postgres import PostgresServer

_FIRST_OWN = 16_384
"""The numbers of what PostgreSQL brings itself are below."""
_MAX_GROWTH = 4 << 20
_SHAPE = f"""
SELECT md5(string_agg(line, ',' ORDER BY line)) FROM (
    SELECT format('relation %s %s', oid, xmin) FROM pg_class WHERE oid >= {_FIRST_OWN}
    UNION ALL SELECT format('function %s %s', oid, xmin) FROM pg_proc WHERE oid >= {_FIRST_OWN}
    UNION ALL SELECT format('schema %s %s', oid, xmin) FROM pg_namespace
    UNION ALL SELECT format('statistics %s', starelid) FROM pg_statistic WHERE starelid >= {_FIRST_OWN}
    UNION ALL SELECT format('settings %s', setrole) FROM pg_db_role_setting
        JOIN pg_database ON pg_database.oid = setdatabase WHERE datname = current_database()
) AS shape (line)
"""
_TABLES = f"""
SELECT nspname, relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE relkind = 'r' AND pg_class.oid >= {_FIRST_OWN}
"""
_LEAVE = """
SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
_RESTART = "SELECT setval(seqrelid::regclass, seqstart, false) FROM pg_sequence"
_GROWTH = "SELECT pg_database_size(current_database()) - pg_database_size(%s)"


class DatabasePools:
    """The copies of all templates of a server."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._pools: dict[str, DatabasePool] = {}

    def lend(self, template: str) -> AbstractContextManager[str]:
        """The URL of a copy, for one test."""
        if template not in self._pools:
            self._pools[template] = DatabasePool(self._server, template)
        return self._pools[template].lend()


class DatabasePool:
    """The copies of one template."""

    def __init__(self, server: PostgresServer, template: str) -> None:
        self._server = server
        self._template = template
        self._spare_names: list[str] = []
        with self._connect(template) as connection:
            tables = [sql.Identifier(*row) for row in connection.execute(sql.SQL(_TABLES))]
            self._filled_tables = [
                table
                for table in tables
                if connection.execute(sql.SQL("SELECT 1 FROM {} LIMIT 1").format(table)).fetchone()
            ]
            self._empty_tables = [table for table in tables if table not in self._filled_tables]
            self._shape = self._read_shape(connection)

    @contextmanager
    def lend(self) -> Iterator[str]:
        """The URL of a copy, for one test."""
        name = f"test_{uuid.uuid4().hex}"
        if not self._take_spare(name):
            self._server.create_database(name, self._template)
        try:
            yield self._server.url(name)
        finally:
            if self._empty(name):
                self._spare_names.append(name)
            else:
                self._server.drop_database(name)

    def _take_spare(self, name: str) -> bool:
        if not self._spare_names:
            return False
        spare_name = self._spare_names.pop()
        rename = sql.SQL("ALTER DATABASE {} RENAME TO {}").format(sql.Identifier(spare_name), sql.Identifier(name))
        try:
            with self._connect("postgres") as connection:
                connection.execute(rename)
        except psycopg.errors.ObjectInUse:  # the server itself looks after it at this moment
            self._server.drop_database(spare_name)
            return False
        return True

    def _empty(self, name: str) -> bool:
        """Take all rows away; False if there is more to it than rows, or too many of them, or it is gone."""
        try:
            with self._connect(name) as connection:
                connection.execute(_LEAVE)
                growth = connection.execute(_GROWTH, [self._template]).fetchone()
                if growth is None or growth[0] > _MAX_GROWTH or self._read_shape(connection) != self._shape:
                    return False
                connection.execute("SET session_replication_role = replica")  # no foreign key has an order then
                deletes = [sql.SQL("DELETE FROM {}").format(table) for table in self._empty_tables]
                connection.execute(sql.SQL(";").join([*deletes, sql.SQL(_RESTART)]))
        except psycopg.OperationalError:
            return False
        return True

    def _read_shape(self, connection: psycopg.Connection) -> list[object]:
        """What makes one copy like another: its catalog, and what is in the tables that are not empty."""
        queries: list[sql.SQL | sql.Composed] = [sql.SQL(_SHAPE)]
        queries += [
            sql.SQL("SELECT md5(string_agg(row::text, ',' ORDER BY row::text)) FROM {} AS row").format(table)
            for table in self._filled_tables
        ]
        return [connection.execute(query).fetchone() for query in queries]

    def _connect(self, name: str) -> psycopg.Connection:
        return psycopg.connect(self._server.url(name).replace("+psycopg", ""), autocommit=True)
