"""Files that wait on an FTP server, plain or with explicit TLS (``ftps://``: AUTH TLS on the usual port).

FTP does not say when a file is whole and has no word for the server's time. A file is listed when the server dates its
last change more than ``settle_seconds`` before our clock; as those dates have whole seconds, the second itself counts
as not over. A server whose clock is ahead makes files wait longer. One whose clock is behind makes them come early, and
then the comparison of size and date after the last byte finds what was still growing. (Two listings some seconds apart
would need no clock, but would make every listing wait, and a stalled upload looks settled to them as well.)

Paths are the server's, from its root: ``ftp://host/inbox`` is ``/inbox``. Names are bytes to us, whatever the server's
encoding. Each listing and each file has a connection of its own, so that a lost one costs no more than itself.
"""

from __future__ import annotations

import ftplib
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from socket import socket

from penstock.errors import Permanent, Retryable
from penstock.ingest.sources.contract import (
    DEEPEST,
    MAX_ENTRIES,
    TIMEOUT_SECONDS,
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

_NOT_KNOWN = ("500", "502", "504")
_NO_SUCH_FILE = "550"
_MAX_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class Account:
    """Where to connect, and as whom."""

    host: str
    port: int = 21
    user: str = "anonymous"
    password: str = field(default="", repr=False)
    tls: ssl.SSLContext | None = None

    @property
    def address(self) -> str:
        """The start of every address on this server."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'ftps' if self.tls else 'ftp'}://{host}{'' if self.port == 21 else f':{self.port}'}"


class Server:
    """The files below a folder of an FTP server, or one file of it."""

    def __init__(
        self,
        account: Account,
        path: str,
        *,
        settle_seconds: float = 2.0,
        now: Callable[[], float] = time.time,
        max_entries: int = MAX_ENTRIES,
        deepest: int = DEEPEST,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self._account = account
        self._path = "/" + path.strip("/")
        self.address = account.address + quote_path(self._path)
        self._settle_seconds = settle_seconds
        self._now = now
        self._max_entries = max_entries
        self._deepest = deepest
        self._timeout_seconds = timeout_seconds

    def waiting(self) -> Iterator[Waiting]:
        """The settled files of the folder and its subfolders, oldest first."""
        settled_before = self._now() - self._settle_seconds - 1
        with self._failures(), self._connect() as connection:
            candidates = [
                (facts.modified_at, path, facts)
                for path, facts in self._files(connection)
                if _time_of(facts.modified_at) < settled_before
            ]
        for _, path, facts in sorted(candidates, key=lambda each: each[:2]):
            name = display_name(path.rpartition("/")[2])
            yield Waiting(name, self._account.address + quote_path(path), facts.size, facts.version)

    @contextmanager
    def open(self, file: Waiting) -> Iterator[Readable]:
        """Lend a file over a connection of its own."""
        start = self._account.address
        path = unquote_path(file.address.removeprefix(start))
        inside = path == self._path or path.startswith(self._path.rstrip("/") + "/")
        if not file.address.startswith(f"{start}/") or not inside or ".." in path.split("/"):
            raise foreign_file(file, self.address)
        with ExitStack() as stack:
            with self._failures(file):
                connection = stack.enter_context(self._connect())
                if _facts(connection, path).version != file.version:
                    raise file_changed(file)
                transfer = stack.enter_context(closing(connection.transfercmd(f"RETR {_wire(path)}")))
            at_end = False

            def read(size: int) -> bytes:
                nonlocal at_end
                with self._failures(file):
                    piece: bytes = transfer.recv(min(size, _MAX_AT_ONCE))
                at_end = not piece
                return piece

            def check() -> None:
                with self._failures(file):
                    if at_end:
                        # What the transfer ended with is said on the other connection: 226 whole, 426 broken off.
                        _end(transfer)
                        connection.voidresp()
                        facts = _facts(connection, path)
                    else:
                        # The reader had enough. The server may still push; a second connection need not wait for that.
                        with self._connect() as another:
                            facts = _facts(another, path)
                if facts.version != file.version:
                    raise file_changed(file)

            reader = CheckedReader(file, read, check)
            yield reader
            reader.leave()

    @contextmanager
    def _connect(self) -> Iterator[ftplib.FTP]:
        account, limit = self._account, self._timeout_seconds
        # Latin-1 carries every byte as it is; _wire and _path_of turn it into the names we write.
        connection = (
            _ReusingTls(timeout=limit, encoding="latin-1", context=account.tls)
            if account.tls
            else ftplib.FTP(timeout=limit, encoding="latin-1")
        )
        try:
            connection.connect(account.host, account.port)
            connection.login(_wire(account.user), _wire(account.password))
            if isinstance(connection, ftplib.FTP_TLS):
                connection.prot_p()
            yield connection
        finally:
            connection.close()

    def _files(self, connection: ftplib.FTP) -> Iterator[tuple[str, _Facts]]:
        if not _is_folder(connection, self._path):
            yield self._path, _facts(connection, self._path)
            return
        entries = 0
        folders = [(self._path, 1)]
        while folders:
            folder, depth = folders.pop()
            if depth > self._deepest:
                raise too_large(self.address, f"folders more than {self._deepest} deep")
            for name, kind, facts in _entries(connection, folder):
                entries += 1
                if entries > self._max_entries:
                    raise too_large(self.address, f"more than {self._max_entries} entries")
                # A name with a slash would lead out of the folder; no honest server has one.
                if is_unfinished(name) or "/" in name:
                    continue
                path = f"{folder.rstrip('/')}/{name}"
                if kind == "dir":
                    folders.append((path, depth + 1))
                elif facts:
                    yield path, facts

    @contextmanager
    def _failures(self, file: Waiting | None = None) -> Iterator[None]:
        """Say what the server answered in the words of a handler."""
        address = file.address if file else self.address
        try:
            yield
        except ftplib.error_perm as error:
            if _no_such_file(error):
                raise (file_gone(file) if file else missing_source(self.address)) from error
            raise _refusal(address, str(error)) from error
        except ssl.SSLCertVerificationError as error:
            raise _refusal(address, f"its certificate is not good: {error.verify_message}") from error
        except (ftplib.Error, OSError, EOFError) as error:
            raise Retryable(
                f"{address} cannot be reached now, or broke off ({type(error).__name__}): check the server.",
                code="SOURCE_UNAVAILABLE",
            ) from error


class _ReusingTls(ftplib.FTP_TLS):
    """FTP with TLS whose data connections resume the session of the first one, as many servers demand."""

    def ntransfercmd(self, cmd: str, rest: int | str | None = None) -> tuple[socket, int | None]:
        data, size = ftplib.FTP.ntransfercmd(self, cmd, rest)
        session = self.sock.session if isinstance(self.sock, ssl.SSLSocket) else None
        return self.context.wrap_socket(data, server_hostname=self.host, session=session), size


@dataclass(frozen=True, slots=True)
class _Facts:
    modified_at: str
    """YYYYMMDDHHMMSS, of UTC; fractions are left out, as not every answer of a server has them."""
    size: int

    @property
    def version(self) -> str:
        return f"{self.modified_at}-{self.size}"


def _facts(connection: ftplib.FTP, path: str) -> _Facts:
    """The date and the size of one file."""
    # A listing leaves the text mode behind, in which SIZE is refused, or wrong.
    connection.voidcmd("TYPE I")
    modified_at = connection.voidcmd(f"MDTM {_wire(path)}")[4:18]
    size = connection.size(_wire(path))
    if size is None or not modified_at.isdigit():
        raise ftplib.error_reply(f"no date or size of {quote_path(path)}")
    return _Facts(modified_at, size)


def _entries(connection: ftplib.FTP, folder: str) -> Iterator[tuple[str, str, _Facts | None]]:
    """What a folder holds: each name with what it is, and for files their facts."""
    try:
        entries = list(connection.mlsd(_wire(folder), ["type", "size", "modify"]))
    except ftplib.error_perm as error:
        if not str(error).startswith(_NOT_KNOWN):
            raise
    else:
        for raw, attributes in entries:
            facts = (
                _Facts(attributes["modify"][:14], int(attributes["size"]))
                if {"modify", "size"} <= attributes.keys()
                else None
            )
            if attributes.get("type", "").lower() in {"file", "dir"}:
                yield _path_of(raw), attributes["type"].lower(), facts
        return
    # An old server: names alone, and three questions about each.
    try:
        names = connection.nlst(_wire(folder))
    except ftplib.error_perm as error:
        if not _no_such_file(error):
            raise
        names = []  # so some servers say that a folder is empty
    for raw in names:
        name = _path_of(raw).rstrip("/").rpartition("/")[2]
        path = f"{folder.rstrip('/')}/{name}"
        if _is_folder(connection, path):
            yield name, "dir", None
            continue
        try:
            yield name, "file", _facts(connection, path)
        except ftplib.error_perm as error:
            if not _no_such_file(error):
                raise  # otherwise a file that went away, or none that can be read


def _is_folder(connection: ftplib.FTP, path: str) -> bool:
    try:
        connection.cwd(_wire(path))
    except ftplib.error_perm as error:
        if not _no_such_file(error):
            raise
        return False
    return True


def _no_such_file(error: ftplib.error_perm) -> bool:
    """Whether a refusal means "not there"; 550 is said of what may not be read as well, and only the words differ."""
    text = str(error).lower()
    return text.startswith(_NO_SUCH_FILE) and not any(word in text for word in ("denied", "permission", "privilege"))


def _end(transfer: socket) -> None:
    if isinstance(transfer, ssl.SSLSocket):
        with suppress(OSError):  # some servers close without a goodbye
            transfer.unwrap()
    transfer.close()


def _time_of(modified_at: str) -> float:
    return datetime.strptime(modified_at, "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()


def _wire(path: str) -> str:
    return path.encode("utf-8", "surrogateescape").decode("latin-1")


def _path_of(raw: str) -> str:
    return raw.encode("latin-1").decode("utf-8", "surrogateescape")


def _refusal(address: str, answer: str) -> Permanent:
    return Permanent(
        f"{address} may not be read ({answer}): check PENSTOCK_INGEST_FTP_USER, PENSTOCK_INGEST_FTP_PASSWORD and what "
        "that account may do.",
        code="SOURCE_REFUSED",
    )
