"""The same work through each peer's public API, each in an environment of its own, in one run."""
