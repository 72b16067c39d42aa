"""Writes small documents to try the app with: four that are read, and three that are refused, each for its reason."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path
from uuid import UUID

from penstock import JobState
from penstock.private_files import make_private_folder
from penstock.samples import SampleJob, Samples, Visitor
from penstock_apps.documents.sample_docx import docx_bytes
from penstock_apps.documents.sample_pdf import pdf_bytes

AUTHOR = "The Penstock authors"

PDF_TITLE = "How a penstock works"
PDF_PAGES = (
    (
        "A penstock is the pipe that carries water to a turbine.",
        "At its head stands a gate, and the gate decides how much flows.",
        "Behind the gate the water waits, and nothing of it is lost.",
    ),
    (
        "The higher the water stands above the wheel, the harder it pushes.",
        "Engineers call that height the head (measured in metres).",
        "Ten metres of head and a tenth of a cubic metre each second",
        "give a little less than ten kilowatts.",
    ),
    (
        "A gate that closes too fast sends a blow back up the pipe.",
        "That is why it is closed slowly, and why a surge tank stands beside it.",
    ),
)

DOCX_TITLE = "The mill at the weir"
DOCX_PARAGRAPHS = (
    "The mill stands where the stream leaves the hills. Its wheel turns when the sluice is open.",
    "In spring the miller lets half of the water pass, because the stones cannot grind faster than they do.",
)
DOCX_TABLE = (
    ("Wheel", "Where the water meets it", "Share of the power kept"),
    ("Undershot", "below", "a third"),
    ("Breastshot", "at the axle", "a half"),
    ("Overshot", "above", "more than two thirds"),
)
DOCX_LAST = "So the oldest mills in flat country turned slowly, and nobody minded."

HTML_TITLE = "Water wheels in a paragraph each"
HTML_SECTIONS = (
    ("Overshot", "Water falls into buckets near the top & its weight turns the wheel."),
    ("Undershot", "The stream pushes against paddles at the bottom, so it needs speed and not height."),
)

TEXT_LINES = (
    "Log of the sluice keeper",
    "",
    "Monday: rain in the night. Gate opened by two notches.",
    "Tuesday: the miller’s café had no flour; gate opened by a third notch.",
    "Wednesday: level falling again, one notch closed. Temperature 14 °C.",
)


class DocumentSamples(Samples):
    """Four documents that are read, and three that are refused, each for its reason."""

    next_steps = (
        "To read documents of your own, in two terminals:",
        "  penstock worker",
        "  penstock submit document FILE --wait",
    )

    def submit(self, visitor: Visitor) -> Iterator[SampleJob]:
        """Upload each, and let it be read."""
        good, broken_paths = write_samples(self.folder), write_broken_samples(self.folder)
        codes = dict(zip(broken_paths, ("DOCUMENT_CORRUPT", "DOCUMENT_MISLABELLED", "DOCUMENT_EMPTY"), strict=True))
        for path in (*good, *broken_paths):
            job = UUID(visitor.upload("/api/documents/jobs", path)["jobId"])
            visitor.ask("POST", f"/api/documents/jobs/{job}/submit")
            state = JobState.FAILED if path in codes else JobState.SUCCEEDED
            yield SampleJob(job, path.name, state, codes.get(path))


def write_samples(directory: Path) -> list[Path]:
    """One document of each type that is read."""
    make_private_folder(directory)
    paths = [directory / name for name in ("penstock.pdf", "mill.docx", "wheels.html", "sluice.txt")]
    paths[0].write_bytes(pdf_bytes(PDF_PAGES, title=PDF_TITLE, author=AUTHOR))
    above, below = "Notes on old mills", "Written beside the water"
    mill = docx_bytes(DOCX_TITLE, DOCX_PARAGRAPHS, DOCX_TABLE, DOCX_LAST, author=AUTHOR, above=above, below=below)
    paths[1].write_bytes(mill)
    paths[2].write_text(_html_page(), encoding="utf-8")
    paths[3].write_text("\n".join(TEXT_LINES) + "\n", encoding="utf-8")
    return paths


def write_broken_samples(directory: Path) -> list[Path]:
    """A PDF whose end is missing, a web page called a PDF, and a file with nothing in it."""
    make_private_folder(directory)
    paths = [directory / name for name in ("torn.pdf", "not-a.pdf", "empty.txt")]
    whole = pdf_bytes(PDF_PAGES, title=PDF_TITLE, author=AUTHOR)
    paths[0].write_bytes(whole[: len(whole) // 2])
    paths[1].write_text(_html_page(), encoding="utf-8")
    paths[2].write_bytes(b"")
    return paths


def _html_page() -> str:
    sections = "\n".join(f"  <h2>{escape(name)}</h2>\n  <p>{escape(text)}</p>" for name, text in HTML_SECTIONS)
    return f"""<!doctype html>
<html lang="en-GB">
<head>
  <meta charset="utf-8">
  <title>{escape(HTML_TITLE)}</title>
  <meta name="author" content="{escape(AUTHOR)}">
  <meta name="description" content="Two kinds of water wheel.">
  <style>body {{ font-family: serif }}</style>
</head>
<body>
  <h1>{escape(HTML_TITLE)}</h1>
{sections}
  <script>document.title = "not read";</script>
</body>
</html>
"""
