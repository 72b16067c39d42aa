"""The command line: one noun or verb to a file, put together in :mod:`penstock.cli.program`.

Nothing heavy is imported until a command runs, so that ``penstock --help`` answers at once.
"""

from __future__ import annotations

import sys


def main() -> None:
    """What the ``penstock`` program does."""
    from penstock.cli.program import run

    sys.exit(run())
