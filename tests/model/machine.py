"""Which steps Hypothesis may choose, how often, and with what: see :mod:`tests.model.side_by_side` for what they do.

There is one rule, because rules are chosen alike, and these should not be: jobs have to meet each other and to be worked
on far more often than clocks are set back. What a failing run prints is a list of steps that ``replay`` takes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from hypothesis.strategies import SearchStrategy

from tests.model.kinds import KINDS
from tests.model.side_by_side import ANSWERS, OWNERS, STATUSES, VERBS, WORKERS, SideBySide
from tests.on_store import OnStore

Step = tuple[str, dict[str, Any]]

_which = st.integers(0, 99)
_seldom = st.sampled_from([False, False, False, True])
_owner = st.sampled_from(OWNERS)
_worker = st.sampled_from(WORKERS)
_answer = st.sampled_from(["done", "done", "done", "released", *sorted(set(ANSWERS) - {"step gone"})])
_size = st.sampled_from([1, 2, 6])

STEPS: dict[str, tuple[int, dict[str, SearchStrategy[Any]]]] = {
    "submit": (8, {
        "kind": _which, "who": _owner, "key": st.sampled_from(["u1", "u1", None]),
        "name": st.sampled_from([None, None, "i1", "i2"]), "address": st.sampled_from([None, None, "10.0.0.1"]),
        "hold": _seldom, "count": st.sampled_from([None, None, 3, 1, 0]), "priority": st.sampled_from([None, None, 5]),
        "taken": st.sampled_from([*[False] * 9, True]), "params": st.sampled_from([{"p": 1}, {"p": 2}]),
    }),
    "ask_for_the_same": (12, {
        "index": _which, "who": _owner, "fresh": st.sampled_from([None, None, 50.0, 200.0]),
        "name": st.sampled_from([None, None, "i1", "i2"]), "hold": _seldom,
    }),
    "send_again": (2, {"index": _which, "params": st.sampled_from([None, None, {"p": 3}])}),
    "submit_many": (1, {
        "kind": _which, "who": _owner, "count": st.integers(1, 4), "priority": st.sampled_from([None, -3]),
    }),
    "decide": (14, {"index": _which, "verb": _which, "who": st.sampled_from(["owner", "owner", "owner", "system"])}),
    "control": (3, {
        "index": _which, "verb": st.sampled_from(VERBS), "who": st.sampled_from(["owner", "admin", "stranger"]),
    }),
    "reprocess": (5, {
        "index": _which, "statuses": st.sampled_from(STATUSES), "reset": st.booleans(), "permanent": st.booleans(),
        "odd_ones": _seldom, "codes": st.sampled_from([None, None, None, ["RETRYABLE", None], ["NOT_FOUND"]]),
        "who": st.sampled_from(["owner", "owner", "owner", "stranger"]),
    }),
    "look": (1, {"who": st.sampled_from([*OWNERS, "eve", "an admin", "the system"])}),
    "claim": (16, {"kind": _which, "by": _worker, "size": _size}),
    "plan": (4, {"index": _which, "count": st.sampled_from([1, 2, 0])}),
    "end": (16, {
        "by": _worker, "whats": st.lists(_answer, min_size=1, max_size=4), "late": st.lists(_which, max_size=1),
        "late_first": st.booleans(), "result": st.sampled_from([{"r": 1}, {"r": 2}, None]),
    }),
    "beat": (2, {"by": _worker}),
    "say": (1, {"by": _worker, "index": _which, "message": st.sampled_from(["half", "nearly"])}),
    "vanish": (1, {"by": _worker}),
    "die": (2, {"by": _worker}),
    "die_often": (1, {"kind": _which, "by": _worker, "times": st.integers(2, 8), "size": _size}),
    "take_over": (2, {"by": _worker, "what": _answer}),
    "advance": (8, {"seconds": st.sampled_from([1.0, 6.0, 21.0, 31.0, 61.0, 100.0, 250.0])}),
    "turn_back": (1, {"seconds": st.sampled_from([20.0, 900.0])}),
    "sweep": (8, {"broken": st.lists(_which, max_size=2), "dies": _seldom}),
    "publish": (3, {"key": st.sampled_from([None, "k1", "k2"]), "kept": st.sampled_from([True, True, True, False])}),
    "deploy": (2, {"index": _which}),
}  # fmt: skip
"""Each step, how often it is chosen, and with what."""

_names = st.sampled_from([name for name, (weight, _) in STEPS.items() for _ in range(weight)])
steps = _names.flatmap(lambda name: st.tuples(st.just(name), st.fixed_dictionaries(STEPS[name][1])))
kinds = st.lists(st.sampled_from([rules.name for rules in KINDS]), min_size=1, max_size=2, unique=True)


class Machine(RuleBasedStateMachine):
    """Any steps in any order, and after each of them the two agree."""

    def __init__(self, app: OnStore) -> None:
        super().__init__()
        self._app = app

    @initialize(kinds=kinds)
    def begin(self, kinds: list[str]) -> None:
        """Few kinds at a time, so that jobs meet each other."""
        self._both = SideBySide(self._app, kinds)

    @rule(step=steps)
    def make(self, step: Step) -> None:
        name, options = step
        getattr(self._both, name)(**options)

    @invariant()
    def agree(self) -> None:
        self._both.agree()

    def teardown(self) -> None:
        if sys.exc_info()[0] is None:  # otherwise something is wrong, and the end would only hide it
            self._both.come_to_an_end()


def replay(app: OnStore, kinds: Sequence[str], steps: Iterable[Step]) -> None:
    """Make the steps of one run, as a failing one printed them."""
    both = SideBySide(app, kinds)
    for name, options in steps:
        getattr(both, name)(**options)
        both.agree()
    both.come_to_an_end()
