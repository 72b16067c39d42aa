"""A server that was restarted: the connections that are kept are gone, and nobody meets them."""

from __future__ import annotations

from sqlalchemy import create_engine, text

from penstock import Penstock, load_settings


def test_after_a_servers_restart_no_call_fails(postgres_url: str) -> None:
    app = Penstock(settings=load_settings(database_url=postgres_url))
    app.system.migrate()
    app.kind("noop")(lambda item: None)
    for _ in range(3):
        app.submit("noop")
    other = create_engine(app.store.engine.url)
    with other.connect() as link:
        link.execute(
            text(
                "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        )
    other.dispose()
    app.submit("noop")
    assert len(app.jobs.list()) == 4
    app.close()
