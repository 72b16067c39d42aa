"""Headers that an answer has unless it says otherwise: nobody keeps it, and nobody takes it for something else."""

from __future__ import annotations

from collections.abc import Iterable

Header = tuple[bytes, bytes]
_DEFAULTS: tuple[Header, ...] = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
_OF_STREAMS: Header = (b"cache-control", b"no-cache")
"""What the framework says of event streams: a cache might keep such an answer, and ask before it uses it."""
_STREAM = b"text/event-stream"


def with_defaults(headers: Iterable[Header]) -> list[Header]:
    """These headers, and those of the defaults that are missing."""
    headers = list(headers)
    if _OF_STREAMS in headers and any(value.startswith(_STREAM) for name, value in headers if name == b"content-type"):
        headers.remove(_OF_STREAMS)
    names = {name for name, _ in headers}
    return [*headers, *(header for header in _DEFAULTS if header[0] not in names)]
