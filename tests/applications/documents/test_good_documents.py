"""What comes out of documents that are as they should be."""

from __future__ import annotations

import hashlib
import json

import docx
import pytest

from penstock_apps.documents import samples
from penstock_apps.documents.reading import extract
from tests.applications.documents import hostile_files as hostile


def test_a_pdf_is_read_page_by_page(tmp_path):
    path = hostile.sample(tmp_path, ".pdf")
    result = extract(path, declared_name="penstock.pdf")
    pages = ["\n".join(lines) for lines in samples.PDF_PAGES]
    assert result["text"] == "\n\n".join(pages)
    assert result["document_type"] == "PDF"
    assert result["media_type"] == "application/pdf"
    assert result["size_bytes"] == path.stat().st_size
    assert result["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (result["title"], result["author"]) == (samples.PDF_TITLE, samples.AUTHOR)
    assert result["created"] == "2026-03-01T09:00:00+00:00"
    assert result["language"] == "en-GB"
    assert (result["page_count"], result["page_count_source"]) == (3, "counted")
    assert result["pages"] == [
        {"number": n, "characters": len(text), "words": len(text.split()), "width": 595.0, "height": 842.0}
        for n, text in enumerate(pages, start=1)
    ]
    assert result["word_count"] == len(result["text"].split())
    assert result["character_count"] == len(result["text"])
    assert (result["truncated"], result["warnings"]) == (False, [])


def test_a_pdf_of_another_writer_is_read(read, tmp_path):
    canvas = pytest.importorskip("reportlab.pdfgen.canvas")
    drawing = canvas.Canvas(str(tmp_path / "a.pdf"), pageCompression=1)
    for text in ("The weir holds the water.", "The race carries it on."):
        drawing.drawString(72, 700, text)
        drawing.showPage()
    drawing.save()
    result = read((tmp_path / "a.pdf").read_bytes(), "a.pdf")
    assert result["text"] == "The weir holds the water.\n\nThe race carries it on."


def test_a_pdf_without_text_is_no_failure(read):
    result = read(hostile.pdf_with_contents(hostile.pdf_stream(b"0 0 50 50 re f")), "scan.pdf")
    assert (result["text"], result["page_count"]) == ("", 1)
    assert any("scanned" in warning for warning in result["warnings"])


def test_a_pdf_with_an_empty_password_is_read(read, tmp_path):
    result = read(hostile.encrypted_pdf(hostile.sample(tmp_path, ".pdf"), user_password=""), "a.pdf")
    assert result["text"].startswith("A penstock is the pipe")
    assert any("empty password" in warning for warning in result["warnings"])


@pytest.mark.parametrize(
    "broken",
    [
        hostile.pdf_stream(b"xxxx", "/Filter /WhatDecode"),
        hostile.pdf_stream(b"BT /F1 12 Tf (a Tj ET [ << 1 2"),
        hostile.pdf_stream(b"\xff\xff\xff", "/Filter /LZWDecode"),
    ],
)
def test_a_page_that_cannot_be_read_is_marked_and_loses_no_other(read, refusal, broken):
    good = hostile.pdf_stream(b"BT /F1 12 Tf (fine) Tj ET")
    result = read(hostile.pdf_with_contents(good, broken, good), "a.pdf")
    assert (result["text"], result["page_count"], result["word_count"]) == ("fine\n\nfine", 3, 2)
    first, second, third = result["pages"]
    assert "problem" not in first
    assert "problem" not in third
    assert (second["number"], second["characters"], second["words"]) == (2, None, None)
    assert second["problem"].startswith("It is damaged and could not be read (")
    assert "1 of 3 pages could not be read, and was left out." in result["warnings"]
    json.dumps(result)
    failure = refusal(hostile.pdf_with_contents(broken, broken), "a.pdf")
    assert (failure.code, "On page 1" in failure.message) == ("DOCUMENT_CORRUPT", True), "none is left"


def test_a_bound_is_the_documents_whichever_page_passes_it(refusal):
    good = hostile.pdf_stream(b"BT /F1 12 Tf (fine) Tj ET")
    many = hostile.pdf_stream(b"BT " + b"/F1 12 Tf " * 50 + b"ET")
    failure = refusal(hostile.pdf_with_contents(good, many, good), "a.pdf", max_operations=40)
    assert failure.code == "DOCUMENT_TOO_COMPLEX"


def test_what_pypdf_repaired_is_said_and_not_logged(read, caplog, capsys):
    document = hostile.pdf_with_contents(hostile.pdf_stream(b"BT /F1 12 Tf (Saved) Tj ET"))
    result = read(document.replace(b"startxref\n", b"startxref\n9"), "a.pdf")
    assert result["text"] == "Saved"
    assert any("Repaired" in warning for warning in result["warnings"])
    assert (caplog.text, capsys.readouterr().err) == ("", "")


def test_a_docx_is_read_in_reading_order(tmp_path):
    result = extract(hostile.sample(tmp_path, ".docx"), declared_name="mill.docx")
    rows = ["\t".join(row) for row in samples.DOCX_TABLE]
    lines = [samples.DOCX_TITLE, *samples.DOCX_PARAGRAPHS, *rows, samples.DOCX_LAST]
    assert result["text"] == "\n".join(["Notes on old mills", *lines, "Written beside the water"])
    assert (result["title"], result["author"]) == (samples.DOCX_TITLE, samples.AUTHOR)
    assert result["created"] == "2026-03-01T09:00:00+00:00"
    # It says one page, and nobody has checked it.
    assert (result["page_count"], result["page_count_source"]) == (1, "declared")


def test_a_docx_of_another_maker_and_ours_in_another_reader(tmp_path):
    document = docx.Document()
    document.core_properties.title = "Minutes"
    document.sections[0].header.paragraphs[0].text = "Above"
    document.add_heading("Minutes", level=1)
    document.add_paragraph("Nobody was late.")
    document.save(str(tmp_path / "minutes.docx"))
    result = extract(tmp_path / "minutes.docx", declared_name="minutes.docx")
    assert (result["title"], result["text"]) == ("Minutes", "Above\nMinutes\nNobody was late.")
    ours = docx.Document(str(hostile.sample(tmp_path, ".docx")))
    assert ours.core_properties.author == samples.AUTHOR
    assert [paragraph.text for paragraph in ours.paragraphs][1:] == [*samples.DOCX_PARAGRAPHS, samples.DOCX_LAST]
    assert [tuple(cell.text for cell in row.cells) for row in ours.tables[0].rows] == list(samples.DOCX_TABLE)
    assert ours.sections[0].footer.paragraphs[0].text == "Written beside the water"


def test_a_docx_has_text_in_places_that_are_easy_to_miss(read):
    run = "<w:r><w:t>{}</w:t></w:r>"
    compatibility = "http://schemas.openxmlformats.org/markup-compatibility/2006"
    box = "<w:txbxContent>" + hostile.paragraph("In a box.") + "</w:txbxContent>"
    body = (
        f"<w:sdt><w:sdtContent>{hostile.paragraph('In a control.')}</w:sdtContent></w:sdt>"
        f"<w:p><w:hyperlink>{run.format('A link')}</w:hyperlink><w:r><w:tab/><w:t>after</w:t><w:br/></w:r>"
        f"<w:ins>{run.format('added')}</w:ins><w:del><w:r><w:delText>gone</w:delText></w:r></w:del>"
        f"<w:moveFrom>{run.format('moved away')}</w:moveFrom></w:p>"
        f'<w:p><w:r><mc:AlternateContent xmlns:mc="{compatibility}"><mc:Choice>{box}</mc:Choice>'
        f"<mc:Fallback>{box}</mc:Fallback></mc:AlternateContent></w:r></w:p>"
        f"<w:tbl><w:tr><w:tc>{hostile.paragraph('a')}{hostile.paragraph('b')}</w:tc>"
        f"<w:tc><w:tbl><w:tr><w:tc>{hostile.paragraph('inner')}</w:tc></w:tr></w:tbl></w:tc></w:tr></w:tbl>"
    )
    document = hostile.office_archive({"word/document.xml": hostile.word_document(body)})
    assert read(document, "a.docx")["text"] == "In a control.\nA link\tafter\nadded\nIn a box.\n\na b\tinner"


def test_an_html_page_is_read_as_it_is_seen(tmp_path):
    result = extract(hostile.sample(tmp_path, ".html"), declared_name="wheels.html")
    lines = [line for section in samples.HTML_SECTIONS for line in section]
    assert result["text"] == "\n".join([samples.HTML_TITLE, *lines])
    assert (result["title"], result["author"]) == (samples.HTML_TITLE, samples.AUTHOR)
    assert (result["description"], result["language"]) == ("Two kinds of water wheel.", "en-GB")
    assert result["encoding"] == "utf-8"


def test_what_a_page_hides_is_not_read(read):
    page = (
        b"<html><body><p>Seen <b>here</b>\n and   there<script>var a = '<p>no</p>'</script><style>no</style>"
        b"<template><p>no</template><p hidden>no</p><p style='display: none'>no</p><!-- no --><noscript>no</noscript>"
        b"<svg><title>no</title><text>drawn</text></svg><pre>as\n  it is</pre><table><tr><td>a<td>b</table>"
    )
    assert read(page, "a.html")["text"] == "Seen here and there\ndrawn\nas\n  it is\na\tb"


@pytest.mark.parametrize(
    ("page", "encoding"),
    [
        ("<!doctype html><p>\ufeff</p>".encode("utf-8-sig") + "<p>Mühle</p>".encode(), "utf-8"),
        ("<html><meta charset=iso-8859-1><p>Mühle</p>".encode("latin-1"), "windows-1252"),
        (
            "<html><meta http-equiv='Content-Type' content='text/html; charset=windows-1251'><p>Mühle</p>".encode(
                "cp1252"
            ),
            "cp1251",
        ),
        ("<html><p>Mühle</p>".encode(), "utf-8"),
        ("<html><p>Mühle</p>".encode("cp1252"), "windows-1252"),
        ("\ufeff<html><p>Mühle</p>".encode("utf-16-le"), "utf-16-le"),
        ("<html><meta charset=punycode><p>Mühle</p>".encode(), "utf-8"),
        ("<html><meta charset=utf-8><p>Mühle</p>".encode("cp1252"), "windows-1252"),
    ],
)
def test_the_character_set_of_a_page_is_found(read, page, encoding):
    result = read(page, "a.html")
    assert result["encoding"] == encoding
    assert result["text"].strip("\ufeff\n") == ("Mьhle" if encoding == "cp1251" else "Mühle")


def test_plain_text_is_kept_as_it_is(tmp_path):
    result = extract(hostile.sample(tmp_path, ".txt"), declared_name="sluice.txt")
    assert result["text"] == "\n".join(samples.TEXT_LINES) + "\n"
    assert (result["encoding"], result["page_count"], result["warnings"]) == ("utf-8", 1, [])


def test_form_feeds_divide_plain_text_into_pages(read):
    result = read(b"one two\fthree\f", "a.txt")
    assert result["text"] == "one two\fthree"
    assert [(page["characters"], page["words"]) for page in result["pages"]] == [(7, 2), (5, 1)]


@pytest.mark.parametrize(
    ("data", "text", "warned"),
    [
        ("Mühle".encode("utf-16"), "Mühle", False),
        ("Mühle am Bach".encode("utf-16-le"), "Mühle am Bach", True),
        ("Mühle am Bach".encode("cp1252"), "Mühle am Bach", True),
        ("ü".encode() * 30 + b"\xff", "ü" * 30 + "\ufffd", True),
        (b"a\r\nb\rc", "a\nb\nc", False),
        (b"level " * 50 + b"\x00", "level " * 50, True),
        (b" \n", " \n", True),
    ],
)
def test_the_character_set_of_text_is_found_or_guessed_aloud(read, data, text, warned):
    result = read(data, "a.txt")
    assert result["text"] == text
    assert bool(result["warnings"]) is warned


@pytest.mark.parametrize(
    ("suffix", "pages"), [(".pdf", [10, None, None]), (".txt", [10]), (".docx", []), (".html", [])]
)
def test_text_beyond_the_bound_is_cut_and_that_is_said(read, tmp_path, suffix, pages):
    result = read(hostile.sample(tmp_path, suffix).read_bytes(), f"a{suffix}", max_text_characters=10)
    assert (result["character_count"], result["truncated"]) == (10, True)
    assert [page["characters"] for page in result["pages"]] == pages
    assert any("was cut after 10 characters" in warning for warning in result["warnings"])


def test_text_is_stored_by_any_json_column(read):
    surrogates = b"<html><p>a&#xD800;b &#x0; c</p>" + b"mill " * 50 + b"\x00" + "\U0001f4a7".encode()
    character_map = hostile.pdf_text_bomb(characters=2, mapped_to=1).replace(b"<0041>", b"<D800>")
    for data, name in ((surrogates, "a.html"), (character_map, "a.pdf"), (b"NUL\x00" + b"x" * 200, "a.txt")):
        result = read(data, name)
        assert "\x00" not in result["text"]
        json.dumps(result, ensure_ascii=False).encode("utf-8")
