"""The first bytes of files we cannot read, so that a refusal can name what was sent."""

from __future__ import annotations

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
ZIP = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")

_AT_START = (
    (b"\xff\xd8\xff", "JPEG image"),
    (b"\x89PNG\r\n\x1a\n", "PNG image"),
    (b"GIF87a", "GIF image"),
    (b"GIF89a", "GIF image"),
    (b"II*\x00", "TIFF image"),
    (b"MM\x00*", "TIFF image"),
    (b"\x00\x00\x01\x00", "Windows icon"),
    (b"8BPS", "Photoshop image"),
    (b"\x1f\x8b\x08", "gzip archive"),
    (b"BZh91AY&SY", "bzip2 archive"),
    (b"\xfd7zXZ\x00", "xz archive"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
    (b"Rar!\x1a\x07", "RAR archive"),
    (b"\x28\xb5\x2f\xfd", "Zstandard archive"),
    (b"\x7fELF", "Linux program"),
    (b"\xca\xfe\xba\xbe", "Java class or macOS program"),
    (b"\xcf\xfa\xed\xfe", "macOS program"),
    (b"\x00asm", "WebAssembly module"),
    (b"SQLite format 3\x00", "SQLite database"),
    (b"ID3", "MP3 audio"),
    (b"OggS\x00", "Ogg audio"),
    (b"fLaC\x00", "FLAC audio"),
    (b"\x1a\x45\xdf\xa3", "Matroska video"),
    (b"{\\rtf", "RTF document"),
    (b"%!PS", "PostScript document"),
    (b"%FDF-", "PDF form data"),
    (b"AT&TFORM", "DjVu document"),
    (b"wOFF", "web font"),
    (b"wOF2", "web font"),
)
_RIFF = {b"WEBP": "WebP image", b"WAVE": "WAV audio", b"AVI ": "AVI video"}


def known_signature(data: bytes) -> str | None:
    """The name of a well-known format that these bytes begin like."""
    for signature, name in _AT_START:
        if data.startswith(signature):
            return name
    if data.startswith(b"RIFF"):
        return _RIFF.get(data[8:12])
    if data[4:8] == b"ftyp":
        return "HEIC or AVIF image" if data[8:12] in (b"heic", b"heix", b"mif1", b"avif") else "MP4 video"
    if data[257:262] == b"ustar":
        return "tar archive"
    # These two begin like words, so something more has to agree.
    if data.startswith(b"BM") and int.from_bytes(data[2:6], "little") == len(data):
        return "BMP image"
    if data.startswith(b"MZ") and b"\x00" in data[:64]:
        return "Windows program"
    return None
