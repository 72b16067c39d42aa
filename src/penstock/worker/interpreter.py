"""Tuning the interpreter of a worker's own process."""

from __future__ import annotations

import gc

_YOUNG_OBJECTS = 20_000


def settle_interpreter() -> None:
    """Let the garbage collector look at what a slice leaves behind, and not at the program again and again.

    A slice makes some ten thousand small objects that all go the usual way; collecting cycles among them after every
    700 costs a third of a worker's time. For processes of our own: an application that embeds a worker decides itself.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, 50, 100)
