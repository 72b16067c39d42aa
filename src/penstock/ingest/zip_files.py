"""ZIP files from strangers: what one says of itself is believed only as far as it can be checked.

Five lies are looked for before anything is unpacked: a directory of a million entries, entries that unpack to far more
than they take, entries that share the same bytes, a password, and methods of compression that cannot be unpacked in
bounded steps. While a member is read its bytes are counted again, because the sizes in the directory are the sender's
own. An archive inside an archive is never opened.

The directory itself is looked at before it becomes objects, which take a hundred times as much: how long it claims to
be, how long it is, and how many entries are in it.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import IO
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

_CENTRAL_ENTRY = b"PK\x01\x02"
_LOCAL_HEADER_BYTES = 30
_CHUNK = 64 * 1024
_END_BYTES = 128 * 1024
"""What is read to find the directory: its end record, with a comment of up to 64 KiB."""
_ENTRY_BYTES = 512
"""What an entry may take on average, with its name, its extra fields and its comment."""
_ENCRYPTED_FLAG = 0x1


@dataclass(frozen=True, slots=True)
class ZipLimits:
    """How much a ZIP file may ask of us."""

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


def open_zip(file: bytes | IO[bytes], max_entries: int) -> ZipFile:
    """The directory of a ZIP file, of so many entries at most; raises BadZipFile where there is none.

    Folders and what systems hide beside the files are entries, too. The file stays open while the archive is used.
    """
    guarded_file = _GuardedFile(io.BytesIO(file) if isinstance(file, bytes) else file, max_entries)
    archive = ZipFile(guarded_file)
    guarded_file.is_guarding = False
    return archive


class _GuardedFile:
    """A ZIP file while its directory is read, in as few bytes and entries as are allowed.

    What is counted is what zipfile reads, so that no other place can be shown to it than to us. It reads the end of
    the file, where the directory is announced, and then the directory at once, by the size that is claimed; the number
    of entries that is claimed it ignores, and so do we.
    """

    def __init__(self, file: IO[bytes], max_entries: int) -> None:
        self._file = file
        self._max_entries = max_entries
        self._max_bytes = _END_BYTES + max_entries * _ENTRY_BYTES
        self.is_guarding = True
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        if not self.is_guarding:
            return self._file.read(size)
        data = self._file.read(self._max_bytes + 1 if size < 0 else min(size, self._max_bytes + 1))
        if len(data) > self._max_bytes:
            raise self._refusal(f"a directory of more than {self._max_bytes} bytes")
        # Each entry begins with this mark; a name that holds it is one too many, and no honest one does.
        entries = data.count(_CENTRAL_ENTRY)
        if entries > self._max_entries:
            raise self._refusal(f"{entries} entries")
        return data

    def _refusal(self, what: str) -> ZipRefused:
        return ZipRefused(
            ZipProblem.TOO_MANY_MEMBERS, f"Its archive has {what}; at most {self._max_entries} entries are read."
        )


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
