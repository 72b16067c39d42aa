"""Reads text and facts out of PDF, DOCX, HTML and plain-text files that strangers send."""
