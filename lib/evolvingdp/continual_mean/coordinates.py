"""Means of d-dimensional samples: one `UserMean` per coordinate, the budget shared between them (Section 4).

**Guarantee.** User-level, for all coordinates together.  Pure epsilon: each coordinate has epsilon/d.  With
`composition_delta`: (epsilon, composition_delta), each coordinate has the pure epsilon that optimal composition of d
mechanisms allows.  Settings with delta > 0 (Gaussian noise): (epsilon, delta) exactly, the squares of mu add up.  Applies
E-CM-16: the paper's composition theorem lacks terms, an accountant does not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core import accounting, checks


def of_one(settings: UserMean, n_dimensions: int, composition_delta: float = 0.0) -> UserMean:
    """The settings of one of `n_dimensions` coordinates, where `settings` says what all of them may cost."""
    checks.integer_at_least(1, n_dimensions=n_dimensions)
    if settings.dimensions not in (1, n_dimensions):
        raise ValueError(f"settings must have dimensions 1 or {n_dimensions}, got those of {settings.dimensions}")
    if settings.delta:
        if composition_delta:
            raise ValueError("composition_delta must be 0 where settings have a delta: Gaussian noise composes exactly")
        return settings.but(dimensions=n_dimensions)
    if composition_delta and n_dimensions > 1:
        return settings.but(epsilon=accounting.optimal(settings.epsilon, composition_delta, n_dimensions))
    return settings.but(epsilon=settings.epsilon / n_dimensions)


def release(
    settings: UserMean, users: ArrayLike, samples: ArrayLike, rng: np.random.Generator, composition_delta: float = 0.0
) -> NDArray[np.float64]:
    """Estimates (T, d) for `samples` (T, d), each in [low, high]; `settings` is what all coordinates may cost."""
    values = np.asarray(samples)
    if values.ndim != 2 or values.shape[1] == 0:
        raise TypeError(f"samples must have shape (steps, dimensions), got {values.shape}")
    one = of_one(settings, values.shape[1], composition_delta)
    for column in values.T:
        one.encode(column)  # before anything is released
    rngs = rng.spawn(values.shape[1])
    columns = zip(values.T, rngs, strict=True)
    return np.stack([one.release(users, column, child).estimate for column, child in columns], axis=1)
