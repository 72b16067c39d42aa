"""Which encoding a file is taken to have, and what happens to bytes that are not text in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import InvalidInput
from penstock.ingest import encodings

TEXT = "name,city\nJürgen,Köln\nŽofia,Łódź\n"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"name,city\n", "utf-8"),
        (TEXT.encode(), "utf-8"),
        (TEXT.encode("utf-8-sig"), "utf-8-sig"),
        (TEXT.encode("utf-16"), "utf-16"),
        (b"\xfe\xff" + TEXT.encode("utf-16-be"), "utf-16"),
        (TEXT.encode("utf-32"), "utf-32"),
        (TEXT.encode("utf-16-le"), "utf-16-le"),
        (TEXT.encode("utf-16-be"), "utf-16-be"),
        ("Preis,€\nMüller,5\n".encode("cp1252"), "cp1252"),
        (b"a,b\n\xe9\x81,2\n", "latin-1"),
    ],
)
def test_encoding_is_found(data: bytes, expected: str) -> None:
    assert encodings.choose_encoding(data, whole=True) == expected


def test_character_cut_at_the_end_of_the_sample_is_still_utf_8() -> None:
    cut = "é".encode()[:1]
    assert encodings.choose_encoding(b"a\n" + cut, whole=False) == "utf-8"
    assert encodings.choose_encoding(b"a\n" + cut, whole=True) == "cp1252"


def test_one_damaged_row_does_not_turn_utf_8_into_another_encoding() -> None:
    assert encodings.choose_encoding("ü\n".encode() * 50 + b"\xff\n", whole=True) == "utf-8"
    assert encodings.choose_encoding("Größe\n".encode() + b"Gr\xf6\xdfe\n", whole=True) == "utf-8", "as often as not"


@pytest.mark.parametrize("text", ["Größe\n", "Preço: 5 €, à côté\n", "Ärzte, Übung, Straße, Öl\n"])
def test_windows_1252_is_not_taken_for_damaged_utf_8(text: str) -> None:
    assert encodings.choose_encoding(text.encode("cp1252"), whole=True) == "cp1252"


def test_what_the_owner_says_wins() -> None:
    assert encodings.choose_encoding(b"a", whole=True, declared_encoding="ISO-8859-2") == "iso8859-2"
    assert encodings.choose_encoding(b"a\0", whole=True, declared_encoding="utf-16") == "utf-16-le"


@pytest.mark.parametrize("told", ["klingon", "base64", "rot13", "idna", "undefined", "a\0b", "", "unicode_escape"])
def test_unknown_encoding_is_refused(told: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        encodings.choose_encoding(b"a", whole=True, declared_encoding=told)
    assert refused.value.code == "ENCODING_UNKNOWN"


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_text_comes_in_pieces_that_end_where_a_line_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.setattr(encodings, "BLOCK_BYTES", 7)
    text = end.join(["äb", "", "cdefg", "h", "ijk"] * 5)
    path = tmp_path / "table.csv"
    path.write_bytes(("\ufeff" + text).encode())
    pieces = list(encodings.read_text(path, "utf-8"))
    assert "".join(pieces) == text
    assert len(pieces) > 3
    assert all(piece.endswith(end) for piece in pieces[:-1])


def test_overlong_line_is_dropped_and_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encodings, "BLOCK_BYTES", 8)
    monkeypatch.setattr(encodings, "LINE_CHARACTERS", 20)
    path = tmp_path / "table.csv"
    path.write_bytes(b"a\r\n" + b"x" * 100 + b"\r\nb\r\n" + b"y" * 90)
    text = "".join(encodings.read_text(path, "utf-8"))
    assert text == f"a\r\n{encodings.OVERLONG}\nb\r\n{encodings.OVERLONG}\n"


def test_bytes_that_are_not_text_are_marked(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(b"a\n\xff\nb\n\xc3")
    text = "".join(encodings.read_text(path, "utf-8"))
    assert text == f"a\n{encodings.UNDECODABLE}\nb\n{encodings.UNDECODABLE}"
    assert encodings.has_marks(text)
    assert not encodings.has_marks("größe")
