"""What the paper and we say about the error: explicit bounds, the diversity condition, the tail of a sum of Laplace draws.

**Source.** Equation (1), Theorems 3.1, 3.2, 3.4 and Definition 3.3 of George et al. (2022), with their constants written
out.  Applies E-CM-8, E-CM-14 (sufficient condition), E-CM-15 (tail of Laplace sums) and E-CM-18
(coordinates share epsilon, and condition (11) has their share).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.continual_mean.blocks import Blocks
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core import checks


@checks.plain
def laplace_sum_tail(standard_deviation: ArrayLike, beta: float) -> NDArray[np.float64]:
    """x such that a sum of independent centred Laplace draws with this standard deviation exceeds +-x with probability <=
    beta.

    With S^2 the sum of squared scales and h = 1 / (sqrt(2) S): E exp(h Y) = prod 1 / (1 - b^2 h^2) <= exp(2 h^2 S^2) = e, as
    1 / (1 - x) <= exp(2x) up to x = 1/2.  Markov's inequality on both sides gives sqrt(2) S ln(2e / beta).
    """
    checks.positive(beta=beta)
    bound: NDArray[np.float64] = np.asarray(standard_deviation, dtype=float) * math.log(2 * math.e / beta)
    return bound


@checks.plain
def disagreement(settings: Blocks, levels: Sequence[tuple[float, float]], looks: int = 1) -> float:
    """A bound on how probable levels (mean, squared error; `Blocks.levels`) are to differ so much if users are alike.

    Each level is compared with the others together, weighted by precision.  If users are alike and no interval cuts a block
    (which fails with probability `beta` and when a prior is off by more than `prior_deviations`), the levels' sums are
    independent, and the difference has the moments of noise of known variance and of independent samples in the range: with
    Gaussian noise it exceeds x standard errors with probability <= 2 exp(-x^2 / 2), otherwise <= 2 exp(1.1 - x): the proof
    is that of `laplace_sum_tail`, samples have smaller moments, and the .1 is for integer noise, 1 / (1 - var (cosh h - 1))
    where a Laplace draw has 1 / (1 - var h^2 / 2), at h <= 1.  No law is approximated.  `looks`: how often the bound is
    asked for; at the j-th of any number of times that are fixed beforehand, say at steps 1, 2, 4, ..., 2 j^2 is enough.

    It sees only differences between levels: users who differ, but alike in all levels, go unnoticed, and so does whoever
    differs by less than the levels' noise.
    """
    checks.integer_at_least(1, looks=looks)
    means, squares = (
        (np.array(column, dtype=float) for column in zip(*levels, strict=True)) if levels else (np.zeros(0),) * 2
    )
    if len(means) < 2:
        return 1.0
    precision = 1 / squares
    others = precision.sum() - precision
    off = np.abs(means - (precision @ means - precision * means) / others) / np.sqrt(squares + 1 / others)
    log_tail = np.log(2) + (-(off**2) / 2 if settings.delta else 1.1 - off)
    return float(min(1.0, looks * len(means) * np.exp(log_tail.min())))


@checks.plain
def error_bound(settings: UserMean | Blocks, steps: ArrayLike, largest: ArrayLike, beta: float) -> NDArray[np.float64]:
    """Bound on |estimate - mean| at `steps` t with probability 1 - beta, when no user has more than `largest` samples yet.

    At least t/2 samples are in the estimate (Claim C.1): sqrt(ln(4/beta) / t) for the samples (Hoeffding), and the tail of
    the noise of all levels up to log2(largest), at their largest, over t/2.  For Algorithm 2 all t samples and its one tree.
    """
    naive = isinstance(settings, UserMean)
    if settings.delta or (settings.batch != 1 if naive else settings.kind in ("wishful", "alike")):  # type: ignore[union-attr]
        raise ValueError("settings must have Laplace noise, and be Algorithm 2, 4, 5 or 6, for this bound")
    t, most, fraction = np.asarray(steps, dtype=float), np.asarray(largest), 1.0 if naive else 0.5
    statistical = np.sqrt(np.log(4 / beta) / (2 * fraction * t))
    levels = np.frexp(np.maximum(most, 1))[1] - 1
    if isinstance(settings, UserMean):
        variances = [float(settings.sums.variances(settings.sums.capacity).max()) * settings.noise.variance]
    else:
        sums = settings.prefix_sums(settings.capacity_of(0))
        worst = float(sums.variances(sums.capacity).max())
        variances = [
            worst * settings.noise(tree, sums, settings.user_sensitivity(tree)).variance for tree in range(settings.n_trees)
        ]
    running = np.cumsum(variances)
    noise = running[np.minimum(levels, len(running) - 1)]
    samples = settings.resolution * fraction * t
    bound: NDArray[np.float64] = statistical + laplace_sum_tail(np.sqrt(noise), beta / 2) / samples
    return bound


def arrays_needed(settings: Blocks, largest: float) -> float:
    """The right side of (11) over M_t / 2, a number of users: 16 / epsilon * 2 L ln(3 L sqrt(M_t) / delta).

    For d coordinates `settings` are those of one of them, with its share of epsilon.
    """
    levels = max(1, settings.top_level)
    return 16 / settings.epsilon * 2 * levels * math.log(3 * levels * math.sqrt(largest) / settings.beta)


def diverse(settings: Blocks, counts: ArrayLike) -> bool:
    """Whether the diversity condition (11) holds when the users have contributed `counts` samples."""
    held = np.asarray(counts, dtype=float)
    largest = float(held.max(initial=0))
    return largest > 0 and bool(np.minimum(held, largest / 2).sum() >= largest / 2 * arrays_needed(settings, largest))
