"""How much one document may ask of us before it is refused."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.ingest import ZipLimits

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits for one document; beyond one of them it is too large, too complex, or its text is cut.

    They hold while a file is unpacked, not after: a small file that would unpack to gigabytes is refused early.
    """

    max_bytes: int = 50 * MEBIBYTE
    """The file itself."""
    max_pages: int = 5_000
    max_text_characters: int = 5_000_000
    """Text beyond this is left out, and the result says ``truncated``."""
    max_page_characters: int = 20_000_000
    """What one page of a PDF may say before anything can be cut off; its fonts decide how long a character is."""
    max_unpacked_bytes: int = 200 * MEBIBYTE
    """All that is decompressed out of one document, taken together."""
    max_stream_bytes: int = 64 * MEBIBYTE
    """One decompressed PDF stream, which has to be in memory whole."""
    max_ratio: int = 200
    """Unpacked to packed size, looked at once something unpacks to more than ``ratio_floor_bytes``."""
    ratio_floor_bytes: int = 10 * MEBIBYTE
    max_nesting: int = 200
    """Elements within elements."""
    max_objects: int = 1_000_000
    """Elements of a markup document; entries of a PDF's cross-reference streams."""
    max_members: int = 10_000
    """Entries of a DOCX archive."""
    max_operations: int = 5_000_000
    """Drawing operations of a PDF, over all of its pages."""

    @property
    def of_zip(self) -> ZipLimits:
        """The same for a ZIP file, which a DOCX is."""
        return ZipLimits(self.max_unpacked_bytes, self.max_ratio, self.ratio_floor_bytes)
