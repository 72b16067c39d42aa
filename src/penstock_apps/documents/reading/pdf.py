"""Reads a PDF page by page with pypdf, inside the bounds and without its noise."""

from __future__ import annotations

import io
import logging
import math
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from penstock import Permanent
from penstock_apps.documents.reading.bounds import Bounds
from penstock_apps.documents.reading.collected_text import TextCollector, clean_line
from penstock_apps.documents.reading.failures import DocumentFailure, classify
from penstock_apps.documents.reading.findings import Findings, Page, PageCountSource, fact
from penstock_apps.documents.reading.pdf_metering import StreamMeter, use_meter

if TYPE_CHECKING:
    from pypdf import PageObject, PdfReader

_BETWEEN_PAGES = "\n\n"
_MAX_REPAIRS = 10
_LINEARIZATION = re.compile(rb"/Linearized\b[^>]{0,200}?/L\s{1,20}(\d{1,12})\b")


def read_pdf(data: bytes, bounds: Bounds) -> Findings:
    """Text, pages and metadata of a PDF; one that asks for a password is refused, an empty one is tried first."""
    import pypdf

    _check_complete(data)
    meter = StreamMeter(bounds)
    with _quiet() as repairs, use_meter(meter), pypdf.apply_configuration(disable_legacy_handling=True):
        try:
            findings = _read(data, bounds, meter)
        except Exception:
            # What pypdf made of a refused stream may hide why.
            meter.check()
            raise
        meter.check()
    findings.warnings += [f"Repaired while reading: {repair}" for repair in repairs]
    return findings


def _read(data: bytes, bounds: Bounds, meter: StreamMeter) -> Findings:
    reader = _open(data, bounds)
    findings = Findings()
    if reader.is_encrypted:
        findings.warnings.append("The document is encrypted with an empty password, which opened it.")
    count = len(reader.pages)
    meter.check()
    if count == 0:
        raise DocumentFailure.EMPTY.error("It has no pages.")
    if count > bounds.max_pages:
        raise DocumentFailure.TOO_COMPLEX.error(f"It has {count} pages; at most {bounds.max_pages}.")
    findings.page_count = count
    findings.page_count_source = PageCountSource.COUNTED
    _read_metadata(reader, findings)
    collector = TextCollector(bounds.max_text_characters)
    failures = []
    for number in range(1, count + 1):
        try:
            page = _read_page(reader, number, collector, meter)
        except Permanent as failure:
            if failure.code != DocumentFailure.CORRUPT.code:
                raise  # what is wrong is not this page's alone: a bound, a password, a library
            failures.append(failure)
            cause = failure.__cause__
            problem = f"It is damaged and could not be read ({type(cause).__name__}: {clean_line(str(cause))[:500]})."
            page = Page(number=number, characters=None, words=None, width=None, height=None, problem=problem)
        findings.pages.append(page)
    if len(failures) == count:
        raise failures[0]
    findings.text = collector.text().strip()
    findings.truncated = collector.truncated
    if failures:
        verb = "was" if len(failures) == 1 else "were"
        findings.warnings.append(f"{len(failures)} of {count} pages could not be read, and {verb} left out.")
    elif not findings.text:
        findings.warnings.append("No text was found; the pages may be scanned images.")
    return findings


def _open(data: bytes, bounds: Bounds) -> PdfReader:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError

    try:
        reader = PdfReader(io.BytesIO(data), xref_stream_maximum_entries=bounds.max_objects)
        is_locked = reader.is_encrypted and not reader.decrypt("")
    except (NotImplementedError, DependencyError) as error:
        # Said of security handlers other than the standard one (certificates, rights management), and of AES where
        # the cryptography package is not installed.
        raise DocumentFailure.ENCRYPTED.error(f"({error})") from error
    if is_locked:
        raise DocumentFailure.ENCRYPTED.error("It asks for a password.")
    return reader


def _read_page(reader: PdfReader, number: int, collector: TextCollector, meter: StreamMeter) -> Page:
    meter.begin_page()
    try:
        page = reader.pages[number - 1]
        width, height = _size(page)
        text = None if collector.full else page.extract_text(visitor_operand_before=meter.draw)
    except Exception as error:
        meter.check()
        failure = classify(error, where=f"On page {number}: ")
        if failure is error:
            raise
        raise failure from error
    if text is None:
        return Page(number=number, characters=None, words=None, width=width, height=height)
    meter.check()
    if number > 1:
        collector.add(_BETWEEN_PAGES)
    kept_text = collector.add(text.strip())
    return Page(number=number, characters=len(kept_text), words=len(kept_text.split()), width=width, height=height)


def _size(page: PageObject) -> tuple[float | None, float | None]:
    try:
        sides = (float(page.mediabox.width), float(page.mediabox.height))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None, None
    return (round(sides[0], 2), round(sides[1], 2)) if all(map(math.isfinite, sides)) else (None, None)


def _read_metadata(reader: PdfReader, findings: Findings) -> None:
    """Take what the document says about itself; nonsense there is no reason to refuse its pages."""
    from pypdf.errors import PyPdfError

    try:
        information = reader.metadata
        findings.language = fact(reader.root_object.get("/Lang"))
        if information is None:
            return
        findings.title = fact(information.title)
        findings.author = fact(information.author)
        findings.description = fact(information.subject)
        findings.created = _moment(information.creation_date)
        findings.modified = _moment(information.modification_date)
    except (PyPdfError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        findings.warnings.append(f"Part of the metadata is unreadable ({clean_line(str(error))}).")


def _moment(value: datetime | None) -> str | None:
    return value.isoformat() if value is not None else None


def _check_complete(data: bytes) -> None:
    """Refuse a file that was cut off: pypdf would find some of its pages and call that the document."""
    linearization = _LINEARIZATION.search(data, 0, 2048)
    if linearization is not None and int(linearization[1]) > len(data):
        raise DocumentFailure.CORRUPT.error(f"It was {int(linearization[1])} bytes long, and {len(data)} are here.")
    if b"%%EOF" not in data and b"startxref" not in data:
        raise DocumentFailure.CORRUPT.error("Its end is missing: there is neither startxref nor %%EOF.")


class _Repairs(logging.Handler):
    """Keeps the first few different messages."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        message = clean_line(record.getMessage())
        if len(self.messages) < _MAX_REPAIRS and message not in self.messages:
            self.messages.append(message)


@contextmanager
def _quiet() -> Iterator[list[str]]:
    """Keep pypdf's warnings out of our log, and hand over what it says it repaired."""
    logger = logging.getLogger("pypdf")
    propagates, repairs = logger.propagate, _Repairs()
    logger.propagate = False
    logger.addHandler(repairs)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield repairs.messages
    finally:
        logger.removeHandler(repairs)
        logger.propagate = propagates
