"""What bytes are taken for, and how far the name has a say."""

from __future__ import annotations

import pytest

from penstock import Permanent
from penstock_apps.documents.reading.bounds import Bounds
from penstock_apps.documents.reading.sniffing import DocumentType, sniff

PAGE = b"<!-- a mill --><!DOCTYPE html><html><p>Hello</html>"
FRAGMENT = b"<p align=center><b>Mill</b></p>\n\n# A mill"
TAGGED = b"Use the <b>sluice</b> with care."
WORDS = b"Use the sluice with care."


@pytest.mark.parametrize(
    ("data", "name", "found"),
    [
        (b"%PDF-1.7\n", "a.pdf", DocumentType.PDF),
        (b"\r\n\r\n%PDF-1.7\n", "a", DocumentType.PDF),
        (b"HTTP/1.1 200 OK\r\n\r\n%PDF-1.7\n startxref 0", "a", DocumentType.PDF),
        (b"A PDF begins with %PDF-1.7 and that is all.", "a.txt", DocumentType.TEXT),
        (PAGE, "a.html", DocumentType.HTML),
        (PAGE, "a", DocumentType.HTML),
        (PAGE, "A.HTM", DocumentType.HTML),
        (PAGE, "a.md", DocumentType.TEXT),
        (b'<?xml version="1.0"?>\n<html xmlns="http://www.w3.org/1999/xhtml"/>', "a.xhtml", DocumentType.HTML),
        (b'<?xml version="1.0"?>\n<mill/>', "a.xml", DocumentType.TEXT),
        (FRAGMENT, "README.md", DocumentType.TEXT),
        (FRAGMENT, "a.txt", DocumentType.TEXT),
        (FRAGMENT, "a", DocumentType.HTML),
        (TAGGED, "a.html", DocumentType.HTML),
        (TAGGED, "a", DocumentType.TEXT),
        (WORDS, "a", DocumentType.TEXT),
        (WORDS, "a.csv", DocumentType.TEXT),
        (WORDS, "a.jpg", DocumentType.TEXT),
        ("Mühle".encode("utf-16"), "a", DocumentType.TEXT),
        ("\ufeff<html>".encode("utf-16-be"), "a", DocumentType.HTML),
        (b"MZ is how some words begin", "a", DocumentType.TEXT),
        (b"BM as well", "a", DocumentType.TEXT),
        (b"\x1b[31mred\x1b[0m in a log", "a.log", DocumentType.TEXT),
    ],
)
def test_the_bytes_decide(data, name, found):
    assert sniff(data, declared_name=name, bounds=Bounds()) is found


@pytest.mark.parametrize(("data", "name"), [(PAGE, "a.txt"), (PAGE, "a.pdf"), (WORDS, "a.html"), (WORDS, "a.docx")])
def test_a_name_that_contradicts_the_bytes_is_refused(data, name):
    with pytest.raises(Permanent) as caught:
        sniff(data, declared_name=name, bounds=Bounds())
    assert caught.value.code == "DOCUMENT_MISLABELLED"


@pytest.mark.parametrize("data", [b"{\\rtf1 mill}", b"%!PS-Adobe-3.0", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\x7fELF"])
def test_what_is_not_read_is_named(data):
    with pytest.raises(Permanent) as caught:
        sniff(data, declared_name="upload", bounds=Bounds())
    assert caught.value.code == "DOCUMENT_UNSUPPORTED"


def test_a_media_type_claims_where_the_name_says_nothing():
    with pytest.raises(Permanent) as caught:
        sniff(WORDS, declared_name="upload", declared_media_type="application/pdf; x=y", bounds=Bounds())
    assert caught.value.code == "DOCUMENT_MISLABELLED"
    with pytest.raises(Permanent):
        sniff(WORDS, declared_name="upload", declared_media_type="text/html", bounds=Bounds())
    # Browsers make the media type up from the name; what they do not know they call this.
    found = sniff(WORDS, declared_name="a.csv", declared_media_type="application/octet-stream", bounds=Bounds())
    assert found is DocumentType.TEXT
