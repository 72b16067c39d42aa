"""How a PostgreSQL server is reached, in words for whoever set it up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg import Error

from penstock.errors import StoreUnavailable
from penstock.store.dialects.dialect import CannotListen
from penstock.store.dialects.postgresql.engine import connector_of
from penstock.store.dialects.postgresql.listener import PostgreSQLListener

if TYPE_CHECKING:
    from penstock.store.engine import Store


def describe_connection(store: Store) -> list[str]:
    """Directly or through a pooler, and whether workers hear of new work."""
    connector = connector_of(store.engine)
    with store.engine.connect() as connection:
        version = connection.exec_driver_sql("SHOW server_version").scalar()
    way = "through a pooler" if connector.behind_pooler else "directly"
    verb = "are" if connector.prepares() else "are not"
    return [
        f"PostgreSQL {version} is reached {way}; statements {verb} prepared there",
        _describe_listening(store),
    ]


def _describe_listening(store: Store) -> str:
    listener = PostgreSQLListener(store)
    try:
        listener.listen(listener.close, lambda notices: None)
    except Error as error:
        first_line = str(error).strip().partition("\n")[0]
        raise StoreUnavailable(f"PENSTOCK_LISTEN_URL cannot be used: {first_line}") from error
    except CannotListen as error:
        return (
            f"workers do not hear of new work and look for it instead: {error}; "
            "set PENSTOCK_LISTEN_URL to an address that leads to the server directly"
        )
    return "workers hear of new work at once"
