"""Reads a DOCX part by part: headers, body, footers and notes, with the document's own properties.

python-docx loads every part with its pictures and leaves out content controls and text boxes, so the parts are
streamed through the XML parser here, and only those that hold text or properties.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from zipfile import BadZipFile, ZipFile

from penstock.ingest import check_zip, open_zip, read_member
from penstock_apps.documents.reading.bounds import Bounds
from penstock_apps.documents.reading.collected_text import TextCollector
from penstock_apps.documents.reading.docx_text import WordText
from penstock_apps.documents.reading.findings import Findings, PageCountSource, fact, moment
from penstock_apps.documents.reading.markup import read_xml

_LONGEST_FACT = 10_000


@dataclass(frozen=True, slots=True)
class _Relationship:
    """One part's reference to another."""

    identifier: str
    role: str
    target: str


def read_docx(data: bytes, bounds: Bounds) -> Findings:
    """Text in reading order: what is printed above, the body, what is printed below, then the notes."""
    with open_zip(data, bounds.max_members) as archive:
        check_zip(archive, len(data), bounds.of_zip)
        names = frozenset(archive.namelist())
        main = _main_part(archive, names, bounds)
        relationships = _relationships(archive, names, main, bounds)
        body = WordText(TextCollector(bounds.max_text_characters))
        read_xml(read_member(archive, main, bounds.of_zip), body, bounds)
        pieces = [
            *_parts(archive, names, relationships, body.header_ids, bounds),
            body.text(),
            *_parts(archive, names, relationships, body.footer_ids, bounds),
            *_notes(archive, names, relationships, bounds),
        ]
        collector = TextCollector(bounds.max_text_characters)
        collector.add("\n".join(piece for piece in pieces if piece))
        findings = Findings(text=collector.text(), truncated=collector.truncated or body.is_finished)
        _read_properties(archive, names, findings, bounds)
    if not findings.text:
        findings.warnings.append("No text was found; the document may hold only pictures.")
    return findings


def _main_part(archive: ZipFile, names: frozenset[str], bounds: Bounds) -> str:
    targets = [part.target for part in _relationships(archive, names, "", bounds) if part.role == "officeDocument"]
    for name in (*targets, "word/document.xml"):
        if name in names:
            return name
    raise BadZipFile("there is no main document in the archive")


def _relationships(archive: ZipFile, names: frozenset[str], part: str, bounds: Bounds) -> list[_Relationship]:
    folder, name = posixpath.split(part)
    source = posixpath.join(folder, "_rels", f"{name}.rels")
    if source not in names:
        return []
    handler = _RelationshipList(folder)
    read_xml(read_member(archive, source, bounds.of_zip), handler, bounds)
    return handler.relationships


def _parts(
    archive: ZipFile,
    names: frozenset[str],
    relationships: list[_Relationship],
    identifiers: list[str],
    bounds: Bounds,
) -> list[str]:
    """The texts of the parts with these identifiers, each text once."""
    targets = {relationship.identifier: relationship.target for relationship in relationships}
    texts: dict[str, None] = {}
    for target in dict.fromkeys(targets.get(identifier, "") for identifier in identifiers):
        if target in names:
            texts[_text_of(archive, target, bounds)] = None
    return list(texts)


def _notes(archive: ZipFile, names: frozenset[str], relationships: list[_Relationship], bounds: Bounds) -> list[str]:
    return [
        _text_of(archive, relationship.target, bounds)
        for role in ("footnotes", "endnotes")
        for relationship in relationships
        if relationship.role == role and relationship.target in names
    ]


def _text_of(archive: ZipFile, name: str, bounds: Bounds) -> str:
    handler = WordText(TextCollector(bounds.max_text_characters))
    read_xml(read_member(archive, name, bounds.of_zip), handler, bounds)
    return handler.text()


def _read_properties(archive: ZipFile, names: frozenset[str], findings: Findings, bounds: Bounds) -> None:
    properties = _Properties()
    for name in ("docProps/core.xml", "docProps/app.xml"):
        if name in names:
            read_xml(read_member(archive, name, bounds.of_zip), properties, bounds)
    values = properties.values
    findings.title = fact(values.get("title"))
    findings.author = fact(values.get("creator"))
    findings.description = fact(values.get("description") or values.get("subject"))
    findings.language = fact(values.get("language"))
    findings.created = moment(values.get("created"))
    findings.modified = moment(values.get("modified"))
    pages = values.get("Pages", "").strip()
    if pages.isascii() and pages.isdigit() and 0 < len(pages) < 10 and int(pages) > 0:
        findings.page_count = int(pages)
        findings.page_count_source = PageCountSource.DECLARED


class _RelationshipList:
    """Collects a part's references to other parts of the archive."""

    is_finished = False

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.relationships: list[_Relationship] = []

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        # Targets outside of the archive are addresses, which nobody here follows.
        if not tag.endswith("}Relationship") or attributes.get("TargetMode") == "External":
            return
        target = attributes.get("Target", "")
        path = target.lstrip("/") if target.startswith("/") else posixpath.join(self._folder, target)
        role = attributes.get("Type", "").rpartition("/")[2]
        self.relationships.append(_Relationship(attributes.get("Id", ""), role, posixpath.normpath(path)))

    def end(self, tag: str) -> None:
        """Everything is in the attributes."""

    def data(self, text: str) -> None:
        """Everything is in the attributes."""


class _Properties:
    """Collects the properties' values by their local names, the first of each."""

    is_finished = False

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self._name: str | None = None
        self._value: list[str] = []

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._name = tag.rpartition("}")[2]
        self._value = []

    def end(self, tag: str) -> None:
        if self._name is not None:
            self.values.setdefault(self._name, "".join(self._value)[:_LONGEST_FACT])
            self._name = None

    def data(self, text: str) -> None:
        if self._name is not None:
            self._value.append(text)
