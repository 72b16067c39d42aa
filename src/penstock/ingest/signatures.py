"""The first bytes of files: which of them are images, and how others are called in a refusal."""

from __future__ import annotations

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""The container of Office 97-2003 files, and of newer ones that have a password."""
ZIP = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")

_IMAGES = (
    (b"\xff\xd8\xff", "JPEG image"),
    (b"\x89PNG\r\n\x1a\n", "PNG image"),
    (b"GIF87a", "GIF image"),
    (b"GIF89a", "GIF image"),
    (b"II*\x00", "TIFF image"),
    (b"MM\x00*", "TIFF image"),
)
_OTHERS = (
    (b"\x00\x00\x01\x00", "Windows icon"),
    (b"\x1f\x8b", "gzip archive"),
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
    (b"OggS\x00", "Ogg audio"),
    (b"fLaC\x00", "FLAC audio"),
    (b"\x1a\x45\xdf\xa3", "Matroska video"),
    (b"{\\rtf", "RTF document"),
    (b"%!PS", "PostScript document"),
    (b"%FDF-", "PDF form data"),
    (b"AT&TFORM", "DjVu document"),
)
# These begin like words, so a byte that no text has must follow.
_LIKE_WORDS = (
    (b"8BPS", "Photoshop image"),
    (b"ID3", "MP3 audio"),
    (b"MZ", "Windows program"),
    (b"PAR1", "Parquet file"),
    (b"wOFF", "web font"),
    (b"wOF2", "web font"),
)
_RIFF = {b"WEBP": "WebP image", b"WAVE": "WAV audio", b"AVI ": "AVI video"}
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
    r"""The name of a well-known format that these bytes begin like.

    >>> known_signature(b"ID3,title,price"), known_signature(b"ID3\x04\x00\x00")
    (None, 'MP3 audio')
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
        return "MP4 video"
    if first[257:262] == b"ustar":
        return "tar archive"
    return None


def _image(first: bytes) -> str | None:
    for signature, name in _IMAGES:
        if first.startswith(signature):
            return name
    if first[:4] == b"RIFF" and first[8:12] == b"WEBP":
        return "WebP image"
    if first[4:8] == b"ftyp" and _holds_pictures(first):
        return "HEIC or AVIF image"
    # "BM" alone also begins a table of cars: ask for the reserved zeros and a known size of the second header.
    if first[:2] == b"BM" and first[6:10] == b"\0\0\0\0" and len(first) >= 18:
        return "BMP image" if int.from_bytes(first[14:18], "little") in _BITMAP_HEADERS else None
    return None


def _holds_pictures(first: bytes) -> bool:
    """Look for a picture's brand in an ISO media file: the main one, or one of those it is compatible with."""
    length = min(int.from_bytes(first[:4], "big"), len(first), 256)
    brands = [first[8:12], *(first[at : at + 4] for at in range(16, length, 4))]
    return not _PICTURE_BRANDS.isdisjoint(brands)
