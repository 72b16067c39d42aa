"""Random walks: a seed says which scene, which operations, in which orders, and whether one of them is harmed."""

from __future__ import annotations

import random

from tests.interleavings.explorer import Explorer
from tests.interleavings.scenes import SCENES
from tests.interleavings.schedule import Fault, Harm

ORDERS = 10
"""How many orders of the same operations a seed stands for: finding out what is right for them costs six."""
_HARMED = 0.3
_LATEST_POINT = 10


def walk(explorer: Explorer, seed: int) -> str:
    """Three operations at once, two of which change something by themselves; the answer is which, and where."""
    chance = random.Random(seed)
    scene = chance.choice(sorted(SCENES))
    every = explorer.enter(scene)
    names = [*chance.choices(explorer.acting(chance, 2), k=2), chance.choice(every)]
    chance.shuffle(names)
    seeds = [chance.randrange(2**32) for _ in range(ORDERS)]
    fault = None
    if chance.random() < _HARMED:
        harm = chance.choice(list(Harm)) if explorer.database.postgresql else Harm.DIES
        fault = Fault(chance.randrange(len(names)), chance.randint(1, _LATEST_POINT), harm)
    explorer.walk(names, seeds, fault)
    return f"{scene} / {' + '.join(names)}" + (f" / {fault}" if fault else "")
