"""Small files that become large when a library opens them."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib

from penstock.exports import workbook_chunks


def flat_png(width: int, height: int) -> bytes:
    """A PNG of one colour: three bytes for each pixel, and next to none of them in the file."""
    packer = zlib.compressobj(1)
    row = bytes(1 + 3 * width)
    pixels = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    header = struct.pack(">2L5B", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", pixels), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">L", len(body)) + name + body + struct.pack(">L", zlib.crc32(name + body)) for name, body in parts
    )


def zip_of(*members: tuple[str, bytes]) -> bytes:
    """An archive of these files, stored as they are."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members:
            archive.writestr(name, content)
    return buffer.getvalue()


def workbook_of_strings(count: int) -> bytes:
    """A workbook whose table of texts has so many that nobody asks for."""
    plain = zipfile.ZipFile(io.BytesIO(b"".join(workbook_chunks(["sku"], [["1"]]))))
    strings = b"".join(b"<si><t>%09d %s</t></si>" % (number, b"x" * 90) for number in range(count))
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name in plain.namelist():
            content = plain.read(name)
            if name == "xl/_rels/workbook.xml.rels":
                relation = b'<Relationship Id="rId99" Type="x/sharedStrings" Target="strings.xml"/>'
                content = content.replace(b"</Relationships>", relation + b"</Relationships>")
            archive.writestr(name, content)
        archive.writestr("xl/strings.xml", b"<sst>" + strings + b"</sst>")
    return buffer.getvalue()
