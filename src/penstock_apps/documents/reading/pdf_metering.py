"""Keeps pypdf within bounds over a whole document.

pypdf bounds each stream by itself: how far it unpacks, and how many operations it may have. What it does not bound
is the sum over a document, and what a font makes of a string: a character map may turn each byte into hundreds of
characters, and a form may be drawn thousands of times. A meter watches both, while they happen.

pypdf also catches most exceptions inside a form and goes on, so the meter remembers that a bound was passed, refuses
every further stream, and the reader asks it after each page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn

from penstock_apps.documents.reading.bounds import Bounds
from penstock_apps.documents.reading.failures import DocumentFailure

if TYPE_CHECKING:
    from pypdf.generic import StreamObject

# Trying to save what is left of a damaged stream goes byte by byte in Python.
_LARGEST_RECOVERY_BYTES = 1_000_000
_SHOWS_TEXT = frozenset({b"Tj", b"TJ", b"'", b'"'})
_MAP_ENTRY = re.compile(rb"<([^<>]*)>")


class StreamMeter:
    """Counts what one PDF has been unpacked to and what it draws."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._unpacked_bytes = 0
        self._operations = 0
        self._page_characters = 0
        self._longest_mapping = 1
        self._passed_limit: str | None = None

    def check(self) -> None:
        """Raise if a bound was passed, even if pypdf caught the exception then."""
        if self._passed_limit is not None:
            raise DocumentFailure.TOO_COMPLEX.error(self._passed_limit)

    def begin_page(self) -> None:
        """Count the characters of another page."""
        self._page_characters = 0

    def unpack(self, stream: StreamObject, decode: Callable[[StreamObject], bytes]) -> bytes:
        """Decode one stream, at most as far as the document's rest and the stream's packed size allow."""
        import pypdf
        from pypdf.errors import LimitReachedError

        self.check()
        # pypdf has no public name for a stream's packed bytes.
        packed_bytes = len(stream._data)
        remaining = self._bounds.max_unpacked_bytes - self._unpacked_bytes
        limit = max(1, min(remaining, self._bounds.max_stream_bytes, self._bounds.of_zip.unpacking_limit(packed_bytes)))
        with pypdf.apply_configuration(
            zlib_maximum_output_length=limit,
            lzw_maximum_output_length=limit,
            run_length_maximum_output_length=limit,
            brotli_maximum_output_length=limit,
            jbig2_maximum_output_length=limit,
            zlib_maximum_recovery_input_length=_LARGEST_RECOVERY_BYTES,
        ):
            try:
                data = decode(stream)
            except LimitReachedError as error:
                if limit >= remaining:
                    self._pass(f"Its streams unpack to more than {self._bounds.max_unpacked_bytes} bytes.")
                self._pass(f"A stream of {packed_bytes} bytes unpacks to more than {limit} ({error}).")
        self._unpacked_bytes += len(data)
        return data

    def draw(self, operator: bytes, operands: object, *_matrices: object) -> None:
        """Count one drawing operation; pypdf calls this before it carries it out."""
        self._operations += 1
        if self._operations > self._bounds.max_operations:
            self._pass(f"It draws with more than {self._bounds.max_operations} operations.")
        if operator in _SHOWS_TEXT:
            self._page_characters += _shown_length(operands) * self._longest_mapping
            if self._page_characters > self._bounds.max_page_characters:
                self._pass(f"The text of one page may grow beyond {self._bounds.max_page_characters} characters.")

    def look_at(self, data: bytes) -> None:
        """Note how long the strings are to which a character map, if this is one, maps a character."""
        if b"beginbf" in data:
            longest = max((len(match[1]) for match in _MAP_ENTRY.finditer(data)), default=0)
            # Four hexadecimal digits are one UTF-16 unit.
            self._longest_mapping = max(self._longest_mapping, -(-longest // 4))

    def _pass(self, reason: str) -> NoReturn:
        self._passed_limit = reason
        raise DocumentFailure.TOO_COMPLEX.error(reason)


def _shown_length(operands: object) -> int:
    if isinstance(operands, str | bytes):
        return len(operands)
    if isinstance(operands, list):
        return sum(_shown_length(operand) for operand in operands)
    return 0


_meter: ContextVar[StreamMeter | None] = ContextVar("documents_stream_meter", default=None)


@contextmanager
def use_meter(meter: StreamMeter) -> Iterator[None]:
    """Send every stream that pypdf decodes in this context through the meter."""
    _put_meter_into_pypdf()
    token = _meter.set(meter)
    try:
        yield
    finally:
        _meter.reset(token)


@cache
def _put_meter_into_pypdf() -> None:
    """Replace, once, the two places in pypdf that all streams pass by ones that ask the meter of their context.

    The decoder is looked up in its module at each call. A stream without a filter does not come there, and cannot
    grow, but may be a character map: so the data of every stream is looked at where it is handed out.
    """
    from pypdf import filters, generic

    decode = filters.decode_stream_data
    hand_out = generic.StreamObject.get_data

    def decode_stream_data(stream: StreamObject) -> bytes:
        meter = _meter.get()
        return decode(stream) if meter is None else meter.unpack(stream, decode)

    def get_data(stream: StreamObject) -> bytes:
        data = hand_out(stream)
        meter = _meter.get()
        if meter is not None:
            meter.look_at(data)
        return data

    filters.decode_stream_data = decode_stream_data
    stream_class: Any = generic.StreamObject  # the type checker lets nobody replace a method otherwise
    stream_class.get_data = get_data
