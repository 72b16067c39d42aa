"""Reads text and facts out of PDF, DOCX, HTML and plain-text files that strangers send.

Importing this package is cheap: pypdf and lxml are loaded when a document of their type comes.
"""

from __future__ import annotations

from penstock_apps.documents.bounds import Bounds
from penstock_apps.documents.extraction import extract
from penstock_apps.documents.failures import DocumentFailure, classify
from penstock_apps.documents.sniffing import DocumentType

__all__ = ["Bounds", "DocumentFailure", "DocumentType", "classify", "extract"]
