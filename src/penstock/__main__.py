"""``python -m penstock``: the command line without its entry point."""

from __future__ import annotations

from penstock.cli import main

if __name__ == "__main__":
    main()
