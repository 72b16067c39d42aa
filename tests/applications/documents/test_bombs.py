"""Files that are small until somebody unpacks them."""

from __future__ import annotations

import io
import time
import zlib
from zipfile import ZIP_BZIP2, ZipFile

import pytest

from penstock.ingest import ZipRefused, open_zip, read_member
from penstock_apps.documents.reading import classify
from penstock_apps.documents.reading.bounds import Bounds
from tests.applications.documents import hostile_files as hostile

GIBIBYTE = 1024 * hostile.MEBIBYTE
ENTITIES = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
BILLION_LAUGHS = f'<!DOCTYPE lolz [<!ENTITY l0 "lol">{ENTITIES}]>'


@pytest.mark.parametrize(
    "make", [hostile.pdf_bomb, hostile.pdf_double_bomb, hostile.pdf_form_bomb, hostile.pdf_xref_bomb]
)
def test_a_pdf_stream_is_not_unpacked_beyond_its_ratio(refusal, make):
    bomb = make(10 * GIBIBYTE)
    assert len(bomb) < 12 * hostile.MEBIBYTE
    began = time.monotonic()
    assert refusal(bomb, "a.pdf").code == "DOCUMENT_TOO_COMPLEX"
    assert time.monotonic() - began < 10


def test_the_streams_of_a_pdf_are_counted_together(read, refusal):
    packed = zlib.compress(b"BT /F1 12 Tf (" + b"x" * 20_000 + b") Tj ET")
    document = hostile.pdf_with_contents(*[hostile.pdf_stream(packed, "/Filter /FlateDecode")] * 10)
    assert read(document, "a.pdf", max_unpacked_bytes=300_000)["page_count"] == 10
    failure = refusal(document, "a.pdf", max_unpacked_bytes=100_000)
    assert failure.code == "DOCUMENT_TOO_COMPLEX"
    assert "100000" in failure.message


def test_one_stream_of_a_pdf_has_its_own_bound(refusal):
    document = hostile.pdf_with_contents(
        hostile.pdf_stream(hostile.deflated_zeros(3 * hostile.MEBIBYTE), "/Filter /FlateDecode")
    )
    assert refusal(document, "a.pdf", max_stream_bytes=hostile.MEBIBYTE).code == "DOCUMENT_TOO_COMPLEX"


@pytest.mark.parametrize("packed", [False, True])
def test_a_character_map_cannot_blow_text_up(read, refusal, packed):
    harmless = hostile.pdf_text_bomb(characters=100, mapped_to=3, packed=packed)
    assert read(harmless, "a.pdf")["text"] == "A" * 300
    failure = refusal(hostile.pdf_text_bomb(characters=200_000, mapped_to=128, packed=packed), "a.pdf")
    assert failure.code == "DOCUMENT_TOO_COMPLEX"
    assert "one page" in failure.message


def test_the_operations_of_a_pdf_are_counted(read, refusal):
    content = hostile.pdf_stream(b"BT /F1 12 Tf (a) Tj ET " * 100)
    document = hostile.pdf_with_contents(*[content] * 3)
    read(document, "a.pdf", max_operations=1_200)
    assert refusal(document, "a.pdf", max_operations=1_000).code == "DOCUMENT_TOO_COMPLEX"


def test_the_pages_of_a_pdf_are_counted(refusal):
    document = hostile.pdf_with_contents(*[hostile.pdf_stream(b"")] * 4)
    failure = refusal(document, "a.pdf", max_pages=3)
    assert failure.code == "DOCUMENT_TOO_COMPLEX"
    assert "4 pages" in failure.message


def test_the_pages_of_plain_text_are_counted(refusal):
    assert refusal(b"a\fb\fc\fd", "a.txt", max_pages=3).code == "DOCUMENT_TOO_COMPLEX"


def test_arrays_nested_without_end_are_too_complex(refusal):
    content = hostile.pdf_stream(b"BT /F1 12 Tf " + b"[" * 200_000 + b" TJ ET")
    assert refusal(hostile.pdf_with_contents(content), "a.pdf").code == "DOCUMENT_TOO_COMPLEX"


def test_an_archive_that_unpacks_to_gigabytes_is_not_unpacked(refusal):
    bomb = hostile.archive_bomb(10 * GIBIBYTE - hostile.MEBIBYTE, declared=2**32 - 2)
    assert len(bomb) < 12 * hostile.MEBIBYTE
    assert refusal(bomb, "a.docx").code == "DOCUMENT_TOO_COMPLEX"


def test_an_archive_is_refused_by_its_sum(refusal):
    bomb = hostile.archive_bomb(8 * hostile.MEBIBYTE, members=30)
    failure = refusal(bomb, "a.docx", max_ratio=10_000)
    assert failure.code == "DOCUMENT_TOO_COMPLEX"
    assert "would unpack to" in failure.message


def test_an_archive_is_refused_by_the_ratio_of_one_member(refusal):
    bomb = hostile.archive_bomb(20 * hostile.MEBIBYTE)
    padded = io.BytesIO(bomb)
    with ZipFile(padded, "a") as archive:
        archive.writestr("word/media/noise.bin", bytes(hostile.MEBIBYTE))
    failure = refusal(padded.getvalue(), "a.docx")
    assert failure.code == "DOCUMENT_TOO_COMPLEX"
    assert "word/document.xml" in failure.message


def test_an_archive_of_many_small_bombs_is_refused_by_its_own_ratio(refusal):
    bomb = hostile.archive_bomb(9 * hostile.MEBIBYTE, members=15)
    failure = refusal(bomb, "a.docx")
    assert failure.code == "DOCUMENT_TOO_COMPLEX"
    assert "200 times its size" in failure.message


def test_a_member_is_counted_again_while_it_is_read():
    with open_zip(hostile.archive_bomb(hostile.MEBIBYTE), Bounds().max_members) as archive:
        chunks = read_member(archive, "word/document.xml", Bounds(max_unpacked_bytes=100_000).of_zip)
        assert len(next(chunks)) <= 100_000
        with pytest.raises(ZipRefused) as caught:
            next(chunks)
    assert getattr(classify(caught.value), "code", None) == "DOCUMENT_TOO_COMPLEX"


def test_members_that_share_their_data_are_refused(refusal):
    bomb = hostile.archive_bomb(hostile.MEBIBYTE, members=5, shared=True)
    failure = refusal(bomb, "a.docx")
    assert failure.code == "DOCUMENT_TOO_COMPLEX"
    assert "overlaps" in failure.message


def test_a_directory_that_lies_about_a_size_gives_no_more_than_it_says(refusal):
    bomb = hostile.archive_bomb(GIBIBYTE, declared=1000)
    began = time.monotonic()
    assert refusal(bomb, "a.docx").code == "DOCUMENT_CORRUPT"
    assert time.monotonic() - began < 5


def test_an_archive_of_very_many_members_is_not_listed(refusal):
    crowd = hostile.office_archive({f"word/{number}": b"" for number in range(60)})
    assert refusal(crowd, "a.docx", max_members=50).code == "DOCUMENT_TOO_COMPLEX"


def test_an_archive_in_the_archive_stays_closed(read):
    inner = hostile.archive_bomb(GIBIBYTE)
    document = hostile.office_archive(
        {"word/document.xml": hostile.word_document(hostile.paragraph("Fine.")), "word/embeddings/in.zip": inner}
    )
    assert read(document, "a.docx")["text"] == "Fine."


def test_a_compression_that_docx_does_not_have_is_refused(refusal):
    document = hostile.office_archive(
        {"word/document.xml": hostile.word_document(hostile.paragraph("Fine."))}, method=ZIP_BZIP2
    )
    assert refusal(document, "a.docx").code == "DOCUMENT_CORRUPT"


def test_entities_are_not_expanded(refusal):
    document = hostile.word_document(hostile.paragraph("&l9;"), before=BILLION_LAUGHS)
    assert refusal(hostile.office_archive({"word/document.xml": document}), "a.docx").code == "DOCUMENT_TOO_COMPLEX"


def test_entities_do_not_read_other_files(refusal, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("water", encoding="utf-8")
    document = hostile.word_document(
        hostile.paragraph("&x;"), before=f'<!DOCTYPE d [<!ENTITY x SYSTEM "{secret.as_uri()}">]>'
    )
    failure = refusal(hostile.office_archive({"word/document.xml": document}), "a.docx")
    assert failure.code == "DOCUMENT_TOO_COMPLEX"
    assert "water" not in failure.message


def test_entities_in_the_properties_are_refused_too(refusal):
    document = hostile.word_document(hostile.paragraph("Fine."))
    core = f"{BILLION_LAUGHS}<p>&l9;</p>".encode()
    archive = hostile.office_archive({"word/document.xml": document, "docProps/core.xml": core})
    assert refusal(archive, "a.docx").code == "DOCUMENT_TOO_COMPLEX"


@pytest.mark.parametrize("depth", [300, 100_000])
def test_elements_nested_deeply_are_refused(refusal, depth):
    page = b"<!doctype html><body>" + b"<div>" * depth
    assert refusal(page, "a.html").code == "DOCUMENT_TOO_COMPLEX"
    word = hostile.word_document("<w:sdt>" * depth + "</w:sdt>" * depth)
    assert refusal(hostile.office_archive({"word/document.xml": word}), "a.docx").code == "DOCUMENT_TOO_COMPLEX"


def test_elements_are_counted(read, refusal):
    page = b"<!doctype html><body>" + b"<p>a</p>" * 100
    read(page, "a.html", max_objects=110)
    assert refusal(page, "a.html", max_objects=90).code == "DOCUMENT_TOO_COMPLEX"
