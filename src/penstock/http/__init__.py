"""Penstock over HTTP: an application to serve, or to mount in one's own."""
