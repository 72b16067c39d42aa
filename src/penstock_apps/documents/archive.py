"""Opens a ZIP container without trusting what it says about itself.

Four lies are looked for before anything is unpacked: a directory of a million entries, entries that unpack to far
more than they take, entries that share the same bytes, and methods of compression that DOCX does not use. While a
member is read its bytes are counted again, because the sizes in the directory are the sender's own.
An archive inside the archive is never opened.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from penstock_apps.documents.bounds import Bounds
from penstock_apps.documents.failures import DocumentFailure

_CENTRAL_ENTRY = b"PK\x01\x02"
_LOCAL_HEADER_BYTES = 30
_CHUNK = 65_536
_ENCRYPTED_FLAG = 0x1


def open_archive(data: bytes, bounds: Bounds) -> ZipFile:
    """The archive's directory; raises BadZipFile where there is none."""
    # zipfile makes an object for each entry it finds, and each entry begins with this mark.
    entries = data.count(_CENTRAL_ENTRY)
    if entries > bounds.max_members:
        raise DocumentFailure.TOO_COMPLEX.error(f"Its archive has {entries} entries; at most {bounds.max_members}.")
    return ZipFile(io.BytesIO(data))


def check_archive(archive: ZipFile, archive_bytes: int, bounds: Bounds) -> None:
    """Refuse an archive that would unpack to too much, or whose entries overlap."""
    members = archive.infolist()
    unpacked = sum(member.file_size for member in members)
    if unpacked > bounds.max_unpacked_bytes:
        raise DocumentFailure.TOO_COMPLEX.error(
            f"It would unpack to {unpacked} bytes; at most {bounds.max_unpacked_bytes}."
        )
    if unpacked > bounds.unpacking_limit(archive_bytes):
        raise DocumentFailure.TOO_COMPLEX.error(f"It would unpack to more than {bounds.max_ratio} times its size.")
    for member in members:
        if member.file_size > bounds.unpacking_limit(member.compress_size):
            raise DocumentFailure.TOO_COMPLEX.error(
                f"Its member {member.filename!r} would unpack to more than {bounds.max_ratio} times its size."
            )
    _check_overlap(members, archive.start_dir)


def _check_overlap(members: list[ZipInfo], end_of_members: int) -> None:
    in_order = sorted(members, key=lambda member: member.header_offset)
    starts = [member.header_offset for member in in_order[1:]] + [end_of_members]
    for member, next_start in zip(in_order, starts, strict=True):
        # Shorter than the truth, as the name is counted in characters and the extra field is left out.
        shortest = _LOCAL_HEADER_BYTES + len(member.filename) + member.compress_size
        if member.header_offset + shortest > next_start:
            raise DocumentFailure.TOO_COMPLEX.error(f"Its member {member.filename!r} overlaps another one.")


def read_member(archive: ZipFile, name: str, bounds: Bounds) -> Iterator[bytes]:
    """The member's bytes, chunk by chunk."""
    try:
        member = archive.getinfo(name)
    except KeyError:
        raise BadZipFile(f"there is no member {name!r}") from None
    if member.flag_bits & _ENCRYPTED_FLAG:
        raise DocumentFailure.ENCRYPTED.error(f"Its member {name!r} has a password.")
    if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise BadZipFile(f"the member {name!r} is compressed by a method that DOCX does not have")
    limit = min(bounds.max_unpacked_bytes, bounds.unpacking_limit(member.compress_size))
    unpacked = 0
    with archive.open(member) as stream:
        while chunk := stream.read(_CHUNK):
            unpacked += len(chunk)
            if unpacked > limit:
                raise DocumentFailure.TOO_COMPLEX.error(f"Its member {name!r} unpacks to more than {limit} bytes.")
            yield chunk
