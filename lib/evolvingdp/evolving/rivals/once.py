"""Every user reports once: users are split over epochs, and no user's budget is split.

**Computes** an estimate of the mean bit in every epoch. Each user draws a lot, which names one epoch. In that epoch it
reports one bit, 1 with a probability that is linear in the mean of its bits of that epoch, with all of epsilon; in all
others it is silent. With `every` > 1 the lots name only epochs 1, 1 + every, ..., and an estimate stays until the next.

**Guarantee.** Pure epsilon-local differential privacy of **everything that one user ever sends**; neighbouring inputs are
any two sequences of bits of that user. The lot, and with it when something is sent, does not depend on data. The loss is
exactly epsilon: it is attained by users whose bits of the epoch are all 0 and all 1.

**Error.** Unbiased for any data, any length of an epoch and any number of changes. The standard error of an epoch with m
reports is at most coth(epsilon/2) / (2 sqrt(m)), where m is n / horizon or so; for small epsilon it is hardly less.

**Source.** Folklore; the reports are the estimates of THRESH (Joseph et al. 2018, Algorithm 1).
`simulate` is exact: lots are independent of everything, so that the reporters of a group are multinomial over epochs. A
report is 1 with a probability that is linear in the mean of the user's bits, hence in their expectation: ones are binomial.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.evolving.rivals.detection import Fit, detect_at
from evolvingdp.evolving.streams import BitStream


@dataclass(frozen=True)
class Lots:
    """Which epoch each user reports in: uniform over epochs 1, 1 + every, ..., independently of data and of other users."""

    n_users: int
    horizon: int
    every: int = 1

    def __post_init__(self) -> None:
        checks.integer_at_least(1, n_users=self.n_users, horizon=self.horizon, every=self.every)
        if self.every > self.horizon:
            raise ValueError(f"every must be at most the horizon, {self.horizon}, got {self.every}")

    @property
    def epochs(self) -> NDArray[np.int64]:
        """The epochs with reports, (lots,), from 1."""
        return np.arange(1, self.horizon + 1, self.every)

    def deal(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """Each user's epoch, (n_users,)."""
        return 1 + self.every * rng.integers(0, len(self.epochs), size=self.n_users)

    def split(self, sizes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """How many users of each group report in each epoch with reports, (groups, lots): the law of `deal`, counted."""
        return np.asarray(rng.multinomial(sizes, np.full(len(self.epochs), 1 / len(self.epochs))))

    def hold(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """(lots, ...) values of the epochs with reports -> (horizon, ...): each stays until the next."""
        return np.repeat(values, self.every, axis=0)[: self.horizon]


@dataclass(frozen=True, eq=False)
class Tally:
    """What the server holds: reports and ones by epoch with reports, (lots,) each. Public. Servers merge with `+`."""

    reports: NDArray[np.int64]
    ones: NDArray[np.int64]

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.reports + other.reports, self.ones + other.ones)


@checks.plain
@dataclass(frozen=True)
class Once:
    """Users of `horizon` epochs of `epoch_length` bits each; `epsilon` of a user's only report."""

    n_users: int
    horizon: int
    epoch_length: int
    epsilon: float
    every: int = 1

    def __post_init__(self) -> None:
        checks.integer_at_least(1, epoch_length=self.epoch_length)
        checks.positive(epsilon=self.epsilon)
        _ = self.lots

    @property
    def lots(self) -> Lots:
        """Which epoch each user reports in."""
        return Lots(self.n_users, self.horizon, self.every)

    @property
    def randomizer(self) -> SignFlip:
        """Of a report."""
        return SignFlip(self.epsilon)

    @property
    def variance(self) -> float:
        """Of an estimate from one report, coth(epsilon/2)^2 / 4, the largest for any data; of m reports, one m-th."""
        return self.randomizer.variance()

    @property
    def standard_error(self) -> float:
        """Of an epoch with as many reports as there are on average, before any data; a bound, as `variance` is."""
        return float(np.sqrt(self.variance * len(self.lots.epochs) / self.n_users))

    def estimates(self, tally: Tally) -> NDArray[np.float64]:
        """Of the epochs with reports, (lots,), unbiased, not clipped; nan where nobody's lot fell."""
        randomizer, nothing = self.randomizer, np.full(len(tally.reports), np.nan)
        shares = np.divide(tally.ones, tally.reports, out=nothing, where=tally.reports > 0)
        return np.asarray((shares - randomizer.flip) / (randomizer.keep - randomizer.flip))

    def largest_variance(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of an estimate from one report, for means between `low` and `high`."""
        one = self.randomizer.report_one(np.clip(0.5, low, high))
        return np.asarray(one * (1 - one) * self.randomizer.debias**2)

    def detect(self, tally: Tally, *, online: bool = False, false_alarm: float = 0.05) -> Fit:
        """`detection.detect` of the estimates of the epochs with reports, with the variance of what is estimated."""
        return detect_at(self.estimates(tally), tally.reports, self.largest_variance, online=online, false_alarm=false_alarm)


@dataclass(frozen=True, eq=False, repr=False)
class State:
    """The epoch that has passed, and each user's lot. Nothing of a user's data is kept."""

    epoch: int
    lots: NDArray[np.int64]
    settings: Any  # whose state it is: `step` refuses it for others

    def following(self, horizon: int) -> State:
        """After the next epoch.  Raises ValueError when the horizon is over."""
        if self.epoch >= horizon:
            raise ValueError(f"horizon must be larger to go on: {horizon} epochs are over")
        return State(self.epoch + 1, self.lots, self.settings)


def start(settings: Once, rng: np.random.Generator) -> State:
    """Before the first epoch: users draw their lots."""
    return State(0, settings.lots.deal(rng), settings)


def step(settings: Once, state: State, counts: NDArray[np.integer], rng: np.random.Generator) -> tuple[State, Tally]:
    """An epoch in which user i has counts[i] ones among `epoch_length` bits, (n_users,), and the tally of this epoch: one
    entry, or none where no lot names it."""
    checks.state(state, State, settings)
    state = state.following(settings.horizon)
    counts = checks.integer_array("counts", counts, below=settings.epoch_length + 1)
    if len(counts) != settings.n_users:
        raise ValueError(f"counts must have one entry per user ({settings.n_users}), got {len(counts)}")
    reporters = np.flatnonzero(state.lots == state.epoch)
    ones = int(np.count_nonzero(settings.randomizer.draw_reports(counts[reporters] / settings.epoch_length, rng)))
    named = np.full(np.count_nonzero(settings.lots.epochs == state.epoch), 1)
    return state, Tally(named * len(reporters), named * ones)


def run(settings: Once, stream: BitStream, *, bits: np.random.Generator, private: np.random.Generator) -> Tally:
    """All epochs of `stream`, user by user; `bits` draws the users' data, `private` their lots and noise."""
    state, tallies = start(settings, private), []
    for epoch in range(1, stream.horizon + 1):
        state, tally = step(settings, state, stream.counts(epoch, bits), private)
        tallies.append(tally)
    return Tally(*(np.concatenate(part) for part in zip(*((each.reports, each.ones) for each in tallies), strict=True)))


def simulate(settings: Once, stream: BitStream, rng: np.random.Generator) -> Tally:
    """The same law at a cost that does not grow with the number of users."""
    sizes = (stream.n_users, stream.horizon, stream.epoch_length)
    if sizes != (settings.n_users, settings.horizon, settings.epoch_length):
        raise ValueError(f"stream must have the sizes of the settings, got n_users, horizon, epoch_length = {sizes}")
    reports = settings.lots.split(stream.sizes, rng)
    ones = rng.binomial(reports, settings.randomizer.report_one(stream.group_means[:, settings.lots.epochs - 1]))
    return Tally(reports.sum(axis=0), ones.sum(axis=0))
