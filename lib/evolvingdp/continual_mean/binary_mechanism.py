"""BinaryMechanism: all running sums of a stream, each element in few noisy partial sums.

**Computes** S_1, S_2, ..., S_T, noisy sums of the first t elements.

**Guarantee.** epsilon-DP for the whole sequence (with `delta`: (epsilon, delta)-DP, Gaussian noise).  Neighbours differ in
one element, by at most `sensitivity`, or in up to `uses` of them; which elements these are, and how many there are, is
public.

**Exact sums.** Elements are whole numbers of steps of a grid, 2^-20 of the sensitivity or integers (`core.exact`); what is
too large for an exact sum is refused.  A state that goes on twice repeats its noise: go on once.

**Error.** The standard deviation of S_t is `standard_error(t)`, exactly. For the plain tree with Laplace noise it is at most
(sensitivity * height / epsilon) * sqrt(2 * height), height = floor(log2 T) + 1.

**Source.** Algorithm 1 of George et al. (2022) (`Tree(T)`, Laplace noise), whose line 4 is `step`'s argument, lines 5-7 the
node that ends at t and lines 8-13 the sum over the binary digits of t.  Applies E-CM-1 (a digit 0 adds nothing) and E-CM-5
(whole levels).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.continual_mean.prefix_sums import Noises, PrefixSums, Tree
from evolvingdp.core import accounting, checks
from evolvingdp.core.exact import Grid
from evolvingdp.core.noise import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, Noise, Tape

LARGEST_NOISE = 2**54  # of an integer scale times the elements, so that sums of draws fit in 64 bits


def noise_for(
    change: float, budget: float, *, delta: float, integer: bool, elements: int
) -> Laplace | DiscreteLaplace | Gaussian:
    """Noise of scale `change` / `budget` for sums of so many elements: budget is epsilon and change in l1, or mu and in l2
    where there is a delta.  Raises ValueError where doubles, or integers of 64 bits, do not hold it."""
    if not change <= 1e150 * budget:
        raise ValueError(f"epsilon must be larger: {budget:.3g} for a change of {change:.3g} needs noise above 1e150")
    scale = change / budget
    if integer and not (scale <= 2**46 and scale * elements <= LARGEST_NOISE):
        raise ValueError(
            f"epsilon must be larger, or integer=False: integer noise of scale {scale:.3g} for {elements} elements needs "
            f"more than 64 bits, got a share of {budget:.6g}"
        )
    if delta:
        return Gaussian(scale)
    return DiscreteLaplace(scale) if integer else Laplace(scale)


def calibrate(
    sums: PrefixSums, epsilon: float, delta: float, sensitivity: float, *, integer: bool = False, uses: int = 1
) -> Laplace | DiscreteLaplace | Gaussian | DiscreteGaussian:
    """The noise of a draw that makes `sums` private when `uses` elements of one person change by `sensitivity` each.

    delta = 0: Laplace (or, on integers, discrete Laplace); delta > 0: Gaussian; on the integer nodes of a `Tree` discrete
    Gaussian, as zero-concentrated privacy.
    Raises ValueError for a balanced tree with delta > 0, and for a filter without delta or with integer noise.
    """
    if not isinstance(sums, Tree) and (integer or not delta):
        raise ValueError(
            "sums must be a tree, but for Gaussian noise with delta > 0: a filter adds noise to products with real numbers, "
            f"whose fractions no integer hides, got {type(sums).__name__}"
        )
    if isinstance(sums, Tree) and not delta:
        return noise_for(uses * sensitivity * sums.l1, epsilon, delta=0.0, integer=integer, elements=sums.capacity)
    if isinstance(sums, Tree) and sums.balanced:
        raise ValueError("sums must have Laplace noise: a balanced tree adds noise of blocks to come, so delta must be 0")
    moved = sensitivity * sums.l2(uses)
    if integer:
        return DiscreteGaussian(moved / math.sqrt(2 * accounting.concentrated_rho(epsilon, delta)))
    return Gaussian(moved / accounting.gaussian_mu(epsilon, delta))


@cache
def best_tree(capacity: int, largest: int = 32) -> Tree:
    """The tree with the least l1-calibrated error, exact, averaged over evenly spread lengths up to `capacity`."""
    lengths = np.unique(np.linspace(1, capacity, 1024).astype(np.int64))
    trees = [Tree(capacity, base, balanced) for balanced in (False, True) for base in range(2, largest + 1)]
    return min(trees, key=lambda tree: float(np.mean(tree.relative_variance(lengths))) * tree.l1**2)


class State(NamedTuple):
    """Secret."""

    settings: BinaryMechanism
    noises: Noises
    total: int = 0  # steps of the grid
    length: int = 0

    def __repr__(self) -> str:
        return "State"


@checks.plain
@dataclass(frozen=True)
class BinaryMechanism:
    """Algorithm 1 for at most `horizon` elements; `sums`: another structure than its plain binary tree, for less
    noise."""

    horizon: int  # elements, at most
    epsilon: float  # of the whole stream
    sensitivity: float = 1.0  # largest change of one element
    delta: float = 0.0  # 0: Laplace noise; else Gaussian noise
    integer: bool = False  # discrete noise, for integer elements
    sums: PrefixSums | None = None  # default: Tree(horizon)
    uses: int = 1  # elements that one person may change

    def __post_init__(self) -> None:
        checks.integer_at_least(1, horizon=self.horizon, uses=self.uses)
        checks.plain_integers(self, "horizon", "uses")
        checks.positive(epsilon=self.epsilon, sensitivity=self.sensitivity)
        checks.number(delta=self.delta)
        if not 0 <= self.delta < 1:
            raise ValueError(f"delta must lie in [0, 1), got {self.delta!r}")
        if self.sums is not None and self.sums.capacity < self.horizon:
            raise ValueError(f"sums must have capacity {self.horizon} or more, got {self.sums.capacity}")
        _ = self.noise

    @cached_property
    def grid(self) -> Grid:
        """On which elements are summed."""
        return Grid(self.sensitivity, self.horizon, self.integer)

    @property
    def structure(self) -> PrefixSums:
        """`sums`, or its default."""
        return self.sums or Tree(self.horizon)

    @property
    def noise(self) -> Noise:
        """What every node gets, calibrated."""
        moved = self.grid.moved
        return calibrate(self.structure, self.epsilon, self.delta, moved, integer=self.integer, uses=self.uses)

    def standard_error(self, lengths: ArrayLike) -> NDArray[np.float64]:
        """Exact standard deviation of S_t for t in `lengths`; public."""
        error: NDArray[np.float64] = np.sqrt(self.structure.relative_variance(lengths) * self.noise.variance)
        return error

    def release(self, elements: ArrayLike, rng: np.random.Generator) -> NDArray[np.float64]:
        """S_1, ..., S_T of `elements` (T,), all at once."""
        prefix = np.cumsum(self.grid.steps(elements))
        noise = self.structure.all(len(prefix), Tape(self.noise, rng))
        noisy: NDArray[np.float64] = (prefix if self.integer else prefix * self.grid.step) + noise
        return noisy

    def start(self, rng: np.random.Generator) -> State:
        """The state before the first element; secret."""
        return State(self, self.structure.online(Tape(self.noise, rng)))

    def step(self, state: State, element: float) -> tuple[State, float]:
        """Take the next element; the second value is the noisy S_t.  On trees memory grows with log T."""
        checks.state(state, State, self)
        steps = self.grid.steps_of(element)
        if state.length >= self.horizon:
            raise ValueError(f"horizon is {self.horizon}: there is no element {state.length + 1}")
        noise, _, noises = state.noises.of(state.length + 1)
        after = State(self, noises, state.total + steps, state.length + 1)
        return after, (after.total if self.integer else after.total * self.grid.step) + noise


def printed_sums(partial_sums: ArrayLike) -> NDArray[np.float64]:
    """What lines 8-13 return as printed: the last partial sum is added again at every digit 0 (E-CM-1).

    `partial_sums[t-1]` is the noisy sum of the largest block that ends at t.
    """
    nodes = np.asarray(partial_sums, dtype=float)
    sums = np.zeros(len(nodes))
    for step in range(1, len(nodes) + 1):
        index = 0
        for digit in reversed(range(step.bit_length())):
            index += step & (1 << digit)
            sums[step - 1] += nodes[index - 1]
    return sums
