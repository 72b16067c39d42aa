"""Which steps Hypothesis may choose, how often, and with what: see :mod:`tests.model.side_by_side` for what they do.

There is one rule, because rules are chosen alike, and these should not be: jobs have to meet each other and to be
worked on far more often than clocks are set back. Each run has the core and a few of the extras, for the same reason:
what needs five steps in the right order is found among twelve kinds of steps, and hardly among twenty. And many runs
begin with the first steps of one that is kept (:mod:`tests.model.kept`). What a failing run prints is a list of steps
that ``replay`` takes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from hypothesis.strategies import SearchStrategy

from tests.model.kept import KEPT
from tests.model.kinds import KINDS
from tests.model.side_by_side import ANSWERS, OWNERS, STATUSES, VERBS, WORKERS, SideBySide, Step
from tests.on_store import OnStore

Options = dict[str, SearchStrategy[Any]]

_which = st.integers(0, 99)
_last = st.sampled_from([0, 0, 0, 1, 2, 3])
_seldom = st.sampled_from([*[False] * 7, True])
_named = st.sampled_from([*[None] * 7, "i1"])
_owner = st.sampled_from(OWNERS)
_worker = st.sampled_from(WORKERS)
_size = st.sampled_from([6, 2, 1])
_answer = st.sampled_from(
    ["done", "done", "done", "retryable", "retryable", "retryable", "released", *sorted(set(ANSWERS) - {"step gone"})]
)

CORE: dict[str, tuple[int, Options]] = {
    "submit": (4, {
        "kind": _which, "who": _owner, "keyed": st.sampled_from([True, True, True, False]),
        "name": _named, "address": st.sampled_from([None, None, "10.0.0.1"]),
        "hold": _seldom, "count": st.sampled_from([None, None, None, None, 2, 0]),
        "priority": st.sampled_from([None, None, 5]), "params": st.sampled_from([{"p": 1}, {"p": 2}]),
    }),
    "ask_for_the_same": (12, {
        "index": _last, "who": _which, "fresh": st.sampled_from([None, None, 50.0, 200.0]),
        "name": _named, "hold": _seldom,
    }),
    "decide": (7, {"index": _which, "verb": _which, "who": st.sampled_from(["owner", "owner", "owner", "system"])}),
    "work": (10, {
        "kind": _which, "by": _worker, "what": _answer, "result": st.sampled_from([{"r": 1}, {"r": 2}, None]),
    }),
    "claim": (6, {"kind": _which, "by": _worker, "size": _size}),
    "end": (5, {
        "by": _worker, "whats": st.lists(_answer, min_size=1, max_size=3), "late": st.lists(_which, max_size=1),
        "late_first": st.booleans(), "result": st.sampled_from([{"r": 1}, {"r": 2}, None]),
    }),
    "plan": (3, {"index": _last, "count": st.sampled_from([1, 2, 0])}),
    "later": (6, {"seconds": st.sampled_from([6.0, 6.0, 6.0, 21.0, 61.0, 100.0, 250.0])}),
    "advance": (3, {"seconds": st.sampled_from([6.0, 6.0, 1.0, 31.0, 61.0, 100.0, 250.0])}),
}  # fmt: skip
"""Each step, how often it is chosen, and with what."""

EXTRAS: dict[str, dict[str, tuple[int, Options]]] = {
    "running again": {
        "reprocess": (8, {
            "index": _last, "statuses": st.sampled_from(STATUSES), "reset": st.booleans(), "permanent": st.booleans(),
            "odd_ones": _seldom, "codes": st.sampled_from([None, None, None, ["RETRYABLE", None], ["NOT_FOUND"]]),
            "who": st.sampled_from(["owner", "owner", "owner", "stranger"]),
        }),
    },
    "deaths": {
        "beat": (2, {"by": _worker}),
        "vanish": (1, {"by": _worker}),
        "die": (3, {"by": _worker}),
        "die_often": (2, {"kind": _which, "by": _worker, "times": st.integers(2, 8), "size": _size}),
        "take_over": (3, {"by": _worker, "what": _answer}),
    },
    "crowds": {
        "submit_many": (3, {
            "kind": _which, "who": _owner, "count": st.integers(1, 4), "priority": st.sampled_from([None, -3]),
        }),
        "control": (5, {
            "index": _which, "verb": st.sampled_from(VERBS), "who": st.sampled_from(["owner", "admin", "stranger"]),
        }),
        "look": (2, {"who": st.sampled_from([*OWNERS, "eve", "an admin", "the system"])}),
        "say": (2, {"by": _worker, "index": _which, "message": st.sampled_from(["half", "nearly"])}),
    },
    "requests": {
        "ask_for_the_same": (12, {
            "index": _last, "who": _which, "fresh": st.sampled_from([None, None, 50.0, 200.0]),
            "name": st.sampled_from([None, "i1", "i2"]), "hold": _seldom,
        }),
        "send_again": (5, {"index": _which, "params": st.sampled_from([None, None, {"p": 3}])}),
        "submit_as": (2, {"index": _which, "who": _owner}),
    },
    "messages": {
        "sweep": (4, {"broken": st.lists(_which, max_size=1), "dies": _seldom}),
        "publish": (8, {
            "key": st.sampled_from([None, "k1", "k2"]), "kept": st.sampled_from([True, True, True, False]),
        }),
    },
    "retention": {
        "prune": (6, {}),
        "look": (2, {"who": st.sampled_from([*OWNERS, "eve", "an admin", "the system"])}),
        "take_over": (3, {"by": _worker, "what": _answer}),
    },
    "delays": {
        "submit_later": (6, {
            "kind": _which, "who": _owner, "keyed": st.sampled_from([True, True, False]),
            "delay": st.sampled_from([5.0, 5.0, 60.0, 300.0]), "count": st.sampled_from([None, None, 2, 0]),
        }),
        "release_due": (8, {}),
    },
    "clocks": {"turn_back": (2, {"seconds": st.sampled_from([20.0, 900.0])})},
    "deployments": {"deploy": (4, {"index": _which})},
}  # fmt: skip
"""What is added to the core in some runs."""

_kinds = st.lists(st.sampled_from([rules.name for rules in KINDS]), min_size=1, max_size=2, unique=True)
_extras = st.sets(st.sampled_from(sorted(EXTRAS)), max_size=3).map(frozenset)


@lru_cache
def steps_with(extras: frozenset[str]) -> SearchStrategy[Step]:
    """The steps of a run."""
    every = CORE | {name: step for extra in sorted(extras) for name, step in EXTRAS[extra].items()}
    names = st.sampled_from([name for name, (weight, _) in every.items() for _ in range(weight)])
    return names.flatmap(lambda name: st.tuples(st.just(name), st.fixed_dictionaries(every[name][1])))


class Machine(RuleBasedStateMachine):
    """Any steps in any order, and after each of them the two agree."""

    def __init__(self, app: OnStore) -> None:
        super().__init__()
        self._app = app

    @initialize(kinds=_kinds, extras=_extras, known=st.sampled_from([None, *KEPT]), length=st.integers(1, 6))
    def begin(self, kinds: list[str], extras: frozenset[str], known: str | None, length: int) -> None:
        """Few kinds at a time, so that jobs meet each other; and most often the first steps of a run that is kept."""
        self.extras = extras
        first: Sequence[Step] = ()
        if known is not None:
            kinds, first = [*dict.fromkeys([*KEPT[known][0], *kinds[:1]])], KEPT[known][1][:length]
        self._both = SideBySide(self._app, kinds)
        for name, options in first:
            getattr(self._both, name)(**options)

    @rule(step=st.runner().flatmap(lambda machine: steps_with(machine.extras)))
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
