"""The engine knows no application: their words are not in its code, its SQL, its pages or its scripts.

The list of exceptions only ever shrinks: each has its reason, and one that is not needed any more fails the test.
"""

from __future__ import annotations

import re
from pathlib import Path

ENGINE = Path(__file__).parents[2] / "src" / "penstock"
KINDS_OF_FILE = {".py", ".js", ".html", ".css", ".svg"}
WORDS = re.compile(
    r"recipe|ingredient|catalog|photo|thumbnail|product(?!i)|barcode|gtin|retailer|brand|\bsku\b|"
    r"documents?\b(?!\.[a-z])|docx|\bllm\b",
    re.IGNORECASE,
)
OF_BROWSERS = re.compile(r"\bdocument(\.|\)|,| =)|\bof document\b|within = document")
EXCEPTIONS = {
    "exports/workbook.py": (r"officedocument", "the names of parts of a file format"),
    "http/reference.py": (r"\bdocument\b", "the OpenAPI document"),
    "http/forms.py": (r"\bdocument\b", "the OpenAPI document"),
    "web/pages.py": (r"\bdocument\b", "the OpenAPI document"),
    "ingest/signatures.py": (r"photoshop|document\b|brand", "the names of file formats, which are not taken"),
    "ingest/detection.py": (r"pdf document", "the name of a file format, which is not taken"),
    "ingest/spreadsheets.py": (r"document type", "a part of XML"),
    "ingest/workbooks.py": (r"officedocument|document_?type|document type|barcode", "XML, and why numbers are padded"),
}


def test_no_application_is_known_by_name() -> None:
    told, needed = [], set()
    for path in sorted(ENGINE.rglob("*")):
        if path.suffix not in KINDS_OF_FILE:
            continue
        place = path.relative_to(ENGINE).as_posix()
        pattern = re.compile(EXCEPTIONS[place][0], re.IGNORECASE) if place in EXCEPTIONS else None
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            rest = OF_BROWSERS.sub("", line) if path.suffix == ".js" else line
            if pattern is not None and WORDS.search(rest) and pattern.search(rest):
                needed.add(place)
                rest = pattern.sub("", rest)
            if WORDS.search(rest):
                told.append(f"{place}:{number}: {line.strip()[:100]}")
    assert told == []
    assert needed == set(EXCEPTIONS), "an exception that is not needed any more goes"
