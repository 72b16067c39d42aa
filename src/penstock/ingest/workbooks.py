"""The parts of an .xlsx workbook, each unpacked no further than the limits allow."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import IO
from xml.parsers import expat

from penstock.errors import InvalidInput, PayloadTooLarge
from penstock.ingest.limits import TableLimits
from penstock.ingest.number_formats import (
    Epoch,
    Meaning,
    duration,
    meaning_of,
    meaning_of_built_in,
    moment,
    padded_width,
    plain_number,
)
from penstock.ingest.sheet_xml import (
    Attributes,
    Handlers,
    NumberedRow,
    SheetReader,
    StringReader,
    local,
)
from penstock.ingest.zip_files import open_zip

SHARED_STRINGS_BYTES = 256 * 1024**2
_STRINGS_HELD_BYTES = 2 * SHARED_STRINGS_BYTES
_MOST_PARTS = 10_000
_SMALL_PART_BYTES = 32 * 1024**2
_TOKEN_BYTES = 1024**2
_CHUNK = 64 * 1024
_moment = lru_cache(10_000)(moment)  # a table says the same days again and again


class Workbook:
    """The parts of a workbook, each unpacked no further than the limits allow."""

    def __init__(self, file: IO[bytes], limits: TableLimits) -> None:
        self._limits = limits
        self._archive = open_zip(file, _MOST_PARTS)
        self._unpacked_bytes = 0
        if sum(member.file_size for member in self._archive.infolist()) > limits.decompressed_bytes:
            raise _too_large(limits.decompressed_bytes)
        self._epoch = Epoch.WINDOWS
        self._paths: dict[str, str] = {}
        self._hidden: set[str] = set()
        self._strings: list[str] = []
        self._formats: dict[str, Callable[[str], str]] = {}
        self._read_parts()

    def sheets_to_try(self, chosen_sheet: str | None) -> list[str]:
        """Give the names of the sheets in their order, hidden ones last; or the wanted one alone."""
        if chosen_sheet is None:
            return sorted(self._paths, key=self._hidden.__contains__)
        if chosen_sheet not in self._paths:
            names = ", ".join(repr(name) for name in list(self._paths)[:20])
            raise InvalidInput(
                f"The workbook has no sheet {chosen_sheet!r}. It has {names}.", field="sheet", code="SHEET_UNKNOWN"
            )
        return [chosen_sheet]

    def rows(self, sheet: str) -> Iterator[NumberedRow]:
        """Give each row that has any text: its number, and its cells without the empty ones at its end."""
        limits = self._limits
        reader = SheetReader(self._strings, self._formats, limits.columns, limits.cell_characters)
        for _ in self._walk(self._paths[sheet], reader.handlers()):
            yield from reader.take_rows()

    def _read_parts(self) -> None:
        # Where the workbook lies is written in the package's own relations; writers differ in the rest.
        (main,) = [target for kind, target in self._relations("").values() if kind == "officeDocument"]
        relations = self._relations(main)

        def see(name: str, attributes: Attributes) -> None:
            if name == "workbookPr" and attributes.get("date1904", "0") in {"1", "true"}:
                self._epoch = Epoch.MAC
            elif name == "sheet":
                kind, target = relations[next(value for key, value in attributes.items() if local(key) == "id")]
                if kind == "worksheet":
                    self._paths[attributes["name"]] = target
                    if attributes.get("state", "visible") != "visible":
                        self._hidden.add(attributes["name"])

        self._walk_small(main, see)
        for kind, target in relations.values():
            if kind == "styles":
                self._read_styles(target)
            elif kind == "sharedStrings":
                self._read_strings(target)

    def _relations(self, part: str) -> dict[str, tuple[str, str]]:
        """Read which parts a part refers to: identifier → kind and path."""
        folder, _, name = part.rpartition("/")
        relations: dict[str, tuple[str, str]] = {}

        def see(name: str, attributes: Attributes) -> None:
            if name == "Relationship":
                target = attributes["Target"]
                path = target[1:] if target.startswith("/") else f"{folder}/{target}".lstrip("/")
                relations[attributes["Id"]] = attributes["Type"].rpartition("/")[2], path

        self._walk_small(f"{folder}/_rels/{name}.rels".lstrip("/"), see)
        return relations

    def _read_styles(self, part: str) -> None:
        """Find out which styles show a date, and which fill a number up with zeros, as barcodes have them."""
        formats: dict[int, str] = {}
        inside = ""
        count = 0

        def see(name: str, attributes: Attributes) -> None:
            nonlocal inside, count
            if name == "numFmt":
                formats[int(attributes["numFmtId"])] = attributes["formatCode"]
            elif name in {"cellXfs", "cellStyleXfs", "cellStyles", "dxfs"}:
                inside = name
            elif name == "xf" and inside == "cellXfs":
                number = int(attributes.get("numFmtId", 0))
                if format_number := self._format_of(number, formats.get(number)):
                    self._formats[str(count)] = format_number
                count += 1

        self._walk_small(part, see)

    def _format_of(self, number: int, code: str | None) -> Callable[[str], str] | None:
        """How a number is shown under a format; None where it is just that number."""
        match meaning_of_built_in(number) if code is None else meaning_of(code):
            case Meaning.MOMENT:
                return lambda value: _moment(value, self._epoch)
            case Meaning.DURATION:
                return duration
        width = 0 if code is None else padded_width(code)
        return (lambda value: plain_number(value).zfill(width)) if width else None

    def _read_strings(self, part: str) -> None:
        reader = StringReader(self._limits.cell_characters)
        for unpacked_bytes in self._walk(part, reader.handlers()):
            if unpacked_bytes > SHARED_STRINGS_BYTES or reader.held_bytes > _STRINGS_HELD_BYTES:
                raise _too_large(SHARED_STRINGS_BYTES)
        self._strings = reader.strings

    def _walk_small(self, part: str, see: Callable[[str, Attributes], None]) -> None:
        for unpacked_bytes in self._walk(part, lambda name, attributes: see(local(name), attributes)):
            if unpacked_bytes > _SMALL_PART_BYTES:
                raise _too_large(_SMALL_PART_BYTES)

    def _walk(self, part: str, handlers: Handlers | Callable[[str, Attributes], None]) -> Iterator[int]:
        """Feed a part to a parser, chunk by chunk; after each one, give the bytes of the part so far."""
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = _refuse_document_type
        if isinstance(handlers, Handlers):
            parser.StartElementHandler = handlers.start
            parser.EndElementHandler = handlers.end
            parser.CharacterDataHandler = handlers.text
        else:
            parser.StartElementHandler = handlers
        fed_bytes = 0
        with self._open_part(part) as stream:
            while chunk := stream.read(_CHUNK):
                fed_bytes += len(chunk)
                self._unpacked_bytes += len(chunk)
                if self._unpacked_bytes > self._limits.decompressed_bytes:
                    raise _too_large(self._limits.decompressed_bytes)
                parser.Parse(chunk, False)
                # The parser keeps a tag or a comment whole; one without an end would fill the memory.
                if fed_bytes - parser.CurrentByteIndex > _TOKEN_BYTES:
                    raise ValueError(f"{part} has a tag of more than {_TOKEN_BYTES} bytes")
                yield fed_bytes
            parser.Parse(b"", True)
            yield fed_bytes

    @contextmanager
    def _open_part(self, part: str) -> Iterator[IO[bytes]]:
        member = self._archive.getinfo(part)
        if member.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            # The other methods cannot be unpacked in bounded steps, and no spreadsheet program uses them.
            raise ValueError(f"{part} is packed with method {member.compress_type}")
        with self._archive.open(member) as stream:
            yield stream


def _refuse_document_type(*_declaration: object) -> None:
    raise ValueError("its XML declares a document type, which no spreadsheet program writes")


def _too_large(bound: int) -> PayloadTooLarge:
    return PayloadTooLarge(
        f"The workbook, or a part of it, unpacks to more than {bound} bytes. Send it in several parts, or as CSV.",
        field="file",
        code="DECOMPRESSED_TOO_LARGE",
    )
