"""Paths of photos, whatever bytes they are made of: a name on an old disk need not be UTF-8.

In a program such a path is a text with surrogates (PEP 383), as ``os.scandir`` gives it. Databases and JSON cannot keep
those: there a path is a text for people, and beside it, where that text is not the whole truth, its bytes.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterable, Mapping
from typing import NotRequired, TypedDict, cast

from penstock.lifecycle import storable_text


class PathData(TypedDict):
    """A path as it is kept in a job."""

    path: str
    """For people; what is not UTF-8 is U+FFFD."""
    path_base64: NotRequired[str]
    """The bytes of a path that the text does not say exactly."""


def path_data(path: str) -> PathData:
    r"""A path for JSON.

    >>> path_data("/photos/caf\udce9.jpg")
    {'path': '/photos/caf�.jpg', 'path_base64': 'L3Bob3Rvcy9jYWbpLmpwZw=='}
    """
    exact_bytes = path_bytes(path)
    if exact_bytes is None:
        return {"path": path}
    return {"path": storable_text(path), "path_base64": base64.b64encode(exact_bytes).decode()}


def path_in(data: Mapping[str, object]) -> str:
    """The path that :func:`path_data` has written down."""
    base64_text = cast("str | None", data.get("path_base64"))
    return cast("str", data["path"]) if base64_text is None else os.fsdecode(base64.b64decode(base64_text))


def path_bytes(path: str) -> bytes | None:
    """The bytes of a path that a database cannot keep as text; None where the text says it all."""
    return None if storable_text(path) == path else os.fsencode(path)


def path_key(path: str) -> str:
    """What a photo is called in its catalog: a path may be longer than what an index takes."""
    return hashlib.sha256(path.encode(errors="surrogateescape")).hexdigest()


def is_below(path: str, folder: str) -> bool:
    """Is it that folder, or in it?

    >>> is_below("/a/b", "/a"), is_below("/ab", "/a"), is_below("/a", "/a"), is_below("/a", "/")
    (True, False, True, True)
    """
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def outermost(folders: Iterable[str]) -> list[str]:
    """The folders that are in no other of them: with those, all are walked through, and each once.

    >>> outermost(["/a/b", "/a", "/c", "/a"])
    ['/a', '/c']
    """
    roots: list[str] = []
    for folder in sorted(set(folders), key=lambda folder: folder.rstrip("/").split("/")):
        if not (roots and is_below(folder, roots[-1])):
            roots.append(folder)
    return roots
