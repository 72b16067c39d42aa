"""A SQLite file that somebody made for UTF-16 is refused, before anything is written to it."""

import sqlite3
from pathlib import Path

import pytest

from penstock import Penstock
from penstock.errors import ConfigurationError
from penstock.settings import load_settings


def test_a_file_of_another_encoding_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "wide.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA encoding = 'UTF-16le'")
    connection.execute("CREATE TABLE mine (word TEXT)")
    connection.close()
    app = Penstock(settings=load_settings(database_url=f"sqlite:///{path}"))
    with pytest.raises(ConfigurationError, match="UTF-16le") as refused:
        app.system.migrate()
    assert refused.value.code == "DATABASE_ENCODING"
    app.close()
