"""Files that wait in a folder of this machine.

A file is taken for whole when its name does not say otherwise, when nobody changed it for ``settle_seconds``, and, on
Linux, when nobody has it open for writing. The last is asked with a read lease, which the kernel grants only then. It
is an extra: a lease is refused to who does not own the file and on network folders, and a refusal for such a reason
says nothing about the file.

Symbolic links are never followed. What a link inside the folder points at is found by its own name, if it is inside;
if it is not, it is not ours to read.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.errors import Permanent, Retryable
from penstock.ingest.sources.contract import (
    DEEPEST,
    MAX_ENTRIES,
    CheckedReader,
    Readable,
    Waiting,
    display_name,
    file_changed,
    file_gone,
    foreign_file,
    is_unfinished,
    missing_source,
    quote_path,
    too_large,
    unquote_path,
)

# Without O_NONBLOCK, a pipe put in the place of a file would hold us until somebody writes to it.
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Folder:
    """A folder with its subfolders, or one file."""

    def __init__(
        self,
        path: Path,
        *,
        settle_seconds: float = 2.0,
        now: Callable[[], float] = time.time,
        max_entries: int = MAX_ENTRIES,
        deepest: int = DEEPEST,
    ) -> None:
        self._path = os.path.realpath(path)
        self.address = f"folder:{quote_path(self._path)}"
        self._settle_seconds = settle_seconds
        self._now = now
        self._max_entries = max_entries
        self._deepest = deepest

    def waiting(self) -> Iterator[Waiting]:
        """The settled files of the folder and its subfolders, oldest first."""
        candidates: list[tuple[int, str, Waiting]] = []
        settled_before = int((self._now() - self._settle_seconds) * 1e9)
        for path in self._files():
            try:
                status = os.lstat(path)
            except FileNotFoundError:
                continue
            if stat.S_ISREG(status.st_mode) and status.st_mtime_ns <= settled_before and not _being_written(path):
                candidates.append((status.st_mtime_ns, path, _waiting(path, status)))
        yield from (file for _, _, file in sorted(candidates, key=lambda each: each[:2]))

    @contextmanager
    def open(self, file: Waiting) -> Iterator[Readable]:
        """Lend a file; the descriptor is compared with the listing, so a file put in its place is noticed."""
        path = unquote_path(file.address.removeprefix("folder:"))
        below = os.path.commonpath([os.path.realpath(path), self._path]) == self._path
        if not (file.address.startswith("folder:/") and below):
            raise foreign_file(file, self.address)
        with _failures(file):
            descriptor = os.open(path, _FLAGS)
        try:

            def check() -> None:
                with _failures(file):
                    here, there = os.fstat(descriptor), os.lstat(path)
                # Both: the first grows under a writer, the second is another file after a rename.
                if {_version(here), _version(there)} != {file.version} or not stat.S_ISREG(here.st_mode):
                    raise file_changed(file)

            def read(size: int) -> bytes:
                with _failures(file):
                    return os.read(descriptor, size)

            check()
            reader = CheckedReader(file, read, check)
            yield reader
            reader.leave()
        finally:
            os.close(descriptor)

    def _files(self) -> Iterator[str]:
        if not os.path.isdir(self._path):  # noqa: PTH112
            if not os.path.lexists(self._path):
                raise missing_source(self.address)
            yield self._path
            return
        entries = 0
        folders = [(self._path, 1)]
        while folders:
            folder, depth = folders.pop()
            if depth > self._deepest:
                raise too_large(self.address, f"folders more than {self._deepest} deep")
            for entry in self._entries(folder, top=depth == 1):
                entries += 1
                if entries > self._max_entries:
                    raise too_large(self.address, f"more than {self._max_entries} entries")
                if is_unfinished(entry.name):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.append((entry.path, depth + 1))
                elif entry.is_file(follow_symlinks=False):
                    yield entry.path

    def _entries(self, folder: str, *, top: bool) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as entries:
                yield from entries
        except (FileNotFoundError, NotADirectoryError):
            # A subfolder that went away while we listed has nothing to ingest.
            if top:
                raise missing_source(self.address) from None
        except PermissionError as error:
            raise _refusal(f"folder:{quote_path(folder)}", error) from error
        except OSError as error:
            raise _unavailable(f"folder:{quote_path(folder)}", error) from error


def _waiting(path: str, status: os.stat_result) -> Waiting:
    name = display_name(path.rpartition("/")[2])
    return Waiting(name=name, address=f"folder:{quote_path(path)}", size=status.st_size, version=_version(status))


def _version(status: os.stat_result) -> str:
    return f"{status.st_mtime_ns}-{status.st_size}-{status.st_ino}"


def _being_written(path: str) -> bool:
    """Whether the kernel says that somebody has the file open for writing; where it will not say, no."""
    if sys.platform != "linux":
        return False
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError:
        return False
    try:
        # A writer who comes while we hold the lease would have us sent SIGIO, which ends us; SIGURG does nothing.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    finally:
        os.close(descriptor)  # and the lease with it
    return False


@contextmanager
def _failures(file: Waiting) -> Iterator[None]:
    """Say what went wrong with a file in the words of a handler."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise file_gone(file) from error
    except PermissionError as error:
        raise _refusal(file.address, error) from error
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise file_changed(file) from error  # a link where a file was
        raise _unavailable(file.address, error) from error


def _refusal(address: str, error: OSError) -> Permanent:
    return Permanent(f"{address} may not be read ({error.strerror}): check its permissions.", code="SOURCE_REFUSED")


def _unavailable(address: str, error: OSError) -> Retryable:
    return Retryable(f"{address} cannot be read now ({error.strerror}): check the disk.", code="SOURCE_UNAVAILABLE")
