"""Ending the program in time, whatever threads the users' code left running."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import sys
import threading
import time
from typing import NoReturn

NOT_HANDED_BACK = 4
"""The exit code of a worker that could not hand back what it held; its leases run out by themselves."""
_WAIT_SECONDS = 2.0


def say(text: str) -> None:
    """A line on the program's own stdout; a handler may have put something else in its place, or closed it."""
    with contextlib.suppress(Exception):
        print(text, file=sys.__stdout__, flush=True)


def leave_within(seconds: float, code: int) -> None:
    """Have the program end after so many seconds, unless it has ended by itself."""

    def leave() -> None:
        time.sleep(seconds)
        say(f"ending now: something did not finish within {seconds:g} s")
        _exit(code)

    threading.Thread(target=leave, name="penstock-leaving", daemon=True).start()


def leave_threads_behind(code: int) -> None:
    """End the program here, if a thread that somebody's code began would keep it from ending."""
    deadline = time.monotonic() + _WAIT_SECONDS
    for thread in _foreign_threads():
        thread.join(max(0.0, deadline - time.monotonic()))
    threads = _foreign_threads()
    if threads:
        say(f"ending, with threads that still run: {', '.join(thread.name for thread in threads)}")
        atexit._run_exitfuncs()
        _exit(code)


def _foreign_threads() -> list[threading.Thread]:
    ours = (threading.main_thread(), threading.current_thread())
    return [thread for thread in threading.enumerate() if not thread.daemon and thread not in ours]


def _exit(code: int) -> NoReturn:
    with contextlib.suppress(BaseException):
        logging.shutdown()
    for stream in (sys.__stdout__, sys.__stderr__):
        with contextlib.suppress(BaseException):
            if stream is not None:
                stream.flush()
    os._exit(code)
