"""Reading one document: what it is, and its text and facts.

Importing this package is cheap: pypdf and lxml are loaded when a document of their type comes.
"""

from __future__ import annotations

from penstock_apps.documents.reading.bounds import Bounds
from penstock_apps.documents.reading.extraction import extract
from penstock_apps.documents.reading.failures import DocumentFailure, classify
from penstock_apps.documents.reading.sniffing import DocumentType

__all__ = ["Bounds", "DocumentFailure", "DocumentType", "classify", "extract"]
