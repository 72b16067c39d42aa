"""JSON as somebody hands it to a command: in the command line, in a file, or on standard input."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from penstock.errors import InvalidInput

STANDARD_INPUT = "-"


def read_params(text: str) -> Any:
    """JSON, ``@FILE`` with JSON in it, or ``-`` for standard input."""
    if text == STANDARD_INPUT or text.startswith("@"):
        name = text.removeprefix("@")
        with _reading(name) as stream:
            return _parse(stream.read(), f"the JSON in {_display_name(name)}")
    return _parse(text, "params")


def read_items(name: str) -> list[Any]:
    """One value from each line that is not empty."""
    with _reading(name) as stream:
        return [
            _parse(line, f"line {number:,} of {_display_name(name)}")
            for number, line in enumerate(stream, 1)
            if line.strip()
        ]


@contextmanager
def _reading(name: str) -> Iterator[TextIO]:
    try:
        if name == STANDARD_INPUT:
            yield sys.stdin
        else:
            with Path(name).open(encoding="utf-8") as stream:
                yield stream
    except OSError as error:
        raise InvalidInput(
            f"{_display_name(name)} cannot be read: {error.strerror}", code="FILE_NOT_READABLE"
        ) from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{_display_name(name)} is not UTF-8 text", code="FILE_NOT_READABLE") from None


def _parse(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}" if error.lineno > 1 else f"column {error.colno}"
        raise InvalidInput(f"{what} is not JSON: {error.msg} ({where})", code="BAD_JSON") from None
    except RecursionError:
        raise InvalidInput(f"{what} is nested too deeply", code="BAD_JSON") from None


def _display_name(name: str) -> str:
    return "standard input" if name == STANDARD_INPUT else name
