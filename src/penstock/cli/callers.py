"""Who asks on the command line."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock import Caller


def caller(user: str | None, *, is_program: bool = False) -> Caller:
    """The user named with ``--as``; without it an administrator by the login name: who has the database may do all.

    A program of theirs (``--system``) acts as the system, by the same name.
    """
    from penstock import Caller, admin, owner
    from penstock.errors import InvalidInput
    from penstock.lifecycle import Actor

    if is_program:
        if user is not None:
            raise InvalidInput("--as and --system contradict each other: a user is not the system", field="--system")
        return Caller(Actor.SYSTEM, login_name())
    return owner(user) if user is not None else admin(login_name())


def login_name() -> str:
    """The name the operating system knows the person at the keyboard by."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
