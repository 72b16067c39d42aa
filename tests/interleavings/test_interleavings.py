"""Operations that meet end as if one had come after the other, and whatever happens to them, everything ends.

With ``TESTS_LARGE=1`` more pairs and orders, and walks of seeds that are new each time, for about ten minutes.
"""

from __future__ import annotations

import random
from itertools import combinations_with_replacement

import pytest

from tests.interleavings.explorer import Explorer
from tests.interleavings.scenes import SCENES
from tests.interleavings.walks import walk
from tests.sizes import LARGE, size

PAIRS = size(1, 8)
"""Pairs of each scene, chosen by chance."""
SCHEDULES = size(5, 30)
"""Orders of each pair."""
CRASHES = size(1, 3)
"""Operations of each scene that crash at each of their points."""
SEEDS = size(4, 60)


def faults(explorer: Explorer) -> str:
    """What was found, as it is told."""
    return "\n".join(f"{finding}" for finding in explorer.findings.values())


@pytest.mark.parametrize("scene", SCENES)
def test_two_at_once_end_as_one_after_the_other(explorer: Explorer, scene: str) -> None:
    explorer.enter(scene)
    chance = random.Random(None if LARGE else scene)
    pairs = list(combinations_with_replacement(explorer.acting(chance, size(2, len(SCENES))), 2))
    for pair in chance.sample(pairs, min(PAIRS, len(pairs))):
        explorer.explore(pair, SCHEDULES)
    assert not explorer.findings, faults(explorer)


@pytest.mark.parametrize("scene", list(SCENES)[:: size(5, 1)])
def test_a_crash_leaves_all_or_nothing_and_everything_ends(explorer: Explorer, scene: str) -> None:
    explorer.enter(scene)
    chance = random.Random(None if LARGE else scene)
    for name in explorer.acting(chance, CRASHES):
        assert explorer.crash(name) > 0
    assert not explorer.findings, faults(explorer)


@pytest.mark.parametrize("number", range(SEEDS))
def test_three_at_once_in_a_random_order(explorer: Explorer, number: int) -> None:
    seed = random.randrange(2**32) if LARGE else number
    walked = walk(explorer, seed)
    assert not explorer.findings, f"seed {seed}: {walked}\n{faults(explorer)}"
