"""RecordedSums: all running sums of a stream that has ended, from a tree of noisy block sums made consistent.

**Computes** S_1, ..., S_T at once.  A count may be corrected by blocks that end after it, which no running release has.

**Guarantee.** epsilon-DP for the whole sequence, Laplace noise.  Neighbours differ in one element, by at most `sensitivity`;
how many elements there are is public.

**Error.** Of linear estimates without bias the one of least variance, given the noisy blocks; `standard_error(t)` is exact.

**Source.** Hay, Rastogi, Miklau and Suciu (2010), section 4: each block is averaged with the sum of its children, from the
leaves up, then the difference between a parent and the sum of its children is shared among the children, from the root
down.  Their weights are for full trees; these are by variance, so that blocks beyond the end, which are known to be 0,
count as such.  Their root is left out: the sum of the whole stream helps less than a level more costs.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.continual_mean.binary_mechanism import finite_scale
from evolvingdp.core import checks
from evolvingdp.core.exact import Grid
from evolvingdp.core.noise import Laplace

Array = NDArray[np.float64]
LARGEST = 32  # branching that is tried


@checks.plain
@dataclass(frozen=True)
class RecordedSums:
    """Running sums of exactly `n_steps` elements, recorded before; `branching` 0: the one with the least mean variance."""

    n_steps: int
    epsilon: float
    sensitivity: float = 1.0  # largest change of one element
    branching: int = 0

    def __post_init__(self) -> None:
        checks.integer_at_least(1, n_steps=self.n_steps)
        checks.positive(epsilon=self.epsilon, sensitivity=self.sensitivity)
        if self.branching:
            checks.integer_at_least(2, branching=self.branching)
        object.__setattr__(self, "branching", self.branching or _best(self.n_steps))
        checks.plain_integers(self, "n_steps", "branching")
        _ = self.noise

    @cached_property
    def blocks(self) -> list[int]:
        """How many blocks a level has: single elements first, at most `branching` blocks last."""
        return _blocks(self.n_steps, self.branching)

    @property
    def noise(self) -> Laplace:
        """Of each block."""
        return Laplace(finite_scale(len(self.blocks) * self._grid.moved, self.epsilon))

    @cached_property
    def _grid(self) -> Grid:
        return Grid(self.sensitivity, self.n_steps)

    def standard_error(self, lengths: ArrayLike) -> Array:
        """Exact standard deviation of S_t for t in `lengths` (any shape, 1 to n_steps); public."""
        error: Array = np.sqrt(_relative_variance(self.n_steps, self.branching, lengths) * self.noise.variance)
        return error

    def release(self, elements: ArrayLike, rng: np.random.Generator) -> Array:
        """S_1, ..., S_T of `elements` (n_steps,)."""
        values = self._grid.steps(elements).astype(float)
        values *= self._grid.step
        if len(values) != self.n_steps:
            raise ValueError(f"elements must be {self.n_steps} numbers, got shape {values.shape}")
        sums, variances = values, _variances(self.n_steps, self.branching)
        noise = np.split(self.noise.draw(sum(self.blocks), rng), np.cumsum(self.blocks)[:-1])
        estimates, known = sums + noise[0], []
        for drawn, weights in zip(noise[1:], variances[1:], strict=True):
            known.append(_families(estimates, self.branching))
            sums = _families(sums, self.branching).sum(axis=1)
            estimates = weights * (sums + drawn) + (1 - weights) * known[-1].sum(axis=1)
        for family, spread in zip(known[::-1], variances[-2::-1], strict=True):
            weights = _families(spread, self.branching)
            missing = estimates - family.sum(axis=1)
            estimates = (family + weights * (missing / weights.sum(axis=1))[:, None]).ravel()[: len(spread)]
        return np.cumsum(estimates)


def _families(values: Array, branching: int) -> Array:
    """A row for the children of each block; where there are none, 0."""
    padded = np.zeros(-(-len(values) // branching) * branching)
    padded[: len(values)] = values
    return padded.reshape(-1, branching)


def _blocks(n_steps: int, branching: int) -> list[int]:
    counts = [n_steps]
    while counts[-1] > branching:
        counts.append(-(-counts[-1] // branching))
    return counts


@cache
def _variances(n_steps: int, branching: int) -> list[Array]:
    """Of what each block and all below it say of it, over one draw's: also the weight of its own draw."""
    known = [np.ones(n_steps)]
    while len(known[-1]) > branching:
        below = _families(known[-1], branching).sum(axis=1)
        known.append(below / (1 + below))
    return known


def _relative_variance(n_steps: int, branching: int, lengths: ArrayLike) -> Array:
    """Of a prefix, over one draw's.

    What it holds of a block is c times the block, and a rest that is independent of it.  The children of a block, given it,
    have the covariance diag(w) - w w'/W: w their variances from below, W its sum; so c and the rest's variance go up.
    """
    place = np.asarray(lengths, dtype=np.int64) - 1
    if place.size and not (place.min() >= 0 and place.max() < n_steps):
        raise ValueError(f"lengths must lie in 1 to {n_steps}, got {np.asarray(lengths)!r}")
    known = _variances(n_steps, branching)
    share, rest = np.ones(place.shape), np.zeros(place.shape)
    for variances, _ in itertools.pairwise(known):
        parent, child = np.divmod(place, branching)
        family, earlier = _families(variances, branching)[parent], np.arange(branching) < child[..., None]
        own, before, whole = variances[place], (family * earlier).sum(axis=-1), family.sum(axis=-1)
        reached = before + share * own
        share, rest = reached / whole, rest + before + share**2 * own - reached**2 / whole
        place = parent
    top = known[-1]
    total: Array = rest + share**2 * top[place] + (np.cumsum(top) - top)[place]
    return total


@cache
def _best(n_steps: int) -> int:
    lengths = np.unique(np.linspace(1, n_steps, 1024).astype(np.int64))

    def error(branching: int) -> float:
        return float(np.mean(_relative_variance(n_steps, branching, lengths))) * len(_blocks(n_steps, branching)) ** 2

    found = min(range(2, LARGEST + 1), key=error)
    _variances.cache_clear()  # those of the trees that are not taken
    return found
