"""The form with which pages ask for products."""

from __future__ import annotations

from penstock.http import FormField, StartForm

MAX_PICTURES = 1_000
COLUMNS = "/api/products/columns"
SAMPLE = "/api/products/sample.csv"
FIELD_NAMES = {
    "sku": "Article number", "gtin": "Barcode number (GTIN, EAN, UPC)", "brand": "Brand", "title": "Title",
    "description": "Description", "category": "Category", "price": "Price", "currency": "Currency",
    "quantity": "Quantity", "url": "Web address", "image": "Picture",
}  # fmt: skip
"""What a column of a table may be taken for, in the words of pages."""
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
        FormField(
            "mapping",
            "Columns of the table",
            "columns",
            required=False,
            hint="What each column is taken for. Choose another field where that is wrong.",
            choices_from=COLUMNS,
        ),
    ),
    answer="jobId",
    button="Look them up",
    sample=SAMPLE,
)
