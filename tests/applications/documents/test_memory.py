"""A bomb is refused before it is unpacked: the process hardly grows, and importing the app loads no parser."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.applications.documents import hostile_files as hostile

# The first extraction loads the parser, so that the growth measured is that of the bomb alone.
MEASURE = """
import resource, sys
from pathlib import Path
from penstock import Permanent
from penstock_apps.documents.reading import extract
good, bomb = map(Path, sys.argv[1:])
extract(good, declared_name=good.name)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
code = None
try:
    extract(bomb, declared_name=bomb.name)
except Permanent as error:
    code = error.code
print(code, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
GIBIBYTE = 1024 * hostile.MEBIBYTE
ENTITIES = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))


def python(*arguments: str) -> str:
    """What a fresh interpreter prints."""
    return subprocess.run([sys.executable, *arguments], check=True, capture_output=True, text=True, timeout=60).stdout


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in other units elsewhere")
@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("stream.pdf", lambda: hostile.pdf_bomb(4 * GIBIBYTE)),
        ("double.pdf", lambda: hostile.pdf_double_bomb(10 * GIBIBYTE)),
        ("form.pdf", lambda: hostile.pdf_form_bomb(4 * GIBIBYTE)),
        ("xref.pdf", lambda: hostile.pdf_xref_bomb(4 * GIBIBYTE)),
        ("text.pdf", lambda: hostile.pdf_text_bomb(characters=4_000_000, mapped_to=250)),
        ("archive.docx", lambda: hostile.archive_bomb(3 * GIBIBYTE)),
        ("shared.docx", lambda: hostile.archive_bomb(hostile.MEBIBYTE, members=9000, shared=True)),
        (
            "laughs.docx",
            lambda: hostile.office_archive(
                {
                    "word/document.xml": hostile.word_document(
                        hostile.paragraph("&l9;"), before=f'<!DOCTYPE d [<!ENTITY l0 "lol">{ENTITIES}]>'
                    )
                }
            ),
        ),
        ("deep.html", lambda: b"<!doctype html>" + b"<div>" * 5_000_000),
    ],
)
def test_refusing_a_bomb_takes_little_memory(tmp_path: Path, name, make):
    bomb = tmp_path / name
    bomb.write_bytes(make())
    code, grown = python("-c", MEASURE, str(hostile.sample(tmp_path, bomb.suffix)), str(bomb)).split()
    assert code == "DOCUMENT_TOO_COMPLEX"
    # The file itself, a few copies of the largest stream that is allowed, and no gigabytes.
    assert int(grown) < 250


def test_importing_the_app_loads_no_parser():
    heavy = "pypdf", "lxml"
    program = f"import sys, penstock_apps.documents.kinds; print([name for name in {heavy} if name in sys.modules])"
    assert python("-c", program).strip() == "[]"
