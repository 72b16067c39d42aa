"""The first bytes of files: which of them are images, and how others are called in a refusal."""

from __future__ import annotations

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""The container of Office 97-2003 files, and of newer ones that have a password."""
ZIP = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")

_IMAGES = (
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"GIF87a", "a GIF image"),
    (b"GIF89a", "a GIF image"),
    (b"II*\x00", "a TIFF image"),
    (b"MM\x00*", "a TIFF image"),
)
_OTHERS = (
    (b"\x00\x00\x01\x00", "a Windows icon"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"BZh91AY&SY", "a bzip2 archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"\x28\xb5\x2f\xfd", "a Zstandard archive"),
    (b"\x7fELF", "a Linux program"),
    (b"\xca\xfe\xba\xbe", "a Java class or macOS program"),
    (b"\xcf\xfa\xed\xfe", "a macOS program"),
    (b"\x00asm", "a WebAssembly module"),
    (b"SQLite format 3\x00", "a SQLite database"),
    (b"OggS\x00", "an Ogg file"),
    (b"fLaC\x00", "a FLAC file"),
    (b"\x1a\x45\xdf\xa3", "a Matroska video"),
    (b"{\\rtf", "an RTF document"),
    (b"%!PS", "a PostScript document"),
    (b"%FDF-", "a PDF form"),
    (b"AT&TFORM", "a DjVu document"),
)
# These begin like words, so a byte that no text has must follow.
_LIKE_WORDS = (
    (b"8BPS", "a Photoshop image"),
    (b"ID3", "an MP3 file"),
    (b"MZ", "a Windows program"),
    (b"PAR1", "a Parquet file"),
    (b"wOFF", "a web font"),
    (b"wOF2", "a web font"),
)
_RIFF = {b"WEBP": "a WebP image", b"WAVE": "a WAV file", b"AVI ": "an AVI video"}
# The brands of an ISO media file that holds pictures; the same box in a film says mp42, isom or qt.
_PICTURE_BRANDS = frozenset({b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1", b"avif", b"avis"})
_BITMAP_HEADERS = frozenset({12, 40, 52, 56, 64, 108, 124})
_NEAR = 64


def is_image(first: bytes) -> bool:
    """Tell whether a file that begins with these bytes is a picture of a common format.

    >>> is_image(b"GIF89a......"), is_image(b"BMW,Audi,Opel")
    (True, False)
    """
    return _image(first) is not None


def known_signature(first: bytes) -> str | None:
    r"""What these bytes begin like, if it is a well-known format: ``a PNG image``.

    >>> known_signature(b"ID3,title,price"), known_signature(b"ID3\x04\x00\x00")
    (None, 'an MP3 file')
    """
    if name := _image(first):
        return name
    for signature, name in _OTHERS:
        if first.startswith(signature):
            return name
    for signature, name in _LIKE_WORDS:
        if first.startswith(signature) and b"\0" in first[:_NEAR]:
            return name
    if first.startswith(b"RIFF"):
        return _RIFF.get(first[8:12])
    if first[4:8] == b"ftyp":
        return "an MP4 video"
    if first[257:262] == b"ustar":
        return "a tar archive"
    return None


def _image(first: bytes) -> str | None:
    for signature, name in _IMAGES:
        if first.startswith(signature):
            return name
    if first[:4] == b"RIFF" and first[8:12] == b"WEBP":
        return "a WebP image"
    if first[4:8] == b"ftyp" and _holds_pictures(first):
        return "a HEIC or AVIF image"
    # "BM" alone also begins a table of cars: ask for the reserved zeros and a known size of the second header.
    if first[:2] == b"BM" and first[6:10] == b"\0\0\0\0" and len(first) >= 18:
        return "a BMP image" if int.from_bytes(first[14:18], "little") in _BITMAP_HEADERS else None
    return None


def _holds_pictures(first: bytes) -> bool:
    """Look for a picture's brand in an ISO media file: the main one, or one of those it is compatible with."""
    length = min(int.from_bytes(first[:4], "big"), len(first), 256)
    brands = [first[8:12], *(first[at : at + 4] for at in range(16, length, 4))]
    return not _PICTURE_BRANDS.isdisjoint(brands)
