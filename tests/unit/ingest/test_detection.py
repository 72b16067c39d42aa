"""What a file is: its bytes decide, its name only where they leave it open."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path

import pytest
import xlsxwriter  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from penstock.errors import InvalidInput
from penstock.ingest.detection import FileType, detect_type

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)


def image(kind: str) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8), "green").save(buffer, kind)
    return buffer.getvalue()


def workbook() -> bytes:
    buffer = io.BytesIO()
    with xlsxwriter.Workbook(buffer) as book:
        book.add_worksheet()
    return buffer.getvalue()


def archive(*names: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packed:
        for name in names:
            packed.writestr(name, "")
    return buffer.getvalue()


def written(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "upload"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF"])
def test_an_image_is_known_by_its_bytes(tmp_path: Path, kind: str) -> None:
    assert detect_type(written(tmp_path, image(kind)), "table.csv") is FileType.IMAGE


@pytest.mark.parametrize("main", [b"heic", b"avif", b"mif1", b"isom"])
def test_pictures_in_a_media_container(tmp_path: Path, main: bytes) -> None:
    content = (24).to_bytes(4, "big") + b"ftyp" + main + bytes(4) + b"mif1" + b"miaf" + bytes(64)
    assert detect_type(written(tmp_path, content), "x") is FileType.IMAGE


@pytest.mark.parametrize(
    ("content", "name", "expected"),
    [
        (workbook(), "pictures.zip", FileType.XLSX),
        (archive("a.png"), "table.xlsx", FileType.ARCHIVE),
        (archive("[Content_Types].xml", "word/document.xml"), "letter.docx", FileType.ARCHIVE),
        (archive(), "nothing.zip", FileType.ARCHIVE),
        (workbook()[:500], "table.XLSX", FileType.XLSX),
        (workbook()[:500], "pictures.zip", FileType.ARCHIVE),
        (b"name,price\npen,1\n", "photo.png", FileType.DELIMITED),
        (b"BMW,Audi\n1,2\n3,4\n5,6\n", "cars", FileType.DELIMITED),
        (b"MZ,a\n1,2\n", "codes", FileType.DELIMITED),
        ("\ufeffname;größe\n".encode(), "x", FileType.DELIMITED),
        ("größe\n".encode("cp1252"), "x", FileType.DELIMITED),
        ("name\tprice\n".encode("utf-16"), "x", FileType.DELIMITED),
        ("name\tprice\n".encode("utf-16-le"), "x", FileType.DELIMITED),
        (b"a,b\n\x00\x01\x02,3\n", "odd.csv", FileType.DELIMITED),
    ],
)
def test_bytes_first_then_the_name(tmp_path: Path, content: bytes, name: str, expected: FileType) -> None:
    assert detect_type(written(tmp_path, content), name) is expected


@pytest.mark.parametrize(
    ("content", "code", "says"),
    [
        (b"", "FILE_EMPTY", "is empty"),
        (OLE, "NOT_A_TABLE", "Save it as .xlsx"),
        (b"%PDF-1.7\n", "FILE_TYPE_UNKNOWN", "a PDF document"),
        (b"\x7fELF\x02\x01\x01" + bytes(20), "FILE_TYPE_UNKNOWN", "a Linux program"),
        (b"MZ\x90\x00\x03\x00", "FILE_TYPE_UNKNOWN", "a Windows program"),
        (gzip.compress(b"a,b\n", mtime=0), "FILE_TYPE_UNKNOWN", "a gzip archive"),
        (b"\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00isomqt  " + bytes(40), "FILE_TYPE_UNKNOWN", "an MP4 video"),
        (b"\n<!DOCTYPE html><html>", "FILE_TYPE_UNKNOWN", "HTML or XML"),
    ],
)
def test_what_is_not_taken_is_named(tmp_path: Path, content: bytes, code: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as refused:
        detect_type(written(tmp_path, content), "table.csv")
    assert (refused.value.code, refused.value.field) == (code, "file")


def test_bytes_that_are_nothing_known_need_a_table_s_name(tmp_path: Path) -> None:
    path = written(tmp_path, b"a,b\n\x00\x01\x02,3\n")
    with pytest.raises(InvalidInput, match=r"CSV or \.xlsx") as refused:
        detect_type(path, "odd.bin")
    assert refused.value.code == "FILE_TYPE_UNKNOWN"


@given(
    start=st.sampled_from([b"", b"PK\x03\x04", b"PK\x05\x06", b"BM", b"RIFF", b"\0\0\0\x20ftyp", b"\xff\xfe"]),
    rest=st.binary(max_size=300),
    name=st.sampled_from(["", "x", "a.csv", "b.xlsx", "c.zip", "d.png", "..", "/"]),
)
def test_any_bytes_are_found_or_refused_with_a_known_code(
    tmp_path_factory: pytest.TempPathFactory, start: bytes, rest: bytes, name: str
) -> None:
    try:
        outcome: str = detect_type(written(tmp_path_factory.getbasetemp(), start + rest), name)
    except InvalidInput as refused:
        outcome = refused.code
    assert outcome in {*FileType, "FILE_EMPTY", "FILE_TYPE_UNKNOWN", "NOT_A_TABLE"}
