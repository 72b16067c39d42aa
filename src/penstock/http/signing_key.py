"""The secret that signs tokens: the one that is set, or one made for an embedded database and kept beside it."""

from __future__ import annotations

import secrets
import stat
from pathlib import Path

from penstock.errors import ConfigurationError
from penstock.private_files import create_private_file
from penstock.settings import Settings

_BYTES = 32


def signing_secret(settings: Settings, database_file: Path | None) -> str:
    """What tokens are signed with; ``database_file`` is where an embedded database lies."""
    if settings.jwt_secret is not None:
        return settings.jwt_secret.get_secret_value()
    if database_file is None:
        raise ConfigurationError(
            "nothing signs the tokens: set PENSTOCK_JWT_SECRET to 32 characters or more, or PENSTOCK_JWKS_URL",
            code="JWT_SECRET_MISSING",
        )
    return _read_or_make(database_file.with_name(database_file.name + ".secret"))


def _read_or_make(path: Path) -> str:
    """The secret in this file, which is made if it is not there. Two processes that start at once read the same one."""
    if not path.exists():
        try:
            create_private_file(path, secrets.token_urlsafe(_BYTES).encode())
        except OSError as error:
            raise ConfigurationError(
                f"the secret that signs tokens cannot be kept in {path.absolute()} ({error.strerror}): set "
                "PENSTOCK_JWT_SECRET to 32 characters or more, or PENSTOCK_DATABASE_URL to a file in a folder that "
                "can be written",
                code="SECRET_NOT_KEPT",
            ) from error
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise ConfigurationError(f"{path} can be read by others; make it private: chmod 600", code="SECRET_NOT_PRIVATE")
    text = path.read_text().strip()
    if len(text) < _BYTES:
        raise ConfigurationError(f"{path} holds no secret; remove it, and a new one is made", code="SECRET_NOT_PRIVATE")
    return text
