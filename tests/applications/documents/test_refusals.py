"""Documents that are refused, each with the code that says why."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path
from zipfile import ZipFile

import pytest

from penstock import Permanent, Retryable
from penstock_apps.documents import samples
from penstock_apps.documents.reading import extract
from tests.applications.documents import hostile_files as hostile

JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" + bytes(range(256))


def test_an_empty_file(refusal):
    assert refusal(b"", "a.pdf").code == "DOCUMENT_EMPTY"


def test_a_pdf_without_pages(refusal):
    assert refusal(hostile.pdf_with_contents(), "a.pdf").code == "DOCUMENT_EMPTY"


def test_a_file_over_the_bound(read, refusal):
    read(b"12345", "a.txt", max_bytes=5)
    failure = refusal(b"123456", "a.txt", max_bytes=5)
    assert failure.code == "DOCUMENT_TOO_LARGE"
    assert "6 bytes; at most 5" in failure.message


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5, 0.9])
def test_a_pdf_that_was_cut_off(refusal, tmp_path, share):
    whole = hostile.sample(tmp_path, ".pdf").read_bytes()
    failure = refusal(whole[: int(len(whole) * share)], "a.pdf")
    assert failure.code == "DOCUMENT_CORRUPT"
    assert "Its end is missing" in failure.message


def test_a_linearized_pdf_that_was_cut_off_still_has_an_end_mark(refusal, tmp_path):
    whole = hostile.sample(tmp_path, ".pdf").read_bytes()
    linearized = whole.replace(
        b"%\xe2\xe3\xcf\xd3\n", b"%\xe2\xe3\xcf\xd3\n9 0 obj\n<< /Linearized 1 /L 99999 >>\nendobj\n"
    )
    failure = refusal(linearized, "a.pdf")
    assert failure.code == "DOCUMENT_CORRUPT"
    assert "99999" in failure.message


@pytest.mark.parametrize("share", [0.2, 0.6, 0.99])
@pytest.mark.parametrize("name", ["a.docx", "nameless"])
def test_a_docx_that_was_cut_off(refusal, tmp_path, share, name):
    whole = hostile.sample(tmp_path, ".docx").read_bytes()
    failure = refusal(whole[: int(len(whole) * share)], name)
    assert failure.code == "DOCUMENT_CORRUPT" or (name == "nameless" and failure.code == "DOCUMENT_UNSUPPORTED")


def test_a_docx_with_flipped_bytes(refusal, tmp_path):
    document = hostile.office_archive(
        {"word/document.xml": hostile.word_document(hostile.paragraph("x" * 500))}, method=0
    )
    assert refusal(document.replace(b"xxx", b"xyx", 1), "a.docx").code == "DOCUMENT_CORRUPT"


def test_a_docx_without_its_document(refusal):
    assert refusal(hostile.office_archive({"word/other.xml": b"<a/>"}), "a.docx").code == "DOCUMENT_CORRUPT"


def test_a_docx_whose_xml_is_broken(refusal):
    failure = refusal(hostile.office_archive({"word/document.xml": b"<w:document><unclosed"}), "a.docx")
    assert failure.code == "DOCUMENT_CORRUPT"
    assert "XMLSyntaxError" in failure.message


@pytest.mark.parametrize("algorithm", ["RC4-40", "RC4-128", "AES-128", "AES-256"])
def test_a_pdf_with_a_password(refusal, tmp_path, algorithm):
    if algorithm.startswith("AES"):
        pytest.importorskip("cryptography")
    document = hostile.encrypted_pdf(hostile.sample(tmp_path, ".pdf"), user_password="sluice", algorithm=algorithm)
    failure = refusal(document, "a.pdf")
    assert failure.code == "DOCUMENT_ENCRYPTED"
    assert "asks for a password" in failure.message


def test_a_pdf_of_an_unknown_security_handler(refusal, tmp_path):
    document = hostile.encrypted_pdf(hostile.sample(tmp_path, ".pdf"), user_password="")
    failure = refusal(document.replace(b"/Filter /Standard", b"/Filter /Strangers"), "a.pdf")
    assert failure.code == "DOCUMENT_ENCRYPTED"


def test_a_docx_with_a_password_is_an_ole_container(refusal):
    container = hostile.ole_file("EncryptionInfo", "EncryptedPackage")
    for name in ("a.docx", "a", "a.pdf"):
        assert refusal(container, name).code == "DOCUMENT_ENCRYPTED"


def test_a_member_with_a_password(refusal):
    document = bytearray(hostile.office_archive({"word/document.xml": hostile.word_document("")}))
    position = document.rfind(b"PK\x01\x02")
    document[position + 8] |= 1
    assert refusal(bytes(document), "a.docx").code == "DOCUMENT_ENCRYPTED"


def test_an_old_word_document(refusal):
    failure = refusal(hostile.ole_file("WordDocument"), "a.doc")
    assert failure.code == "DOCUMENT_UNSUPPORTED"
    assert "97-2003" in failure.message
    assert refusal(hostile.ole_file("WordDocument"), "a.docx").code == "DOCUMENT_MISLABELLED"


@pytest.mark.parametrize(("kind", "names"), [(".pdf", ["a.docx", "a.html", "a.txt"]), (".docx", ["a.pdf", "a.txt"])])
def test_one_of_our_types_under_the_name_of_another(refusal, tmp_path, kind, names):
    for name in names:
        failure = refusal(hostile.sample(tmp_path, kind).read_bytes(), name)
        assert failure.code == "DOCUMENT_MISLABELLED"
        assert kind[1:].upper() in failure.message
        assert name in failure.message


def test_a_picture_under_any_name(refusal):
    for name in ("a.pdf", "a.docx", "a.html", "a.txt"):
        failure = refusal(JPEG, name)
        assert (failure.code, "JPEG image" in failure.message) == ("DOCUMENT_MISLABELLED", True)
    assert refusal(JPEG, "a.jpg").code == "DOCUMENT_UNSUPPORTED"
    assert refusal(JPEG, "a").code == "DOCUMENT_UNSUPPORTED"


def test_other_archives(refusal):
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as archive:
        archive.writestr("report.pdf", b"%PDF-1.4 startxref")
    assert refusal(buffer.getvalue(), "a.zip").code == "DOCUMENT_UNSUPPORTED"
    assert refusal(buffer.getvalue(), "a.docx").code == "DOCUMENT_MISLABELLED"
    workbook = hostile.office_archive({"xl/workbook.xml": b"<a/>"})
    assert "Excel" in refusal(workbook, "a.docx").message


def test_bytes_of_no_kind(refusal):
    noise = bytes(byte * 7 % 256 for byte in range(2000))
    assert refusal(noise, "a.bin").code == "DOCUMENT_UNSUPPORTED"
    assert refusal(noise, "a.txt").code == "DOCUMENT_MISLABELLED"
    # More likely a damaged one than something else.
    assert refusal(noise, "a.pdf").code == "DOCUMENT_CORRUPT"


def test_a_file_that_is_gone(tmp_path):
    for path in (tmp_path / "gone", tmp_path):
        with pytest.raises(Permanent) as caught:
            extract(path, declared_name="a.pdf")
        assert caught.value.code == "DOCUMENT_MISSING"
        assert str(tmp_path) not in caught.value.message


@pytest.mark.parametrize("number", [errno.EIO, errno.EMFILE, errno.ENOSPC, errno.ENOMEM, errno.ESTALE, errno.EACCES])
def test_a_disk_in_trouble_may_be_better_later(tmp_path, monkeypatch, number):
    def refuse(*_arguments: object, **_options: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(Retryable) as caught:
        extract(tmp_path / "stored", declared_name="a.pdf")
    assert caught.value.code == "DOCUMENT_UNREADABLE"


def test_memory_running_out_is_left_to_the_pool(tmp_path, monkeypatch):
    def refuse(*_arguments: object, **_options: object) -> None:
        raise MemoryError

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(MemoryError):
        extract(tmp_path / "stored", declared_name="a.pdf")


def test_the_broken_samples_are_refused_each_for_its_reason(tmp_path):
    codes = []
    for path in samples.write_broken_samples(tmp_path / "broken"):
        with pytest.raises(Permanent) as caught:
            extract(path, declared_name=path.name)
        codes.append(caught.value.code)
    assert codes == ["DOCUMENT_CORRUPT", "DOCUMENT_MISLABELLED", "DOCUMENT_EMPTY"]
