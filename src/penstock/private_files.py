"""Files and folders for our own account alone: 0600 and 0700, whatever the umask.

What we keep belongs to the users whose jobs it is of, and a file that another account can open is a lock that it can
hold. So what we make is private from its first moment on, and what was made before is made so, or it is said that it
could not be.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path

import structlog

__all__ = ["create_private_file", "make_private", "make_private_folder", "open_own_file"]

_FILE = 0o600
_FOLDER = 0o700
_OTHERS = 0o077
_TRIES = 3
_log = structlog.get_logger("penstock.files")


def make_private_folder(path: Path) -> None:
    """Make a folder, and the parents that are missing, for us alone; what is there already stays as it is."""
    missing = [folder for folder in (path, *path.parents) if not folder.is_dir()]
    for folder in reversed(missing):
        try:
            folder.mkdir(_FOLDER)
        except FileExistsError:
            if not folder.is_dir():
                raise
        else:
            folder.chmod(_FOLDER)  # a umask may have taken bits from us, too


def create_private_file(path: Path, content: bytes = b"") -> bool:
    """Make a file with this content, whole from its first moment on; False if there is one already."""
    new_file = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(new_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            new_file.chmod(_FILE)
            file.write(content)
        # Closed before it has its name: of a database, closing any descriptor would drop the locks of SQLite's own.
        os.link(new_file, path)
    except FileExistsError:
        return False
    finally:
        new_file.unlink()
    return True


def make_private(path: str | Path) -> None:
    """Take a file's permissions from everybody else; where that cannot be done, it is logged."""
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)  # noqa: PTH116 - a path may be text here
        if not mode & _OTHERS:
            return
        os.chmod(path, mode & _FILE)  # noqa: PTH101
    except FileNotFoundError:
        return
    except OSError as error:
        _log.warning("other accounts can open this file: make it private", path=str(path), error=error.strerror)
    else:
        _log.info("other accounts could open this file; it is private now", path=str(path), mode=f"{mode:o}")


def open_own_file(path: str, owner: int) -> int:
    """Open a file that nobody but us can have open, and make it if it is not there.

    One that belongs to somebody else is refused. One that others could open is replaced, because they may have it open
    still. ``owner`` is whose file it may be where we are root, as SQLite has it with its own files.
    """
    for _ in range(_TRIES):
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(path, flags, _FILE)
        try:
            status = os.fstat(descriptor)
            is_root = os.geteuid() == 0
            if not stat.S_ISREG(status.st_mode) or status.st_uid not in ({0, owner} if is_root else {os.geteuid()}):
                raise PermissionError(errno.EPERM, "the file belongs to another account", path)
            if not status.st_mode & _OTHERS:
                os.fchmod(descriptor, _FILE)
                if is_root and status.st_uid != owner:
                    os.fchown(descriptor, owner, -1)
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)  # noqa: PTH108
    raise PermissionError(errno.EPERM, "another account makes this file again and again", path)
