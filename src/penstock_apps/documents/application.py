"""Documents: text and facts out of PDF, DOCX, HTML and plain-text files that strangers send."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.application import Application

if TYPE_CHECKING:
    from penstock_apps.documents.service import Documents

documents: Application[Documents] = Application(
    name="documents",
    settings="penstock_apps.documents.settings:DocumentSettings",
    install="penstock_apps.documents.service:Documents",
    routes="penstock_apps.documents.routes:routes_of",
    samples="penstock_apps.documents.samples:DocumentSamples",
    kinds=("document",),
    addresses=("/api/documents",),
    needs=("cryptography", "lxml", "pypdf"),
    extra="penstock[documents]",
)
