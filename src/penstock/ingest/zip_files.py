"""ZIP files from strangers: what one says of itself is believed only as far as it can be checked.

Five lies are looked for before anything is unpacked: a directory of a million entries, entries that unpack to far more
than they take, entries that share the same bytes, a password, and methods of compression that cannot be unpacked in
bounded steps. While a member is read its bytes are counted again, because the sizes in the directory are the sender's
own. An archive inside an archive is never opened.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

_CENTRAL_ENTRY = b"PK\x01\x02"
_LOCAL_HEADER_BYTES = 30
_CHUNK = 64 * 1024
_ENCRYPTED_FLAG = 0x1


@dataclass(frozen=True, slots=True)
class ZipLimits:
    """How much a ZIP file may ask of us."""

    members: int
    unpacked_bytes: int
    """All that is unpacked out of it, taken together."""
    ratio: int
    """Unpacked to packed size, looked at once something unpacks to more than ``ratio_floor_bytes``."""
    ratio_floor_bytes: int

    def unpacking_limit(self, packed_bytes: int) -> int:
        """The size at which data packed into so many bytes becomes suspicious."""
        return max(self.ratio_floor_bytes, packed_bytes * self.ratio)


class ZipProblem(Enum):
    """What is wrong with a ZIP file, or with a member of it."""

    TOO_MANY_MEMBERS = auto()
    TOO_LARGE = auto()
    SUSPICIOUS_RATIO = auto()
    OVERLAP = auto()
    ENCRYPTED = auto()
    UNKNOWN_METHOD = auto()


class ZipRefused(Exception):
    """A ZIP file, or a member of it, that is not unpacked; the message is for people."""

    def __init__(self, problem: ZipProblem, message: str) -> None:
        super().__init__(message)
        self.problem = problem


def open_zip(data: bytes, limits: ZipLimits) -> ZipFile:
    """The directory of a ZIP file; raises BadZipFile where there is none."""
    # zipfile makes an object for each entry it finds, and each entry begins with this mark.
    entries = data.count(_CENTRAL_ENTRY)
    if entries > limits.members:
        raise ZipRefused(
            ZipProblem.TOO_MANY_MEMBERS, f"Its archive has {entries} entries; at most {limits.members} are read."
        )
    return ZipFile(io.BytesIO(data))


def check_zip(archive: ZipFile, packed_bytes: int, limits: ZipLimits) -> None:
    """Refuse an archive that would unpack to too much, or whose entries overlap."""
    members = archive.infolist()
    total_bytes = sum(member.file_size for member in members)
    if total_bytes > limits.unpacked_bytes:
        raise ZipRefused(
            ZipProblem.TOO_LARGE, f"It would unpack to {total_bytes} bytes; at most {limits.unpacked_bytes} are read."
        )
    if total_bytes > limits.unpacking_limit(packed_bytes):
        raise ZipRefused(ZipProblem.SUSPICIOUS_RATIO, f"It would unpack to more than {limits.ratio} times its size.")
    for member in members:
        _check_ratio(member, limits)
    _check_overlap(members, archive.start_dir)


def check_member(member: ZipInfo, limits: ZipLimits) -> None:
    """Refuse a member by what the archive says of it, before anything is unpacked."""
    if member.flag_bits & _ENCRYPTED_FLAG:
        raise ZipRefused(ZipProblem.ENCRYPTED, f"Its member {member.filename!r} has a password.")
    if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise ZipRefused(
            ZipProblem.UNKNOWN_METHOD,
            f"Its member {member.filename!r} is packed with method {member.compress_type}, which is not read.",
        )
    _check_ratio(member, limits)


def read_member(archive: ZipFile, name: str, limits: ZipLimits) -> Iterator[bytes]:
    """A member's bytes, chunk by chunk and counted."""
    try:
        member = archive.getinfo(name)
    except KeyError:
        raise BadZipFile(f"there is no member {name!r}") from None
    check_member(member, limits)
    yield from read_bounded(archive, member, min(limits.unpacked_bytes, limits.unpacking_limit(member.compress_size)))


def read_bounded(archive: ZipFile, member: ZipInfo, max_bytes: int) -> Iterator[bytes]:
    """A member's bytes, chunk by chunk, until there are more than allowed: what was declared may be a lie."""
    unpacked_bytes = 0
    with archive.open(member) as stream:
        while chunk := stream.read(_CHUNK):
            unpacked_bytes += len(chunk)
            if unpacked_bytes > max_bytes:
                raise ZipRefused(
                    ZipProblem.TOO_LARGE, f"Its member {member.filename!r} unpacks to more than {max_bytes} bytes."
                )
            yield chunk


def _check_ratio(member: ZipInfo, limits: ZipLimits) -> None:
    if member.file_size > limits.unpacking_limit(member.compress_size):
        raise ZipRefused(
            ZipProblem.SUSPICIOUS_RATIO,
            f"Its member {member.filename!r} would unpack to more than {limits.ratio} times its size.",
        )


def _check_overlap(members: list[ZipInfo], end_of_members: int) -> None:
    in_order = sorted(members, key=lambda member: member.header_offset)
    starts = [member.header_offset for member in in_order[1:]] + [end_of_members]
    for member, next_start in zip(in_order, starts, strict=True):
        # Shorter than the truth, as the name is counted in characters and the extra field is left out.
        shortest = _LOCAL_HEADER_BYTES + len(member.filename) + member.compress_size
        if member.header_offset + shortest > next_start:
            raise ZipRefused(ZipProblem.OVERLAP, f"Its member {member.filename!r} overlaps another one.")
