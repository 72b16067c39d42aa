"""Reads a workbook with the standard library alone: what is written is not judged by what we read with."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET
from zipfile import ZipFile

_NAMES = {
    "m": "http://schemas.openxmlformats.org/spreadsheetml/2006/main",
    "r": "http://schemas.openxmlformats.org/package/2006/relationships",
}
_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_ESCAPED = re.compile("_x([0-9A-F]{4})_")


def sheets_of(source: Path | bytes) -> dict[str, ET.Element]:
    """The XML of each sheet by its name, in the order of the workbook."""
    with ZipFile(io.BytesIO(source) if isinstance(source, bytes) else source) as book:
        targets = {
            relation.get("Id"): relation.get("Target")
            for relation in ET.fromstring(book.read("xl/_rels/workbook.xml.rels"))
        }
        named = ET.fromstring(book.read("xl/workbook.xml")).findall("m:sheets/m:sheet", _NAMES)
        return {str(sheet.get("name")): ET.fromstring(book.read(f"xl/{targets[sheet.get(_ID)]}")) for sheet in named}


def values_of(sheet: ET.Element) -> list[list[Any]]:
    """The rows of a sheet, each up to its last cell; what is left out is None."""
    rows = []
    for row in sheet.findall("m:sheetData/m:row", _NAMES):
        values: list[Any] = []
        for cell in row.findall("m:c", _NAMES):
            letters = str(cell.get("r")).rstrip("0123456789")
            column = 0
            for letter in letters:
                column = column * 26 + ord(letter) - 64
            values += [None] * (column - len(values))
            values[column - 1] = _value(cell)
        rows.append(values)
    return rows


def read_workbook(source: Path | bytes) -> dict[str, list[list[Any]]]:
    """What is in each sheet."""
    return {name: values_of(sheet) for name, sheet in sheets_of(source).items()}


def _value(cell: ET.Element) -> Any:
    kind, written = cell.get("t", "n"), cell.findtext("m:v", None, _NAMES)
    if kind == "inlineStr":
        text = "".join(part.text or "" for part in cell.iterfind("m:is//m:t", _NAMES))
        return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
    if written is None:
        return None
    if kind == "b":
        return written == "1"
    assert kind == "n", f"a cell of type {kind}"
    return int(written) if written.lstrip("-").isdecimal() else float(written)
