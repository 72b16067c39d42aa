"""Errors of others that everybody meets, and the code by which people and programs know them.

They are recognised by the names of their classes, so that nothing has to be imported for it. All of them may pass, so
they are tried again; a kind that knows better says so in its ``classify``.
"""

from __future__ import annotations

import errno

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_BY_NAME = {
    "DB_CONN_REFUSED": (
        {"psycopg", "psycopg2", "asyncpg", "pymysql", "MySQLdb", "sqlalchemy"},
        {"OperationalError", "InterfaceError", "CannotConnectNowError", "ConnectionDoesNotExistError"},
    ),
    "REDIS_UNAVAILABLE": (
        {"redis", "valkey", "kombu"},
        {"ConnectionError", "TimeoutError", "BusyLoadingError", "OperationalError"},
    ),
    "GPU_OOM": ({"torch", "cupy"}, {"OutOfMemoryError"}),
}


def known_code(error: BaseException) -> str | None:
    """The code of a well-known error; None of all others.

    >>> known_code(OSError(28, "No space left on device"))
    'DISK_FULL'
    >>> known_code(ValueError("no")) is None
    True
    """
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        return "DISK_FULL"
    for error_class in type(error).__mro__:
        package = error_class.__module__.partition(".")[0]
        for code, (packages, names) in _BY_NAME.items():
            if package in packages and error_class.__name__ in names:
                return code
    return None
