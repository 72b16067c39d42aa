"""One module for each peer, run as a program in that peer's environment."""
