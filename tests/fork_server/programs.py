"""Starts a warm server, and makes a directory with a ``penstock`` and a ``python`` that use it."""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
# What the commands and the examples import sooner or later. One that is missing here only costs time.
LIBRARIES = (
    "alembic.command",
    "alembic.autogenerate",
    "alembic.runtime.migration",
    "alembic.script",
    "concurrent.futures.process",
    "concurrent.futures.thread",
    "fastapi",
    "fastapi.responses",
    "fastapi.security",
    "fastapi.staticfiles",
    "getpass",
    "jinja2",
    "jwt",
    "logging.config",
    "lxml.etree",
    "lxml.html",
    "multipart",
    "multiprocessing.connection",
    "multiprocessing.spawn",
    "orjson",
    "PIL.Image",
    "prometheus_client",
    "psutil",
    "psycopg",
    "psycopg_pool",
    "pydantic",
    "pydantic_settings",
    "pypdf",
    "rich.console",
    "rich.live",
    "rich.progress",
    "rich.table",
    "runpy",
    "sqlalchemy",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite.pysqlite",
    "sqlite3",
    "starlette.testclient",
    "structlog",
    "typer",
    "typer.main",
    "typer.rich_utils",
    "uuid_utils.compat",
    "uvicorn",
    "uvicorn.protocols.http.httptools_impl",
    "uvloop",
    "xml.etree.ElementTree",
)
OURS = ("penstock.*", "penstock_apps.*")
REAL = Path(sys.executable).with_name("penstock")


@contextmanager
def warm_programs(modules: Sequence[str] = (*LIBRARIES, *OURS)) -> Iterator[Path]:
    """The directory; everything that was started from it is gone at the end of the block.

    ``modules`` is what its processes find loaded.
    """
    # Not pytest's directory: the address of a socket must be short.
    with tempfile.TemporaryDirectory(prefix="warm-") as made:
        directory = Path(made)
        address = directory / "socket"
        launcher = [sys.executable, "-I", "-S", str(HERE / "launcher.py"), str(address), sys.executable]
        for name, script in (("penstock", [str(REAL)]), ("python", [])):
            program = directory / name
            program.write_text(f'#!/bin/sh\nexec {shlex.join([*launcher, *script])} "$@"\n', encoding="utf-8")
            program.chmod(0o755)
        with subprocess.Popen(
            [sys.executable, str(HERE / "server.py"), str(address), *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Control-C is for the tests, and for their programs when the tests say so.
            start_new_session=True,
        ) as server:
            assert server.stdout is not None
            assert server.stdin is not None
            assert server.stdout.readline() == b"ready\n", "the warm server did not start; it says why above"
            yield directory
            server.stdin.close()
