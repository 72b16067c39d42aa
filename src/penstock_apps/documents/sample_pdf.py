"""Writes a small PDF by hand, so that a sample needs no library and every byte of it is ours."""

from __future__ import annotations

from collections.abc import Sequence

_PAGE_WIDTH, _PAGE_HEIGHT = 595, 842  # A4 in points
_MARGIN, _FONT_SIZE, _LEADING = 72, 12, 18


def pdf_bytes(
    pages: Sequence[Sequence[str]], *, title: str = "", author: str = "", created: str = "20260301090000Z"
) -> bytes:
    """A PDF with one page for each list of lines; characters outside of windows-1252 become question marks."""
    page_numbers = [4 + 2 * index for index in range(len(pages))]
    kids = " ".join(f"{number} 0 R" for number in page_numbers)
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R /Lang (en-GB) >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode("ascii"),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for number, lines in zip(page_numbers, pages, strict=True):
        content = _content(lines)
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {_PAGE_WIDTH} {_PAGE_HEIGHT}] "
            f"/Resources << /Font << /F1 3 0 R >> >> /Contents {number + 1} 0 R >>".encode("ascii")
        )
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content))
    objects.append(
        b"<< /Title %s /Author %s /CreationDate (D:%s) >>" % (_string(title), _string(author), created.encode("ascii"))
    )
    return assemble(objects, information=len(objects))


def assemble(objects: Sequence[bytes], *, information: int | None = None) -> bytes:
    """A file of numbered objects, of which the first is the catalog, with its cross-reference table."""
    body = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    offsets = []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    start = len(body)
    body += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    body += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    info = b" /Info %d 0 R" % information if information is not None else b""
    body += b"trailer\n<< /Size %d /Root 1 0 R%s >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, info, start)
    return bytes(body)


def _content(lines: Sequence[str]) -> bytes:
    top = _PAGE_HEIGHT - _MARGIN
    text = b"\n".join(b"%s Tj T*" % _string(line) for line in lines)
    return b"BT /F1 %d Tf %d TL %d %d Td\n%s\nET" % (_FONT_SIZE, _LEADING, _MARGIN, top, text)


def _string(text: str) -> bytes:
    data = text.encode("windows-1252", "replace")
    return b"(" + data.replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)") + b")"
