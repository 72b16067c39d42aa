"""Stands for a program that a warm server runs (:mod:`tests.fork_server.server`): same streams, signals and exit code.

``launcher.py SOCKET PYTHON SCRIPT [ARGUMENT…]``. It is run by an interpreter without ``site``, and imports little, for
it is started for every command.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import sys

FORWARDED = {signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2}


def main(address: str, python: str, script: str, *arguments: str) -> None:
    """Have it run, and end as it ends."""
    if not script.endswith(".py") and os.path.basename(script) != "penstock":  # noqa: PTH119
        os.execv(python, [python, script, *arguments])  # python -m, python -c
    signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)
    server = socket.socket(socket.AF_UNIX)
    server.connect(address)
    ignored = {number for number in FORWARDED if signal.getsignal(number) is signal.SIG_IGN}
    umask = os.umask(0)
    os.umask(umask)
    asked = {
        "script": script,
        "arguments": arguments,
        "directory": os.getcwd(),  # noqa: PTH109
        "environment": dict(os.environ),
        "ignored_signals": sorted(ignored),
        "umask": umask,
    }
    message = json.dumps(asked).encode()
    socket.send_fds(server, [struct.pack("!i", len(message))], [0, 1, 2])
    server.sendall(message)
    if server.recv(1) != b"f":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
        os.execv(python, [python, script, *arguments])
    for number in FORWARDED - ignored:
        signal.signal(number, lambda one, _: server.send(bytes([one])))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, FORWARDED)
    status = b""
    while len(status) < 4:
        part = server.recv(4 - len(status))
        if not part:
            raise SystemExit(f"the warm server ended while it ran {script}")
        status += part
    (ended,) = struct.unpack("!i", status)
    if os.WIFSIGNALED(ended):
        cause = os.WTERMSIG(ended)
        if cause != signal.SIGKILL:
            signal.signal(cause, signal.SIG_DFL)
        os.kill(os.getpid(), cause)
    os._exit(os.waitstatus_to_exitcode(ended))


if __name__ == "__main__":
    main(*sys.argv[1:])
