"""Makes the files that strangers send to break a reader; each is small and made in milliseconds."""

from __future__ import annotations

import io
import zlib
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from penstock_apps.documents.sample_pdf import assemble
from penstock_apps.documents.samples import write_samples

MEBIBYTE = 1024 * 1024


def sample(directory: Path, suffix: str) -> Path:
    """The good sample with that suffix."""
    return next(path for path in write_samples(directory) if path.suffix == suffix)


def deflated_zeros(unpacked: int, *, header: bool = True) -> bytes:
    """A deflate stream of so many zeros, put together from one block that is repeated."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(bytes(MEBIBYTE)) + packer.flush(zlib.Z_FULL_FLUSH)
    stream = block * (unpacked // MEBIBYTE) + zlib.compressobj(9, zlib.DEFLATED, -15).flush()
    return b"\x78\x9c" + stream + zlib.adler32(b"").to_bytes(4, "big") if header else stream


def pdf_stream(data: bytes, entries: str = "") -> bytes:
    """A stream object."""
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(data), entries.encode(), data)


def pdf_with_contents(*contents: bytes, extra: tuple[bytes, ...] = (), resources: str = "") -> bytes:
    """A PDF with a page for each content stream; object 3 is a font, and extra objects are numbered from 4."""
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    first = 4 + len(extra)
    kids = " ".join(f"{first + 2 * index} 0 R" for index in range(len(contents)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(contents)} >>".encode(),
        font,
        *extra,
    ]
    for index, content in enumerate(contents):
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 100 100] "
            f"/Resources << /Font << /F1 3 0 R >> {resources} >> /Contents {first + 2 * index + 1} 0 R >>".encode()
        )
        objects.append(content)
    return assemble(objects)


def pdf_bomb(unpacked: int) -> bytes:
    """One page whose content unpacks to so many bytes."""
    return pdf_with_contents(pdf_stream(deflated_zeros(unpacked), "/Filter /FlateDecode"))


def pdf_double_bomb(unpacked: int) -> bytes:
    """The same packed twice, so that the file is tiny."""
    twice = zlib.compress(deflated_zeros(unpacked), 9)
    return pdf_with_contents(pdf_stream(twice, "/Filter [/FlateDecode /FlateDecode]"))


def pdf_form_bomb(unpacked: int) -> bytes:
    """The bomb is in a form that the page draws, where pypdf catches exceptions and goes on."""
    form = pdf_stream(deflated_zeros(unpacked), "/Type /XObject /Subtype /Form /BBox [0 0 1 1] /Filter /FlateDecode")
    # A form without resources is not looked into.
    form = form.replace(b"/BBox", b"/Resources << /Font << /F1 3 0 R >> >> /BBox")
    content = pdf_stream(b"BT /F1 12 Tf (before) Tj ET /X1 Do")
    return pdf_with_contents(content, extra=(form,), resources="/XObject << /X1 4 0 R >>")


def pdf_xref_bomb(unpacked: int) -> bytes:
    """The bomb is the cross-reference stream, which is read before anything else."""
    packed = deflated_zeros(unpacked)
    head = b"%PDF-1.5\n"
    stream = pdf_stream(packed, "/Type /XRef /Size 9 /W [1 2 1] /Root 1 0 R /Filter /FlateDecode")
    return head + b"1 0 obj\n" + stream + b"\nendobj\nstartxref\n%d\n%%%%EOF\n" % len(head)


def pdf_text_bomb(characters: int, mapped_to: int, *, packed: bool = False) -> bytes:
    """Each of its characters stands for many, by the font's own character map."""
    target = "0041" * mapped_to
    character_map = (
        f"/CMapType 2 def 1 begincodespacerange <00> <ff> endcodespacerange "
        f"1 beginbfchar <61> <{target}> endbfchar endcmap"
    ).encode()
    if packed:
        map_stream = pdf_stream(zlib.compress(character_map), "/Filter /FlateDecode")
    else:
        map_stream = pdf_stream(character_map)
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 4 0 R >>"
    content = pdf_stream(b"BT /F2 12 Tf (" + b"a" * characters + b") Tj ET")
    return pdf_with_contents(content, extra=(map_stream, font), resources="").replace(b"/F1 3 0 R", b"/F2 5 0 R")


def office_archive(members: dict[str, bytes], *, method: int = ZIP_DEFLATED) -> bytes:
    """A DOCX container with these members over the two it cannot do without."""
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", method) as archive:
        for name, data in {"[Content_Types].xml": b"<Types/>", **members}.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def word_document(body: str, *, before: str = "") -> bytes:
    """A main document part."""
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    return f'<?xml version="1.0"?>{before}<w:document xmlns:w="{space}"><w:body>{body}</w:body></w:document>'.encode()


def paragraph(text: str) -> str:
    """A paragraph of one run."""
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


def archive_bomb(unpacked: int, *, declared: int | None = None, members: int = 1, shared: bool = False) -> bytes:
    """A DOCX whose members unpack to so many bytes; the directory may lie, and the members may share their data."""
    packed = deflated_zeros(unpacked, header=False)
    buffer = io.BytesIO()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", b"<Types/>")
        for number in range(members):
            name = "word/document.xml" if number == 0 else f"word/part{number}.xml"
            # Stored as it is, then declared to be deflated, as it is already.
            archive.writestr(name, b"" if shared and number else packed, compress_type=0)
            information: Any = archive.getinfo(name)
            information.compress_type = ZIP_DEFLATED
            information.compress_size = len(packed)
            information.file_size = unpacked if declared is None else declared
            if shared and number:
                information.header_offset = archive.getinfo("word/document.xml").header_offset
    return buffer.getvalue()


def ole_file(*stream_names: str) -> bytes:
    """An Office 97 container with these names in its directory."""
    return b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504) + b"".join(n.encode("utf-16-le") for n in stream_names)


def encrypted_pdf(path: Path, *, user_password: str, algorithm: str = "RC4-128") -> bytes:
    """The PDF at the path, encrypted; RC4 needs no further package."""
    from pypdf import PdfWriter

    buffer = io.BytesIO()
    writer = PdfWriter(clone_from=path)
    writer.encrypt(user_password, "owner", algorithm=algorithm)
    writer.write(buffer)
    return buffer.getvalue()
