"""The methods by name, those for bits that hardly change with their settings, and the errors of all on one stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from evolvingdp.evolving import baselines
from evolvingdp.evolving.experiments.split_users import CREWS, HINDSIGHT, ONCE, ONLINE, SIXTEEN, errors, reported_once
from evolvingdp.evolving.rivals import memoized, once, tree
from evolvingdp.evolving.rivals.choosing import Choice, choose
from evolvingdp.evolving.rivals.memoized import Memoized
from evolvingdp.evolving.rivals.threshold_stream import ThresholdStream
from evolvingdp.evolving.rivals.tree import ChangeTree
from evolvingdp.evolving.streams import BitStream

Size = tuple[int, int, int, float]  # n_users, horizon, epoch_length, epsilon

TUNED, OPTIMAL = "THRESH, tuned", r"every epoch, ($\epsilon$, $10^{-6}$)"
CHOSEN, CHOSEN_LATE = "the choice, online", "the choice, in hindsight"
DELTA = 1e-6  # of OPTIMAL
TREES = {
    "erlingsson": "tree, Erlingsson et al.",
    "erlingsson_exact": "tree, Erlingsson et al., all of epsilon",
    "future_rand": "tree, FutureRand",
    "best": "tree, best randomizer, tuned",
}
TWO_LAYERS, HASHED, ONE_LAYER = "two layers (RAPPOR)", "two layers, hashed (LOLOHA)", "one layer (dBitFlipPM)"
MEMOIZED = (TWO_LAYERS, HASHED, ONE_LAYER)  # another guarantee


def split(every: int) -> str:
    """Each user once, in one of the epochs 1, 1 + every, ..."""
    return ONCE if every == 1 else f"users split over periods of {every}"


def choices(size: Size, changes: int) -> dict[str, Choice]:
    return {name: choose(*size, changes=changes, online=name == CHOSEN) for name in (CHOSEN, CHOSEN_LATE)}


def chosen_method(choice: Choice) -> str:
    """The name here of what was chosen."""
    every = choice.settings["once"]
    assert isinstance(every, once.Once)
    detected = ONLINE if choice.online else HINDSIGHT
    return {"tuned": TUNED, "crews": CREWS, "detected": detected, "once": split(every.every)}[choice.method]


def all_errors(size: Size, chosen: dict[str, Choice], data: BitStream, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Of every method that is possible, with the settings that a reader would plan, and for periods of 1, 2, 4, ... epochs."""
    horizon, epsilon, planned = size[1], size[-1], chosen[CHOSEN]
    found = reported_once(data, epsilon, rng, ONCE, ONLINE, HINDSIGHT)
    for method, name in {TUNED: "tuned", CREWS: "crews"}.items():
        if name in planned.settings:
            found[method] = planned.simulate(data, rng, name)
    for every in (1 << power for power in range(1, horizon.bit_length())):
        found[split(every)] = baselines.recompute(data, epsilon, rng, every=every, split="users")
    found[OPTIMAL] = baselines.recompute(data, epsilon, rng, composition="optimal", delta=DELTA)
    found[SIXTEEN] = found.get(split(horizon // 16), found[ONCE])
    found |= {name: found[chosen_method(choice)] for name, choice in chosen.items()}
    for method, estimates in found.items():
        yield {"method": method} | errors(estimates, data.truth)


def rare_errors(data: ThresholdStream, epsilon: float, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Of what is made for bits that hardly change, trees for as many changes as any bit has; of each user once; and of
    memoization, whose epsilon promises less."""
    most = data.most_changes()
    found = reported_once(data.read_once, epsilon, rng, ONCE, ONLINE, HINDSIGHT)
    for randomizer, method in TREES.items():
        nodes = ChangeTree(data.n_users, data.horizon, epsilon, most, randomizer, tuned=randomizer == "best")
        found[method] = nodes.estimates(tree.simulate(nodes, data, rng))
    for method in MEMOIZED:
        layers = layered(method, data.n_users, data.horizon, epsilon)
        found[method] = layers.estimates(memoized.simulate(layers, data, rng))
    for method, estimates in found.items():
        yield {"method": method} | errors(estimates, data.truth)


def layered(method: str, n_users: int, horizon: int, epsilon: float) -> Memoized:
    """Memoization that promises `epsilon` for a bit that never changes: a second layer has half of it, and a report of LOLOHA."""
    if method == TWO_LAYERS:
        return Memoized.rappor(n_users, horizon, epsilon, epsilon / 2)
    if method == HASHED:
        return Memoized.loloha(n_users, horizon, epsilon, epsilon / 2)
    return Memoized.dbitflip(n_users, horizon, epsilon)
