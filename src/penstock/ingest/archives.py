"""Pictures in a ZIP archive, one at a time and within bounds.

An archive comes from a stranger. What it says about itself is believed only as far as it can be checked:
sizes are counted while reading, names are text to show and never a path on our disk, and one bad member is
one bad picture, with a code that says why. Members are read in the order of the archive, so a number always
means the same picture and reading can go on behind any of them.
"""

from __future__ import annotations

import errno
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

from penstock.errors import InvalidInput, PayloadTooLarge, Permanent
from penstock.ingest.signatures import is_image
from penstock.ingest.zip_files import ZipLimits, ZipProblem, ZipRefused, check_member, open_zip, read_bounded

NAME_CHARACTERS = 1024
_FIRST_BYTES = 512
_MIB = 1024**2
# Below this a high ratio is no danger, and a drawing of one colour has one.
_SMALL = _MIB
# Beside each picture a system may have put an entry of its own; and there are folders.
_OTHER_ENTRIES = 1_000


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """How large an archive of pictures may be; each bound has its own error code."""

    members: int = 100_000
    """More raise TOO_MANY_FILES."""

    member_bytes: int = 50 * _MIB
    """A larger picture is bad (FILE_TOO_LARGE), not the archive."""

    decompressed_bytes: int = 2 * 1024**3
    """An archive whose pictures unpack to more raises DECOMPRESSED_TOO_LARGE."""

    ratio: int = 200
    """A picture that unpacks to more than this many times its packed size is bad (COMPRESSION_SUSPICIOUS)."""

    def of_zip(self) -> ZipLimits:
        """The same for the file as such."""
        return ZipLimits(self.decompressed_bytes, self.ratio, _SMALL)


class Picture(NamedTuple):
    """One member of an archive: its number as a person counts, the name to show, and the size it declares."""

    number: int
    name: str
    size: int


class _Bad(Exception):
    """Why one member cannot be used."""

    def __init__(self, problem: str, code: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.code = code


def look_at_archive(path: Path, name: str, limits: ArchiveLimits) -> int:
    """Count the pictures of an archive, and refuse one that is empty, broken or beyond its bounds.

    ``name`` is what its sender called it.
    """
    with path.open("rb") as file:
        members = _members(_open_archive(file, name, limits), limits)
        if not members:
            raise InvalidInput(
                "The archive holds no files. Put the images in it and send it again.",
                field="file",
                code="ARCHIVE_EMPTY",
            )
        declared_bytes = sum(member.file_size for member in members if _objection(member, limits) is None)
        if declared_bytes > limits.decompressed_bytes:
            raise PayloadTooLarge(
                f"The archive unpacks to {declared_bytes} bytes; at most {limits.decompressed_bytes} are taken. "
                "Send it in several parts.",
                field="file",
                code="DECOMPRESSED_TOO_LARGE",
            )
        return len(members)


def pictures(
    path: Path, name: str, limits: ArchiveLimits, after: int = 0
) -> Iterator[tuple[Picture, bytes | None, str | None, str | None]]:
    """Give the pictures behind number `after`: each with its bytes, or with a problem and its code instead."""
    with path.open("rb") as file:
        archive = _open_archive(file, name, limits)
        unpacked_bytes = 0
        for number, member in enumerate(_members(archive, limits), start=1):
            if number <= after:
                continue
            picture = Picture(number, member.filename[:NAME_CHARACTERS], member.file_size)
            room = limits.decompressed_bytes - unpacked_bytes
            try:
                content = _read(archive, member, limits, room)
            except _Bad as bad:
                yield picture, None, bad.problem, bad.code
                continue
            unpacked_bytes += len(content)
            yield picture, content, None, None


def _open_archive(file: IO[bytes], name: str, limits: ArchiveLimits) -> zipfile.ZipFile:
    try:
        return open_zip(file, _OTHER_ENTRIES + 2 * limits.members)
    except ZipRefused as refusal:
        raise PayloadTooLarge(
            f"{refusal} At most {limits.members} files are taken. Send it in several parts.",
            field="file",
            code="TOO_MANY_FILES",
        ) from refusal
    except Exception as error:
        raise InvalidInput(
            f"The file {name!r} is not a ZIP archive that can be read ({error}). Pack it again and send that.",
            field="file",
            code="NOT_AN_ARCHIVE",
        ) from error


def _members(archive: zipfile.ZipFile, limits: ArchiveLimits) -> list[zipfile.ZipInfo]:
    """List what counts as a picture: everything but folders and what a system hides beside the files."""
    members = [member for member in archive.infolist() if not member.is_dir() and not _is_hidden(member.filename)]
    if len(members) > limits.members:
        raise PayloadTooLarge(
            f"The archive holds {len(members)} files; at most {limits.members} are taken. Send it in several parts.",
            field="file",
            code="TOO_MANY_FILES",
        )
    return members


def _is_hidden(name: str) -> bool:
    # ".." is no hidden name: such a member is shown like any other, and never becomes a path.
    return any(part == "__MACOSX" or (part.startswith(".") and part.strip(".")) for part in name.split("/"))


def _objection(member: zipfile.ZipInfo, limits: ArchiveLimits) -> _Bad | None:
    """Say what is wrong with a member by what the archive declares, before anything is unpacked."""
    too_large = member.file_size > limits.member_bytes
    try:
        check_member(member, limits.of_zip())
    except ZipRefused as refusal:
        if refusal.problem is ZipProblem.ENCRYPTED:
            return _Bad("The file has a password. Pack it without one.", "ENCRYPTED")
        if refusal.problem is ZipProblem.UNKNOWN_METHOD:
            return _Bad(
                f"The file is packed with method {member.compress_type}; stored and deflated are taken. Pack it again.",
                "FILE_BROKEN",
            )
        if not too_large:
            return _Bad(
                f"The file unpacks from {member.compress_size} to {member.file_size} bytes; "
                f"an image does not unpack to more than {limits.ratio} times its packed size.",
                "COMPRESSION_SUSPICIOUS",
            )
    if too_large:
        return _Bad(
            f"The file unpacks to {member.file_size} bytes; at most {limits.member_bytes} are taken for one image.",
            "FILE_TOO_LARGE",
        )
    return None


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo, limits: ArchiveLimits, room: int) -> bytes:
    """Unpack one member, counting: what was declared may be a lie."""
    if objection := _objection(member, limits):
        raise objection
    content = bytearray()
    try:
        for chunk in read_bounded(archive, member, limits.member_bytes):
            if not content and not is_image(chunk[:_FIRST_BYTES]):
                raise _Bad("The file is not an image of a known kind, whatever its name says.", "NOT_AN_IMAGE")
            content += chunk
            if len(content) > room:
                raise Permanent(
                    f"The archive unpacks to more than {limits.decompressed_bytes} bytes. Send it in parts.",
                    code="DECOMPRESSED_TOO_LARGE",
                )
    except ZipRefused as refusal:
        raise _Bad(f"The file unpacks to more than {limits.member_bytes} bytes.", "FILE_TOO_LARGE") from refusal
    except (_Bad, Permanent):
        raise
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise _Bad(f"The file is damaged ({error}). Pack it again.", "FILE_BROKEN") from error
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise  # the disk's trouble
        message = "The file is damaged (the archive says that it begins before its own beginning). Pack it again."
        raise _Bad(message, "FILE_BROKEN") from error
    if not content:
        raise _Bad("The file is not an image of a known kind, whatever its name says.", "NOT_AN_IMAGE")
    return bytes(content)
