"""The launcher of private PostgreSQL servers keeps its promises: it starts, it is alone, it leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import psycopg
import pytest

from penstock.testing.postgres import PostgresServer, PostgresUnavailable, private_postgres
from penstock.testing.postgres_programs import find_binaries

QUICK = {"fsync": "off", "shared_buffers": "16MB"}

# Says where the server is, then waits to be killed.
PARENT = """
import sys
from penstock.testing.postgres import private_postgres
with private_postgres(settings={"fsync": "off", "shared_buffers": "16MB"}) as server:
    print(server.port, server.directory, flush=True)
    sys.stdin.read()
"""


def connect(server: PostgresServer, database: str) -> psycopg.Connection:
    return psycopg.connect(host=server.host, port=server.port, user=server.user, dbname=database, autocommit=True)


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def becomes(condition, seconds: float = 20) -> bool:
    """Wait for what another process does, and tells nobody about."""
    clock = threading.Event()
    for _ in range(int(seconds / 0.05)):
        if condition():
            return True
        clock.wait(0.05)
    return False


def test_creates_a_database_from_a_template(postgres_server):
    postgres_server.create_database("pattern")
    with connect(postgres_server, "pattern") as link:
        link.execute("CREATE TABLE seed AS SELECT 7 AS value")
    postgres_server.create_database("copy of it", template="pattern")
    try:
        with connect(postgres_server, "copy of it") as link:
            assert link.execute("SELECT value FROM seed").fetchall() == [(7,)]
    finally:
        postgres_server.drop_database("copy of it")
        postgres_server.drop_database("pattern")
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        connect(postgres_server, "pattern")


def test_drops_a_database_that_is_in_use(postgres_server):
    postgres_server.create_database("busy")
    with connect(postgres_server, "busy") as link:
        postgres_server.drop_database("busy")
        with pytest.raises(psycopg.OperationalError):
            link.execute("SELECT 1")


def test_the_url_fixture_is_a_fresh_database(postgres_url):
    plain = postgres_url.replace("postgresql+psycopg://", "postgresql://")
    with psycopg.connect(plain) as link:
        tables = link.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone()
    assert tables == (0,)


def test_two_run_at_once_and_nothing_is_left_of_them():
    with private_postgres(settings=QUICK) as one, private_postgres() as other:
        assert one.port != other.port
        one.create_database("only_here")
        with connect(one, "only_here") as link:
            assert link.execute("SHOW fsync").fetchone() == ("off",)
        with connect(other, "postgres") as link:
            assert link.execute("SHOW fsync").fetchone() == ("on",), "durable unless told otherwise"
            assert link.execute("SELECT 1 FROM pg_database WHERE datname = 'only_here'").fetchone() is None
        # Left connected on purpose: the end does not wait for clients.
        idle = connect(one, "only_here")
    idle.close()
    for server in (one, other):
        assert not is_open(server.port)
        assert not server.directory.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has to hand the programs over to somebody else")
def test_programs_out_of_reach_are_copied(tmp_path, monkeypatch):
    # pytest's own directories are open to their owner alone, as /root is.
    package = find_binaries().parents[1]
    for part in package.parent.glob(f"{package.name}*"):
        shutil.copytree(part, tmp_path / part.name)
    monkeypatch.setattr(
        "penstock.testing.postgres.find_binaries", lambda: tmp_path / package.name / "pginstall" / "bin"
    )
    with private_postgres(settings=QUICK) as server, connect(server, "postgres") as link:
        assert link.execute("SELECT 1").fetchone() == (1,)
        assert (server.directory / "programs").is_dir()
    assert not server.directory.exists()


def test_stops_when_the_body_fails():
    with pytest.raises(ZeroDivisionError), private_postgres(settings=QUICK) as server:
        raise ZeroDivisionError
    assert not is_open(server.port)
    assert not server.directory.exists()


def test_dies_with_a_killed_parent():
    with subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        port, directory = parent.stdout.readline().decode().split(maxsplit=1)
        assert is_open(int(port))
        parent.send_signal(signal.SIGKILL)
    assert becomes(lambda: not is_open(int(port)))
    assert becomes(lambda: not Path(directory.strip()).exists())


def test_a_wrong_setting_is_told_with_the_servers_own_words():
    with (
        pytest.raises(PostgresUnavailable, match="no_such_setting"),
        private_postgres(settings={"no_such_setting": "1"}),
    ):
        pass


def test_says_what_to_do_when_there_is_no_postgresql(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(PostgresUnavailable, match="make setup"), private_postgres():
        pass
