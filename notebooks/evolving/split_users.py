"""What the notebooks on means share: users who report once, as reported and averaged, and the errors of estimates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core.detection import detect_many
from evolvingdp.core.smoothing import smooth_independent
from evolvingdp.evolving.rivals import once, reserve
from evolvingdp.evolving.rivals.choosing import filled
from evolvingdp.evolving.streams import BitStream

ONCE, ONLINE, HINDSIGHT = "each user once", "once, averaged online", "once, averaged in hindsight"
SMOOTHED = "once, smoothed in hindsight"
SIXTEEN = "users split over 16 periods"
_AT_ONCE = 1 << 12  # epochs of streams that are smoothed together


def reported_once(
    data: BitStream, epsilon: float, rng: np.random.Generator, *methods: str
) -> dict[str, NDArray[np.float64]]:
    """Estimates of all epochs, (horizon,), as reported by each user once, and averaged between detected changes."""
    return all_reported_once([data], epsilon, [rng], *methods)[0]


def all_reported_once(
    streams: Sequence[BitStream],
    epsilon: float,
    rngs: Sequence[np.random.Generator],
    *methods: str,
    smoothing: np.random.Generator | None = None,
) -> list[dict[str, NDArray[np.float64]]]:
    """The same of streams of one size, each with its own generator, and, by `smoothing`, smoothed: all streams are searched
    together, and each by itself."""
    settings = once.Once(streams[0].n_users, streams[0].horizon, epsilon)
    tallies = [once.simulate(settings, *each) for each in zip(streams, rngs, strict=True)]
    told = np.stack([settings.estimates(tally)[:, 1] for tally in tallies], axis=1)
    reports = np.stack([tally.reports for tally in tallies], axis=1)
    found = {ONCE: told}
    for name in (ONLINE, HINDSIGHT):
        if name in methods:
            found[name] = detect_many(told, reports, settings.report, online=name == ONLINE).estimates
    if smoothing:
        found[SMOOTHED] = _smoothed(settings, told, reports, smoothing)
    names = [name for name in (*methods, SMOOTHED) if name in found]
    return [{name: found[name][:, row] for name in names} for row in range(len(streams))]


def _smoothed(
    settings: once.Once, told: NDArray[np.float64], reports: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """`Once.smooth` of the word of each column, some columns at a time."""
    step, smoothed = max(1, _AT_ONCE // len(told)), np.nan_to_num(told)
    for part in (np.s_[:, first : first + step] for first in range(0, told.shape[1], step)):
        for _ in range(2):  # with the variances of the estimates, and then of what is smoothed
            nothing = np.full(told[part].shape, np.inf)
            variances = settings.report.variance(smoothed[part])
            variances = np.divide(variances, reports[part], out=nothing, where=reports[part] > 0)
            smoothed[part] = smooth_independent(told[part], variances, rng).estimates
    return smoothed


def all_with_reserve(
    settings: reserve.Reserve, streams: Sequence[BitStream], rngs: Sequence[np.random.Generator]
) -> NDArray[np.float64]:
    """Estimates of all epochs, (horizon, streams): those of `reserve.simulate` of each stream, of one group of users, with its
    own generator; all are watched together, and each by itself."""
    report, parts, epochs = settings.report, settings.parts, np.arange(1, settings.horizon + 1)
    steady = [settings.once.lots.split(np.array(parts[:1]), rng) for rng in rngs]
    told = zip(streams, steady, rngs, strict=True)
    sums = np.stack([once.draw_sums(report, data, epochs, many, rng) for data, many, rng in told], axis=1)
    reports = np.concatenate(steady).T

    def joined(epoch: int, users: NDArray[np.float64]) -> NDArray[np.float64]:
        both, crews = sums[epoch].copy(), users.astype(np.int64)
        for row in np.flatnonzero(crews):
            at = epochs[epoch : epoch + 1]
            both[row] += once.draw_sums(report, streams[row], at, crews[row].reshape(1, 1), rngs[row])[0]
        return report.estimates(both, reports[epoch] + crews)[:, 1]

    estimates = reserve.follow(settings, report.estimates(sums, reports)[..., 1], reports, joined)
    return np.apply_along_axis(filled, 0, estimates)


def periods(data: BitStream, epsilon: float, rng: np.random.Generator, every: int) -> NDArray[np.float64]:
    """Estimates of all epochs, (horizon,), of users who report once in one of the epochs 1, 1 + every, ..."""
    settings = once.Once(data.n_users, data.horizon, epsilon, every=every)
    return settings.lots.hold(settings.estimates(once.simulate(settings, data, rng))[:, 1])


def errors(estimates: NDArray[np.float64], truth: NDArray[np.float64]) -> dict[str, float]:
    """The mean and the largest over the epochs, of estimates clipped to [0, 1]; where nothing is known, 1/2."""
    error = np.abs(np.clip(np.nan_to_num(estimates, nan=0.5), 0, 1) - truth)
    return {"mean_error": float(error.mean()), "max_error": float(error.max())}
