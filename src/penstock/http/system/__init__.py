"""The whole installation over HTTP: how it is doing, whether it can serve, and figures for Prometheus."""
