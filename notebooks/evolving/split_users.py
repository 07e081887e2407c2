"""What the notebooks on means share: users who report once, as reported and averaged, and the errors of estimates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evolvingdp.evolving.rivals import once
from evolvingdp.evolving.streams import BitStream

ONCE, ONLINE, HINDSIGHT = "each user once", "once, averaged online", "once, averaged in hindsight"
SMOOTHED = "once, smoothed in hindsight"
SIXTEEN = "users split over 16 periods"


def reported_once(
    data: BitStream, epsilon: float, rng: np.random.Generator, *methods: str
) -> dict[str, NDArray[np.float64]]:
    """Estimates of all epochs, (horizon,), as reported by each user once, averaged between detected changes, and smoothed."""
    settings = once.Once(data.n_users, data.horizon, epsilon)
    tally = once.simulate(settings, data, rng)
    found = {ONCE: settings.estimates(tally)[:, 1]}
    for name in (ONLINE, HINDSIGHT):
        if name in methods:
            found[name] = settings.detect(tally, online=name == ONLINE).estimates[:, 1]
    if SMOOTHED in methods:
        found[SMOOTHED] = settings.smooth(tally, rng).estimates[:, 1]
    return {name: found[name] for name in methods if name in found}


def periods(data: BitStream, epsilon: float, rng: np.random.Generator, every: int) -> NDArray[np.float64]:
    """Estimates of all epochs, (horizon,), of users who report once in one of the epochs 1, 1 + every, ..."""
    settings = once.Once(data.n_users, data.horizon, epsilon, every=every)
    return settings.lots.hold(settings.estimates(once.simulate(settings, data, rng))[:, 1])


def errors(estimates: NDArray[np.float64], truth: NDArray[np.float64]) -> dict[str, float]:
    """The mean and the largest over the epochs, of estimates clipped to [0, 1]; where nothing is known, 1/2."""
    error = np.abs(np.clip(np.nan_to_num(estimates, nan=0.5), 0, 1) - truth)
    return {"mean_error": float(error.mean()), "max_error": float(error.max())}
