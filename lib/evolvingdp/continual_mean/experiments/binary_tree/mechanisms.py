"""The mechanisms that are compared, by the names that tables and figures print, and their exact errors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evolvingdp.continual_mean.binary_mechanism import BinaryMechanism
from evolvingdp.continual_mean.experiments.binary_tree.params import Params
from evolvingdp.continual_mean.prefix_sums import PrefixSums, Toeplitz, Tree

PER_STEP = "Laplace noise at every step"
BINARY = "binary tree (Algorithm 1)"
HONAKER = "binary tree, Honaker"
WIDE = "16-ary tree"
INTEGER = "binary tree, Honaker, integer noise"
GAUSSIAN = "binary tree, Gaussian"
GAUSSIAN_HONAKER = "binary tree, Honaker, Gaussian"
ROOT = "square root, Gaussian"
PURE = [PER_STEP, BINARY, WIDE, HONAKER, INTEGER]
APPROXIMATE = [GAUSSIAN, GAUSSIAN_HONAKER, ROOT]


def mechanism(params: Params, name: str, horizon: int | None = None) -> BinaryMechanism:
    """The mechanism called `name`; per-step noise is a tree of one level for one element at epsilon / T (see `variances`)."""
    steps = horizon or params.horizon
    structures: dict[str, PrefixSums] = {
        BINARY: Tree(steps),
        WIDE: Tree(steps, 16),
        HONAKER: Tree(steps, honaker=True),
        INTEGER: Tree(steps, honaker=True),
        GAUSSIAN: Tree(steps),
        GAUSSIAN_HONAKER: Tree(steps, honaker=True),
        ROOT: Toeplitz(steps),
    }
    delta = params.delta if name in APPROXIMATE else 0.0
    return BinaryMechanism(steps, params.epsilon, delta=delta, integer=name == INTEGER, sums=structures[name])


def variances(params: Params, name: str, horizon: int | None = None) -> NDArray[np.float64]:
    """Exact variance of the running sum at every step."""
    steps = horizon or params.horizon
    if name == PER_STEP:
        return np.full(steps, 2 * (steps / params.epsilon) ** 2)
    made = mechanism(params, name, steps)
    return made.structure.variances(steps) * made.noise.variance
