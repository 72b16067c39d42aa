"""Writes a small Word document by hand, so that a sample needs no library and every byte of it is ours."""

from __future__ import annotations

import io
from collections.abc import Sequence
from html import escape
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_WORD_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml"
_MADE_AT = (2026, 3, 1, 9, 0, 0)
_PARTS = {"word/document.xml": "document.main", "word/header1.xml": "header", "word/footer1.xml": "footer"}


def docx_bytes(
    title: str,
    paragraphs: Sequence[str],
    table: Sequence[Sequence[str]] = (),
    last: str = "",
    *,
    author: str = "",
    above: str = "",
    below: str = "",
    created: str = "2026-03-01T09:00:00Z",
) -> bytes:
    """A document: its title, paragraphs, a table and a last paragraph, with a line above and below each page."""
    rows = f"<w:tbl><w:tblPr/>{''.join(map(_table_row, table))}</w:tbl>" if table else ""
    references = "".join(
        f'<w:{kind}Reference w:type="default" r:id="{identifier}" xmlns:r="{_OFFICE}/relationships"/>'
        for kind, identifier in (("header", "rId1"), ("footer", "rId2"))
    )
    heading = f'<w:p><w:pPr><w:outlineLvl w:val="0"/></w:pPr>{_run(title, bold=True)}</w:p>'
    texts = "".join(map(_paragraph, paragraphs))
    body = f"{heading}{texts}{rows}{_paragraph(last)}<w:sectPr>{references}</w:sectPr>"
    return _package({
        "[Content_Types].xml": _content_types(),
        "word/document.xml": f'<w:document xmlns:w="{_WORD}"><w:body>{body}</w:body></w:document>',
        "_rels/.rels": _relations(
            f'Id="rId1" Type="{_OFFICE}/relationships/officeDocument" Target="word/document.xml"',
            f'Id="rId2" Type="{_PACKAGE}/relationships/metadata/core-properties" Target="docProps/core.xml"',
            f'Id="rId3" Type="{_OFFICE}/relationships/extended-properties" Target="docProps/app.xml"',
        ),
        "word/_rels/document.xml.rels": _relations(
            f'Id="rId1" Type="{_OFFICE}/relationships/header" Target="header1.xml"',
            f'Id="rId2" Type="{_OFFICE}/relationships/footer" Target="footer1.xml"',
        ),
        "word/header1.xml": f'<w:hdr xmlns:w="{_WORD}">{_paragraph(above)}</w:hdr>',
        "word/footer1.xml": f'<w:ftr xmlns:w="{_WORD}">{_paragraph(below)}</w:ftr>',
        "docProps/core.xml": _core_properties(title, author, created),
        "docProps/app.xml": f'<Properties xmlns="{_OFFICE}/extended-properties"><Pages>1</Pages></Properties>',
    })  # fmt: skip


def _package(parts: dict[str, str]) -> bytes:
    """The parts as a ZIP that is the same each time."""
    package = io.BytesIO()
    with ZipFile(package, "w", ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(ZipInfo(name, _MADE_AT), _HEAD + content, ZIP_DEFLATED)
    return package.getvalue()


def _paragraph(text: str) -> str:
    return f"<w:p>{_run(text)}</w:p>"


def _run(text: str, *, bold: bool = False) -> str:
    look = "<w:rPr><w:b/></w:rPr>" if bold else ""
    return f'<w:r>{look}<w:t xml:space="preserve">{escape(text, quote=False)}</w:t></w:r>'


def _table_row(cells: Sequence[str]) -> str:
    return "<w:tr>" + "".join(f"<w:tc>{_paragraph(cell)}</w:tc>" for cell in cells) + "</w:tr>"


def _relations(*relations: str) -> str:
    entries = "".join(f"<Relationship {relation}/>" for relation in relations)
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{entries}</Relationships>'


def _content_types() -> str:
    parts = "".join(
        f'<Override PartName="/{name}" ContentType="{_WORD_TYPE}.{kind}+xml"/>' for name, kind in _PARTS.items()
    )
    return (
        f'<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'{parts}<Override PartName="/docProps/core.xml" '
        'ContentType="application/vnd.openxmlformats-package.core-properties+xml"/>'
        '<Override PartName="/docProps/app.xml" '
        'ContentType="application/vnd.openxmlformats-officedocument.extended-properties+xml"/></Types>'
    )


def _core_properties(title: str, author: str, created: str) -> str:
    return (
        f'<cp:coreProperties xmlns:cp="{_PACKAGE}/metadata/core-properties" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:dcterms="http://purl.org/dc/terms/" '
        'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'
        f"<dc:title>{escape(title)}</dc:title><dc:creator>{escape(author)}</dc:creator>"
        f'<dcterms:created xsi:type="dcterms:W3CDTF">{created}</dcterms:created>'
        f'<dcterms:modified xsi:type="dcterms:W3CDTF">{created}</dcterms:modified></cp:coreProperties>'
    )
