"""The form with which pages ask for products."""

from __future__ import annotations

from penstock.http import FormField, StartForm

MAX_PICTURES = 1_000
SAMPLE = "/api/products/sample.csv"
UPLOAD = StartForm(
    "Look products up",
    text="A table or pictures of products: each row or picture is looked up at retailers.",
    fields=(
        FormField(
            "file",
            "A table, or pictures",
            "file",
            hint=f"One CSV, TSV or XLSX table, up to {MAX_PICTURES:,} pictures, or one ZIP of pictures.",
            accept=".csv,.tsv,.xlsx,.zip,image/*",
            multiple=True,
        ),
    ),
    answer="jobId",
    button="Look them up",
    sample=SAMPLE,
)
