"""What handlers do to meet each error that everybody meets: a module of their own, which a process loads quickly."""

from __future__ import annotations

import importlib
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock import ItemContext
from penstock.errors import InvalidInput


def die(item: ItemContext) -> None:
    """Be killed as the system kills."""
    os.kill(os.getpid(), signal.SIGKILL)


def ask_database(item: ItemContext) -> None:
    """Connect to a PostgreSQL where nobody listens."""
    psycopg: Any = importlib.import_module("psycopg")
    psycopg.connect(host="127.0.0.1", port=item.input["port"], connect_timeout=5)


def ask_redis(item: ItemContext) -> None:
    """Ping a Redis where nobody listens."""
    redis: Any = importlib.import_module("redis")
    redis.Redis(host="127.0.0.1", port=item.input["port"]).ping()


def fill_gpu(item: ItemContext) -> None:
    """Allocate more than the card has."""
    torch: Any = importlib.import_module("torch")
    torch.empty(10**15, device="cuda")


def fill_disk(item: ItemContext) -> None:
    """Write to a disk without room."""
    with Path("/dev/full").open("wb", buffering=0) as file:
        file.write(b"one byte too many")


def want_a_name(item: ItemContext) -> None:
    """Refuse a number."""
    if not isinstance(item.input["port"], str):
        raise InvalidInput(f"port is a name, not {item.input['port']!r}", field="port")


ERRORS: dict[str, tuple[Callable[[ItemContext], None], str]] = {
    "DB_CONN_REFUSED": (ask_database, "refused"),
    "REDIS_UNAVAILABLE": (ask_redis, "refused"),
    "GPU_OOM": (fill_gpu, "out of memory"),
    "DISK_FULL": (fill_disk, "No space left"),
    "INVALID_INPUT": (want_a_name, "port is a name"),
}
"""By code: what brings it about, and words of its message. WORKER_TIMEOUT and CATALOG_NOT_FOUND are further below."""


def meet(item: ItemContext) -> None:
    """Do what leads to the error that is asked for."""
    ERRORS[item.input["code"]][0](item)
