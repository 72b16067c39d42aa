"""Runs in which the engine and the model once disagreed, with no more steps than it took."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.store.engine import Store
from tests.model.machine import Step, replay
from tests.on_store import OnStore


def submitted(**options: Any) -> Step:
    """A job of the first kind, without a key."""
    usual = {"kind": 0, "who": "ann", "keyed": False, "name": None, "address": None, "hold": False, "count": None}
    return "submit", usual | {"priority": None, "params": {"p": 1}} | options


def asked_again(who: int) -> Step:
    """Somebody else asks for the same."""
    return "ask_for_the_same", {"index": 0, "who": who, "fresh": None, "name": None, "hold": False}


KEPT: dict[str, tuple[list[str], list[Step]]] = {
    "an empty job does not wait, so a full queue does not refuse it": (
        ["limited"],
        [submitted(), submitted(), ("deploy", {"index": 0}), submitted(count=0)],
    ),
    "who inherits running work is processing, not beginning": (
        ["single"],
        [
            submitted(keyed=True),
            asked_again(1),
            ("claim", {"kind": 0, "by": "w1", "size": 1}),
            ("control", {"index": 0, "verb": "cancel", "who": "owner"}),
        ],
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_the_engine_agrees_by_now(store: Store, tmp_path: Path, name: str) -> None:
    kinds, steps = KEPT[name]
    replay(OnStore(store, tmp_path), kinds, steps)
