"""Secrets out of texts: what an address has of passwords and keys is not printed, whoever prints it.

Settings, errors and log lines name addresses, so that a reader knows which database or which page is meant. An address
may have a password before its host (``user:password@``) or a key among its parameters (``?password=``, ``&api_key=``),
and libpq writes ``password=`` without an address. All of that becomes ``***``; the rest stays readable.

Texts come from outside, too: every pattern here looks at a character a fixed number of times.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

HIDDEN = "***"

_WORD = re.compile(r"\S+")
# What looks like a port and a path is no password.
_USER = re.compile(r"://[^:/@]*:(?!\d{1,5}[/?#])")
_PARAMETER = re.compile(r"([?&;])([^\s=&?;#]+)=([^\s&;#\"'<>]*)")
_KEYWORD = re.compile(r"\b((?:ssl)?password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s'&]+)", re.IGNORECASE)
_SECRET_NAME = re.compile(
    r"pass(?:word|wd|phrase)|pwd|secret|token|credential|signature|\bsig\b|api[-_.]?key|access[-_.]?key"
    r"|\A(?:key|auth|authorization)\Z"
)


def hide_secrets(text: str) -> str:
    """The text without the passwords and keys of addresses in it.

    >>> hide_secrets("cannot open postgresql://ada:s3cret@db.example/jobs?sslpassword=s3cret&connect_timeout=3")
    'cannot open postgresql://ada:***@db.example/jobs?sslpassword=***&connect_timeout=3'
    >>> hide_secrets("host=db.example password='s 3' user=ada")
    'host=db.example password=*** user=ada'
    >>> hide_secrets("http://db.example:8080/people/ada@example.org")
    'http://db.example:8080/people/ada@example.org'
    """
    if "://" in text:
        text = _WORD.sub(_hide_password, text)
    if "=" in text:
        text = _KEYWORD.sub(rf"\1{HIDDEN}", _PARAMETER.sub(_hide_parameter, text))
    return text


def _hide_password(word: re.Match[str]) -> str:
    """A password may have any character but a blank, also one that should have been escaped: it ends at the last @."""
    address = word[0]
    end = address.rfind("@")
    user = next((user for user in _USER.finditer(address) if user.end() <= end), None)
    return address if user is None else f"{address[: user.end()]}{HIDDEN}{address[end:]}"


def _hide_parameter(parameter: re.Match[str]) -> str:
    before, name, _ = parameter.groups()
    return f"{before}{name}={HIDDEN}" if _SECRET_NAME.search(unquote(name).lower()) else parameter[0]
