"""Which photos a scan forgets, and when it asks a person first.

A disk that is not mounted is an empty folder. So a scan that would forget a large part of what is known below one of
the catalog's folders, or anything below a folder that is empty now, forgets nothing of it until somebody says yes, with
how many it may be. What is below a folder that could not be read is never forgotten.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from penstock_apps.catalogs.folders import Walk
from penstock_apps.catalogs.photo_paths import is_below, outermost


@dataclass(frozen=True, slots=True)
class Removal:
    """What a scan does about photos that are not where they were."""

    forget: tuple[str, ...]
    missing: int = 0
    """Photos that are not there, and are kept until somebody says that they may be forgotten."""
    out_of_sight: int = 0
    """Photos that are kept because the folder they are in could not be read."""


def decide_removal(
    known_paths: Collection[str],
    present: Collection[str],
    walk: Walk,
    directories: Collection[str],
    *,
    share: float,
    max_removed: int | None,
) -> Removal:
    """Compare what is known with what a walk has found; ``max_removed`` is what somebody has said yes to."""
    roots = outermost(directories)
    below: Mapping[str, list[str]] = {root: [] for root in roots}
    known_below = dict.fromkeys(roots, 0)
    forget: list[str] = []
    out_of_sight = 0
    for path in known_paths:
        root = next((root for root in roots if is_below(path, root)), None)
        if root is None:
            forget.append(path)  # its folder is no longer the catalog's
            continue
        known_below[root] += 1
        if path in present:
            continue
        if walk.misses(path):
            out_of_sight += 1
        else:
            below[root].append(path)
    missing = [path for paths in below.values() for path in paths]
    is_large = any(len(paths) > share * known_below[root] for root, paths in below.items())
    asks = share < 1 and (is_large or any(_is_emptied(path, walk) for path in missing))
    if asks and len(missing) > (max_removed or 0):
        return Removal(tuple(sorted(forget)), len(missing), out_of_sight)
    return Removal(tuple(sorted([*forget, *missing])), 0, out_of_sight)


def _is_emptied(path: str, walk: Walk) -> bool:
    """Was a photo in a folder that is still there, and has nothing in it?"""
    folder = os.path.dirname(path)  # noqa: PTH120 - a Path for each step takes ten times as long
    while folder not in walk.empty:
        parent = os.path.dirname(folder)  # noqa: PTH120
        if parent == folder:
            return False
        folder = parent
    return True
