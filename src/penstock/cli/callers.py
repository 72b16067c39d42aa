"""Who asks on the command line."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock import Caller


def caller(user: str | None) -> Caller:
    """The user named with ``--as``; without it an administrator by the login name: who has the database may do all."""
    from penstock import admin, owner

    return owner(user) if user is not None else admin(login_name())


def login_name() -> str:
    """The name the operating system knows the person at the keyboard by."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
