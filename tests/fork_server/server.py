"""An interpreter that has loaded the libraries already, and forks itself for every program it is asked to run.

Most of what a start of ``penstock`` costs is imports, and the tests start it hundreds of times. This process imports
what it is told to once. Our own packages read nothing from the environment while they are imported, and what a command
loads and when is shown by tests that start real interpreters.

A launcher (:mod:`tests.fork_server.launcher`) connects, and sends what a program is made of: its three standard
streams, directory, environment and command line. It gets a byte back: ``r`` (start the real one yourself, for the
environment asks for another interpreter than this) or ``f`` (forked), and four bytes at the end, the status that
``wait`` gave. Each byte it sends is a signal for the program. When it hangs up, the program is killed, and when the
standard input of this process ends, which it does with the tests, all of them are.

The child leaves :meth:`Server.serve` and goes on as the main module of a fresh interpreter would, so that the
interpreter's own end (threads, ``atexit``, buffers, the exit code of an exception) is the real one.

``server.py SOCKET MODULE…``; a package with a ``.*`` behind it is meant with all that is below.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import re
import selectors
import signal
import socket
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# Read by the interpreter, the C library or a library while it starts. Two of PYTHON… are easily done afterwards.
AT_THE_START = (
    *("COVERAGE", "DISABLE_SQLALCHEMY", "FORCE_COLOR", "GITHUB_ACTIONS", "LANG", "LC_", "LD_", "PYDANTIC_", "PYTHON"),
    *("PY_COLORS", "TERMINAL_WIDTH", "TYPER_", "_TYPER"),
)
AFTERWARDS = ("PYTHONFAULTHANDLER", "PYTHONUNBUFFERED")
LEFT_TO_PROGRAMS = re.compile(r"\.(migrations|__main__|kafka|celery|testing|process_child)(\.|$)")


@dataclass(frozen=True)
class Asked:
    """A program somebody wants to have run."""

    script: str
    arguments: list[str]
    directory: str
    environment: dict[str, str]
    ignored_signals: list[int]
    umask: int


def fixed(environment: dict[str, str]) -> dict[str, str]:
    """The part of an environment that has to be the same for all programs of one server."""
    return {
        name: value for name, value in environment.items() if name.startswith(AT_THE_START) and name not in AFTERWARDS
    }


def load(modules: Sequence[str]) -> None:
    """Import the modules; one that is not installed is left to the program that misses it."""
    for name in modules:
        package = name.removesuffix(".*")
        for found in [package] if package == name else [package, *modules_below(package)]:
            try:
                importlib.import_module(found)
            except ModuleNotFoundError:
                continue
    gc.collect()
    gc.freeze()  # what is never collected is never written to, and stays shared with the children


def modules_below(package: str) -> list[str]:
    """Those that programs share; revisions, and what needs an engine of others, are left to who uses them."""
    paths = importlib.import_module(package).__path__
    found = pkgutil.walk_packages(paths, f"{package}.", onerror=lambda _: None)
    return [module.name for module in found if not LEFT_TO_PROGRAMS.search(module.name)]


class Server:
    """Takes orders at a socket, forks, and tells each launcher how its program ended."""

    def __init__(self, address: str) -> None:
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(address)
        self._listening.listen(64)
        self._own = dict(os.environ)
        self._selector = selectors.DefaultSelector()
        self._woken, self._waking = socket.socketpair()
        for end in (self._woken, self._waking):
            end.setblocking(False)
        self._launchers: dict[int, socket.socket] = {}  # by the process they wait for
        signal.set_wakeup_fd(self._waking.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for readable in (self._listening, self._woken, sys.stdin):
            self._selector.register(readable, selectors.EVENT_READ)

    def serve(self) -> Asked | None:
        """Answers in a child, with what it is to run; in the server, with nothing and when the tests are over."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._listening:
                    if asked := self._take():
                        return asked
                elif key.fileobj is self._woken:
                    self._woken.recv(4096)
                    self._reap()
                elif key.fileobj is sys.stdin:
                    for process in self._launchers:
                        os.kill(process, signal.SIGKILL)
                    return None
                else:
                    self._pass_on(key.data)

    def _take(self) -> Asked | None:
        launcher, _ = self._listening.accept()
        try:
            told, streams = _received(launcher)
        except (OSError, ValueError):  # it was killed before it had said what it wants
            launcher.close()
            return None
        asked = Asked(**told)
        process = None
        if fixed(asked.environment) != fixed(self._own):
            _tell(launcher, b"r")
            launcher.close()
        elif process := os.fork():
            self._launchers[process] = launcher
            self._selector.register(launcher, selectors.EVENT_READ, process)
            _tell(launcher, b"f")
        else:
            for stream, descriptor in enumerate(streams):
                os.dup2(descriptor, stream)
            self._close()
            launcher.close()
        for descriptor in streams:
            os.close(descriptor)
        return asked if process == 0 else None

    def _pass_on(self, process: int) -> None:
        launcher = self._launchers.get(process)
        if launcher is None:  # it ended in this very round
            return
        try:
            signals = launcher.recv(64)
        except OSError:
            signals = b""
        if not signals:
            self._selector.unregister(launcher)
        for one in signals or [signal.SIGKILL]:
            os.kill(process, one)  # not reaped yet, so the number is still its own

    def _reap(self) -> None:
        for process in list(self._launchers):
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                launcher = self._launchers.pop(process)
                if launcher in self._selector.get_map():
                    self._selector.unregister(launcher)
                _tell(launcher, struct.pack("!i", status))
                launcher.close()

    def _close(self) -> None:
        """Forget in a child what is the server's."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._selector.close()
        for one in (self._listening, self._woken, self._waking, *self._launchers.values()):
            one.close()


def _received(launcher: socket.socket) -> tuple[dict[str, Any], list[int]]:
    launcher.settimeout(10)
    start, streams, _, _ = socket.recv_fds(launcher, 4, 3)
    parts = bytearray()
    try:
        size = int.from_bytes(start, "big")
        while len(parts) < size and (part := launcher.recv(size - len(parts))):
            parts += part
        told = json.loads(parts)
    except (OSError, ValueError):
        for descriptor in streams:  # else whoever reads from the other end would wait for ever
            os.close(descriptor)
        raise
    launcher.settimeout(None)
    return told, list(streams)


def _tell(launcher: socket.socket, said: bytes) -> None:
    with contextlib.suppress(OSError):  # killed: nobody waits for it
        launcher.sendall(said)


def become(asked: Asked) -> dict[str, Any]:
    """Make this process what a fresh interpreter would be; answers with the names of its main module."""
    import io
    import tempfile
    import time
    from importlib.machinery import SourceFileLoader
    from pathlib import Path
    from types import ModuleType

    os.chdir(asked.directory)
    os.umask(asked.umask)
    os.environ.clear()
    os.environ.update(asked.environment)
    time.tzset()
    tempfile.tempdir = None
    for number in asked.ignored_signals:
        signal.signal(number, signal.SIG_IGN)

    unbuffered = bool(asked.environment.get("PYTHONUNBUFFERED"))
    for name, descriptor in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        old = getattr(sys, name)
        mode = "rb" if descriptor == 0 else "wb"
        raw = open(descriptor, mode, buffering=0 if unbuffered and descriptor else -1, closefd=False)  # noqa: SIM115
        stream = io.TextIOWrapper(
            raw,
            encoding=old.encoding,
            errors=old.errors,
            line_buffering=not unbuffered and (descriptor == 2 or raw.isatty()),
            write_through=unbuffered,
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    if asked.environment.get("PYTHONFAULTHANDLER"):
        import faulthandler

        faulthandler.enable()

    script = str(Path(asked.script).absolute())
    sys.argv = [asked.script, *asked.arguments]
    sys.orig_argv = [sys.executable, *sys.argv]
    sys.path[0] = str(Path(script).parent)
    process = sys.modules.get("multiprocessing.process")
    if process is not None:
        process.ORIGINAL_DIR = asked.directory  # type: ignore[attr-defined]
    main = ModuleType("__main__")
    main.__file__ = script
    main.__loader__ = SourceFileLoader("__main__", script)
    vars(main)["__builtins__"] = __builtins__
    sys.modules["__main__"] = main
    return vars(main)


if __name__ == "__main__":
    load(sys.argv[2:])
    server = Server(sys.argv[1])
    print("ready", flush=True)
    wanted = server.serve()
    if wanted is not None:
        names = become(wanted)
        with open(names["__file__"], "rb") as source:  # noqa: PTH123
            code = compile(source.read(), names["__file__"], "exec")
        exec(code, names)
