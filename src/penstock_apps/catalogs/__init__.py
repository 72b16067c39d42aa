"""Catalogs of photos: scan a folder, make thumbnails, find duplicates, tag."""
