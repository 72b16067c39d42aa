"""SQLite, the embedded default: one file, one writer at a time, no server."""
