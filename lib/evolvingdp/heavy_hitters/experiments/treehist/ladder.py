"""The protocols of the TreeHist experiment, each a change to the one before, and one run of a protocol on a data set."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters.experiments.lists import brown_words
from evolvingdp.heavy_hitters.experiments.treehist.params import Params, threshold
from evolvingdp.heavy_hitters.listing import HeavyHitters
from evolvingdp.heavy_hitters.pem import PEM
from evolvingdp.heavy_hitters.planning import expected_candidates, planned
from evolvingdp.heavy_hitters.sketches.geometry import geometry
from evolvingdp.heavy_hitters.tree_hist import TreeHist
from evolvingdp.heavy_hitters.word_tree import WordTree

LETTERS = WordTree((2, 2, 2))
BITS = WordTree((1,) * 30, unit="bits")
AS_RUN = "as the paper ran it"
SPLIT = "one bit, users split"
BEST = "one bit, users split, joint fit"
PROJECTIVE = "projective reports, planned"
OLH_PEM = "PEM with OLH"
_PRINTED: dict[str, Any] = {"estimator": "median", "pruning": "fixed"}
_TUNED: dict[str, Any] = {"plan": "split", "pruning": "adaptive", "rows": 16, "width": 2**16, "leaf_share": 0.8}
VARIANTS: dict[str, dict[str, Any]] = {
    AS_RUN: {"plan": "one_report", "shared_sketch": True, "compression": "none", **_PRINTED},
    "one sketch a level": {"plan": "one_report", **_PRINTED},
    "Algorithm 3, 30 bits": {"plan": "two_reports", "tree": BITS, "final_cut": False, **_PRINTED},
    "Algorithm 3, two letters": {"plan": "two_reports", "final_cut": False, **_PRINTED},
    SPLIT: {"plan": "split", **_PRINTED},
    BEST: {**_TUNED, "estimator": "joint"},
    PROJECTIVE: {},
}
FINAL_CUT = ", final cut"  # the same run of Algorithm 3 with its list cut at the threshold
LADDER = [
    name for variant in (*VARIANTS, OLH_PEM) for name in ((variant, variant + FINAL_CUT) if "3, " in variant else (variant,))
]


def protocol(params: Params, variant: str, n_users: int, epsilon: float, factor: float | None = None) -> TreeHist | PEM:
    """The variant with the threshold of `params`, or of another factor."""
    least = threshold(params, n_users) if factor is None else factor * math.isqrt(n_users)
    if variant == OLH_PEM:
        return PEM(LETTERS, epsilon, least)
    if variant == PROJECTIVE:
        return _planned(epsilon, n_users, least)
    return TreeHist(**{"tree": LETTERS, "epsilon": epsilon, "threshold": least, **VARIANTS[variant]})


_planned = cache(planned)


def answers(method: TreeHist | PEM, n_users: int) -> bool:
    """Whether a search keeps well below the number of candidates that it may ask for."""
    return isinstance(method, PEM) or expected_candidates(method, n_users) <= method.max_candidates / 2


def bits_a_user(params: Params, variant: str) -> int:
    """What a user sends: a bit a report, or all signs, or one of OLH's hash values."""
    method = protocol(params, variant.removesuffix(FINAL_CUT), params.n_users, params.epsilon)
    if isinstance(method, PEM):
        return math.ceil(math.log2(method.oracle.hash_values))
    if method.compression == "projective":
        return math.ceil(math.log2(geometry(method.epsilon, method.width).points + 1))
    return method.width if method.compression == "none" else 1 + (method.plan == "two_reports")


def find(method: TreeHist | PEM, truth: pd.Series, seed: int, *name: str | int) -> HeavyHitters:
    """One run of `method` on a data set."""
    leaves, counts = leaves_of(method.tree, truth.index), truth.to_numpy()
    rng = stream(seed, "reports", *name)
    if isinstance(method, PEM):
        return method.simulate(leaves, counts, rng)
    return method.draw_hashes(stream(seed, "hashes", *name)).simulate_search(leaves, counts, rng)


def leaves_of(tree: WordTree, words: pd.Index) -> NDArray[np.uint64]:
    """Those of `words` in a tree of six letters, whatever its steps."""
    return _brown_leaves(BITS if tree.unit == BITS.unit else LETTERS) if words is brown_words() else tree.encode(words)


@cache
def _brown_leaves(tree: WordTree) -> NDArray[np.uint64]:
    return tree.encode(brown_words())
