"""What the paper and we say about the error: explicit bounds, the diversity condition, the tail of a sum of Laplace draws.

**Source.** Equation (1), Theorems 3.1, 3.2, 3.4 and Definition 3.3 of George et al. (2022), with their constants written
out.  Applies E-CM-8, E-CM-14 (sufficient condition), E-CM-15 (tail of Laplace sums) and E-CM-18
(coordinates share epsilon, and condition (11) has their share).
"""

from __future__ import annotations

import math

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
def error_bound(settings: UserMean | Blocks, steps: ArrayLike, largest: ArrayLike, beta: float) -> NDArray[np.float64]:
    """Bound on |estimate - mean| at `steps` t with probability 1 - beta, when no user has more than `largest` samples yet.

    At least t/2 samples are in the estimate (Claim C.1): sqrt(ln(4/beta) / t) for the samples (Hoeffding), and the tail of
    the noise of all levels up to log2(largest), at their largest, over t/2.  For Algorithm 2 all t samples and its one tree.
    """
    naive = isinstance(settings, UserMean)
    if settings.delta or (settings.batch != 1 if naive else settings.kind == "wishful"):  # type: ignore[union-attr]
        raise ValueError("settings must have Laplace noise, and be Algorithm 2, 4, 5 or 6, for this bound")
    t, most, fraction = np.asarray(steps, dtype=float), np.asarray(largest), 1.0 if naive else 0.5
    statistical = np.sqrt(np.log(4 / beta) / (2 * fraction * t))
    levels = np.frexp(np.maximum(most, 1))[1] - 1
    if isinstance(settings, UserMean):
        variances = [float(settings.sums.variances(settings.sums.capacity).max()) * settings.noise.variance]
    else:
        worst = float(settings.sums.variances(settings.sums.capacity).max())
        variances = [worst * noise.variance for noise in settings.noises]
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
