"""What THRESH and HEAVYTHRESH are compared with: recomputing every so often, at the same privacy loss of a user's whole
transcript, with everybody's budget split over the reports.

**Guarantee.** Each report is randomized response on one bit, or that of HEAVYTHRESH; `epsilon_of_report` composes
them to pure epsilon ("basic") or to (epsilon, delta) ("advanced", "optimal"); `within_windows` promises less, and says
what. Neighbouring inputs are any two sequences of bits or words of one user.

**Source.** The naive strategy of the paper's introduction; composition as in `core.accounting`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import accounting, checks
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.reports import BITS, best_report
from evolvingdp.evolving.heavy_simulation import Hashed, reported_sums
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.streams import BitStream, WordStream

COMPOSITIONS = ("basic", "advanced", "optimal")


def epsilon_of_report(epsilon: float, n_reports: int, composition: str = "basic", delta: float = 1e-6) -> float:
    """The epsilon of one report for `n_reports` reports of a user in all."""
    checks.one_of(COMPOSITIONS, composition=composition)
    if composition == "basic":
        return accounting.basic(epsilon, n_reports)
    compose = accounting.advanced if composition == "advanced" else accounting.optimal
    return compose(epsilon, delta, n_reports)


@checks.draws
def recompute(
    stream: BitStream,
    epsilon: float,
    rng: np.random.Generator,
    *,
    every: int = 1,
    composition: str = "basic",
    delta: float = 1e-6,
) -> NDArray[np.float64]:
    """Estimates of all epochs, (horizon,), from a fresh report of each user in epochs 1, 1 + every, ...; not clipped.

    Exact: a user's report is 1 with a probability that is linear in the mean of its bits, so the ones are binomial.
    """
    checks.integer_at_least(1, every=every)
    asked = np.arange(0, stream.horizon, every)
    randomizer = SignFlip(epsilon_of_report(epsilon, len(asked), composition, delta))
    spread = randomizer.keep - randomizer.flip
    ones = rng.binomial(stream.sizes[:, None], randomizer.flip + stream.means[:, asked] * spread).sum(axis=0)
    estimates = (ones / stream.n_users - randomizer.flip) / spread
    return np.repeat(estimates, every)[: stream.horizon]


@checks.draws
def recompute_words(
    settings: HeavyThresh,
    stream: WordStream,
    rng: np.random.Generator,
    *,
    composition: str = "basic",
    delta: float = 1e-6,
) -> Iterator[NDArray[np.float64]]:
    """Estimates of one epoch after the other, (n_words,), from a fresh report of each user, the best one, or the paper's
    signs where `settings` has them, and at its loss; not clipped."""
    voting = settings.voting
    one = epsilon_of_report(voting.epsilon, voting.horizon, composition, delta)
    every = replace(voting, vote_cap=0, estimate_cap=voting.horizon, estimate_epsilon=one, epsilon=voting.horizon * one)
    fresh = replace(settings, voting=every, report=settings.report and best_report(settings.n_words, one, BITS))
    hashed = Hashed(fresh, stream)
    for epoch in range(1, voting.horizon + 1):
        yield fresh.estimates(reported_sums(hashed, epoch, rng))


@checks.draws
@checks.plain
def within_windows(
    stream: BitStream, epsilon: float, rng: np.random.Generator, *, window: int, absorb: bool = True
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """LDP-IDS by population absorption (LPA), or distribution (LPD): estimates and how many report, (horizon,) each.

    In each epoch n / 2 `window` users report, whose mean is compared with the last release. Others report a new one where
    that is further off, squared and less its variance, than the variance of a new one: half of those whom the window has
    left for it, or (`absorb`) all whom epochs without a release have saved, after which as many epochs have none.

    **Guarantee: w-event**, pure epsilon of what a user sends in any `window` consecutive epochs, and **not** of more: in all
    epochs a user may lose ceil(horizon / window) epsilon. Only from window = horizon on it is that of everything.

    Exact for one group of users, which `stream` must be. Source: Ren et al. (2022), Algorithms 3 and 4.
    """
    checks.integer_at_least(1, window=window)
    if len(stream.sizes) != 1:
        raise ValueError(f"stream must have one group of users, got {len(stream.sizes)}")
    if (part := stream.n_users // (2 * window)) < 1:
        raise ValueError(f"window must be at most n_users / 2, {stream.n_users // 2}, got {window}")
    randomizer, horizon, release = SignFlip(epsilon), stream.horizon, math.nan
    ones, spread = randomizer.report_one(stream.means[0]), randomizer.keep - randomizer.flip
    variance = randomizer.flip * randomizer.keep / spread**2  # of one report, given who holds what
    estimates, asked = np.empty(horizon), np.zeros(horizon, dtype=np.int64)
    last, used_up = -1, 0  # the epoch of the last release, and how many epochs after it have none

    def told(epoch: int, users: int) -> float:
        return float((rng.binomial(users, ones[epoch]) / users - randomizer.flip) / spread)

    for epoch in range(horizon):
        apart = (told(epoch, part) - release) ** 2 - variance / part
        if absorb:
            users = part * min(max(0, epoch - last - used_up), window)
        else:
            users = (stream.n_users // 2 - int(asked[max(0, epoch - window + 1) : epoch].sum())) // 2
        if users and not apart <= variance / users:  # before the first release it is nan, and one follows
            release, last, used_up, asked[epoch] = told(epoch, users), epoch, users // part - 1, users
        estimates[epoch] = release
    return estimates, asked + part


def standard_error(n_users: int, epsilon_of_one: float) -> float:
    """Of a recomputed mean near 1/2: coth(e/2) / (2 sqrt(n)); exact at 1/2, nearly so elsewhere for small e."""
    return SignFlip(epsilon_of_one).debias / (2 * math.sqrt(n_users))
