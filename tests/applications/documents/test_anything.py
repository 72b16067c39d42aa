"""Whatever is sent, it is read or refused: nothing else comes out, and it does not take long."""

from __future__ import annotations

import json
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock import Permanent, Retryable
from penstock_apps.documents.reading import Bounds, extract
from tests.applications.documents import hostile_files as hostile
from tests.sizes import size

NAMES = st.sampled_from(["a", "a.pdf", "a.docx", "a.html", "a.txt", "a.md", "a.jpg", "\x00/..", "." * 300, "ü.PDF"])
BEGINNINGS = st.sampled_from(
    [b"", b"%PDF-1.4\n", b"PK\x03\x04", b"<html>", b"\xff\xfe", b"\xef\xbb\xbf", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"]
)
BOUNDS = Bounds(max_text_characters=10_000)


def attempt(data: bytes, name: str) -> None:
    """Read some bytes, and insist that the outcome is one of those that are allowed."""
    began = time.monotonic()
    with TemporaryDirectory() as directory:
        path = Path(directory) / "stored"
        path.write_bytes(data)
        outcome: object
        try:
            outcome = extract(path, declared_name=name, bounds=BOUNDS)
        except (Permanent, Retryable) as failure:
            outcome = [failure.code, failure.message]
    # Either way it has to be fit to be stored.
    json.dumps(outcome, ensure_ascii=False, allow_nan=False).encode("utf-8")
    assert time.monotonic() - began < 5


@settings(max_examples=size(60, 150), deadline=None)
@given(beginning=BEGINNINGS, data=st.binary(max_size=2000), name=NAMES)
def test_arbitrary_bytes(beginning, data, name):
    attempt(beginning + data, name)


@settings(max_examples=size(50, 100), deadline=None)
@given(text=st.text(max_size=1000), encoding=st.sampled_from(["utf-8", "utf-16", "utf-16-le"]), name=NAMES)
def test_arbitrary_text(text, encoding, name):
    attempt(text.encode(encoding, "surrogatepass"), name)


@settings(max_examples=size(50, 100), deadline=None)
@given(
    pieces=st.lists(
        st.sampled_from(
            ["<p>", "</p>", "<table>", "<td>", "</svg>", "<svg>", "<pre>", "<title>", "<!--", "<script>", "&#xd800;"]
        )
        | st.text(max_size=5)
    )
)
def test_arbitrary_markup(pieces):
    attempt(("<html>" + "".join(pieces)).encode("utf-8", "surrogatepass"), "a.html")


@pytest.mark.parametrize("suffix", [".pdf", ".docx"])
@settings(max_examples=size(60, 150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(draw=st.data())
def test_documents_with_some_bytes_changed(tmp_path, suffix, draw):
    document = bytearray(hostile.sample(tmp_path, suffix).read_bytes())
    for _ in range(draw.draw(st.integers(1, 5))):
        position = draw.draw(st.integers(0, len(document) - 1))
        change = draw.draw(st.binary(max_size=8))
        document[position : position + draw.draw(st.integers(0, 8))] = change
    attempt(bytes(document), f"a{suffix}")
