"""Memoization: a device answers each value once and for all, and repeats that answer, perhaps with fresh noise on top.

**Computes** an estimate of the mean bit in every epoch. A device draws a permanent answer to 0 and one to 1, each by
randomized response at `permanent_epsilon`. In each epoch it sends the answer to its bit, through randomized response at
`report_epsilon`, or as it is (inf: one layer). `rappor` has two layers; `dbitflip` has one, of half of epsilon, for the one
bucket that a device samples; `loloha` hashes bits to two cells first, so that for half of the users both bits are one value.

**Guarantee: another one than everywhere else in this book.** The promise is *per distinct value*: `permanent_epsilon` bounds
what all reports together tell about a bit **that never changes**. It says nothing of sequences. Between any two sequences of
a user's bits the loss of all reports is `transcript_loss`, exactly: infinite for one layer from two epochs on, since a
changed report proves a changed bit; for two layers it grows with T without end, as
T report_epsilon / 2 + permanent_epsilon - ln 4.

**Error.** A report agrees with the bit with probability p = p1 p2 + (1 - p1)(1 - p2), and the standard error is at most 1 /
(2 (2p - 1) sqrt(n)), twice that for `loloha`. It hardly falls with averages over time: permanent answers stay as they are.

**Source.** Erlingsson, Pihur and Korolova (2014), RAPPOR; Ding, Kulkarni and Yekhanin (2017), dBitFlipPM; Arcolezi, Pinzon,
Palamidessi and Gambs (2023), LOLOHA. All three for one Boolean; the probabilities of the latter two agree with the code that
LOLOHA's authors publish. The losses of transcripts are ours.
`transcript_loss`: report epochs by (bit of one sequence, bit of the other), and let s be reports of 1 less those of 0. Given
both answers reports are independent, so a sequence has probability (...)^T f(s of its 1s) f(-s of its 0s), f(s) =
p1 e^(bs) + (1 - p1) e^(-bs), b = report_epsilon / 2, and the factor left out is the same for both. Sums s_0, s_1 of one and
r_0, r_1 of the other sequence occur together in T epochs if and only if s_0 + s_1 = r_0 + r_1, no |.| + |.| is larger than
T, and T is of their parity.
`simulate` is exact: users with the same bits are counted by their answers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from evolvingdp.core import checks
from evolvingdp.core.sampling import blocks
from evolvingdp.evolving.rivals.threshold_stream import ThresholdStream, check_bits, same_sizes
from evolvingdp.evolving.streams import BitStream

_ENTRIES = 1 << 22  # bits of a chunk of users


@checks.plain
@dataclass(frozen=True)
class Memoized:
    """`permanent_epsilon` of the answer to each value, `report_epsilon` of the noise on every report (inf for none)."""

    n_users: int
    horizon: int  # reports of a user
    permanent_epsilon: float
    report_epsilon: float = math.inf
    hashed: bool = False  # each user has a hash function of its own to one bit (BiLOLOHA)

    def __post_init__(self) -> None:
        checks.integer_at_least(1, n_users=self.n_users, horizon=self.horizon)
        checks.positive(permanent_epsilon=self.permanent_epsilon)
        if self.report_epsilon != math.inf:
            checks.positive(report_epsilon=self.report_epsilon)

    @classmethod
    def rappor(cls, n_users: int, horizon: int, permanent_epsilon: float, report_epsilon: float) -> Memoized:
        """Two layers: p1 = 1 - f/2 and p2 = q = 1 - p in RAPPOR's letters."""
        return cls(n_users, horizon, permanent_epsilon, report_epsilon)

    @classmethod
    def dbitflip(cls, n_users: int, horizon: int, epsilon: float) -> Memoized:
        """dBitFlipPM with one of two buckets sampled: its bit is answered at epsilon / 2, once for each value."""
        return cls(n_users, horizon, epsilon / 2)

    @classmethod
    def loloha(cls, n_users: int, horizon: int, permanent_epsilon: float, first_epsilon: float) -> Memoized:
        """BiLOLOHA, with a loss of `first_epsilon` for one report; the noise on it follows."""
        checks.positive(permanent_epsilon=permanent_epsilon, first_epsilon=first_epsilon)
        if not first_epsilon < permanent_epsilon:
            raise ValueError(f"first_epsilon must be below permanent_epsilon, {permanent_epsilon}, got {first_epsilon}")
        both = math.expm1(permanent_epsilon + first_epsilon)
        report = math.log(both / (math.exp(permanent_epsilon) - math.exp(first_epsilon)))
        return cls(n_users, horizon, permanent_epsilon, report, True)

    @property
    def agree(self) -> float:
        """p: the probability that a report is the bit (the value of the bit's cell, if hashed)."""
        slips, noise = float(expit(-self.permanent_epsilon)), float(expit(-self.report_epsilon))
        return (1 - slips) * (1 - noise) + slips * noise

    @property
    def spread(self) -> float:
        """P(a report is 1) of bit 1 less that of bit 0."""
        return (self.agree - 0.5) * (1 if self.hashed else 2)

    def estimates(self, ones: NDArray[np.int64]) -> NDArray[np.float64]:
        """Of every epoch, (horizon,), from reports of 1; unbiased, not clipped."""
        return (ones / self.n_users - (self.agree - self.spread)) / self.spread

    def standard_errors(self, means: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of epochs with these means of users alike, exactly; but errors of different epochs are alike, too."""
        one = self.agree - self.spread * (1 - means)
        return np.sqrt(one * (1 - one) / self.n_users) / self.spread

    def transcript_loss(self, horizon: int | None = None) -> float:
        """The exact epsilon of a user's reports in `horizon` epochs (None: in all), between any two sequences of bits."""
        epochs = self.horizon if horizon is None else horizon
        checks.integer_at_least(1, horizon=epochs)
        if epochs > 1 and self.report_epsilon == math.inf:
            return math.inf
        if epochs == 1:
            return math.log(self.agree / (1 - self.agree))
        sums, worst = np.arange(-epochs, epochs + 1), 0.0
        logs = self._log_factor(sums)
        for total in range(-epochs, 1, 2):  # the other half by exchange of 0 and 1
            first = sums[np.abs(sums) + np.abs(total - sums) <= epochs]
            both = logs[first + epochs] + logs[first - total + epochs]  # f(s_1) f(-s_0)
            worst = max(worst, float(both.max() - both.min()))
        return worst

    def one_value_loss(self, horizon: int | None = None) -> float:
        """The same for users whose bit never changes: what memoization promises, at most `permanent_epsilon`."""
        epochs = self.horizon if horizon is None else horizon
        checks.integer_at_least(1, horizon=epochs)
        if self.report_epsilon == math.inf:
            return self.permanent_epsilon
        high, low = self._log_factor(np.array([epochs, -epochs]))
        return float(high - low)

    def _log_factor(self, sums: NDArray[np.int64]) -> NDArray[np.float64]:
        """ln f."""
        tilt = sums * self.report_epsilon / 2
        keep, slip = (-np.logaddexp(0, sign * self.permanent_epsilon) for sign in (-1, 1))
        return np.asarray(np.logaddexp(keep + tilt, slip - tilt))


def reports(bits: NDArray[np.uint8], answers: NDArray[np.uint8], noise: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """(users, epochs): of `answers`, (users, 2), the one to each of `bits`, (users, epochs); flipped by `noise`."""
    sent: NDArray[np.uint8] = np.take_along_axis(answers, bits.astype(np.intp), axis=1) ^ noise
    return sent


def collect(settings: Memoized, bits: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.int64]:
    """(epochs,) reports of 1 of some users, with `bits` (users, horizon). Chunks of users add up."""
    check_bits(bits, settings.horizon)
    if settings.hashed:  # supports of bit 1: of a user whose hash function does not tell bits apart, both support it
        bits = bits | rng.integers(0, 2, size=(len(bits), 1), dtype=np.uint8)
    slips = rng.random((len(bits), 2)) < expit(-settings.permanent_epsilon)
    noise = rng.random(bits.shape) < expit(-settings.report_epsilon)
    ones: NDArray[np.int64] = reports(bits, np.array([0, 1], dtype=np.uint8) ^ slips, noise).sum(axis=0, dtype=np.int64)
    return ones


def run(
    settings: Memoized, stream: BitStream | ThresholdStream, *, bits: np.random.Generator, private: np.random.Generator
) -> NDArray[np.int64]:
    """All users of `stream`; `bits` draws their data, `private` their answers and noise."""
    same_sizes(settings, stream)
    ones = np.zeros(settings.horizon, dtype=np.int64)
    for chunk in _chunks(stream, bits):
        ones += collect(settings, chunk, private)
    return ones


def simulate(settings: Memoized, stream: BitStream | ThresholdStream, rng: np.random.Generator) -> NDArray[np.int64]:
    """The same law at a cost that does not grow with the number of users."""
    same_sizes(settings, stream)
    slip = float(expit(-settings.permanent_epsilon))
    sizes = np.array([stream.n_users]) if isinstance(stream, ThresholdStream) else stream.sizes
    seeing = sizes - rng.binomial(sizes, 0.5) if settings.hashed else sizes
    blind = rng.binomial(settings.n_users - seeing.sum(), 1 - slip)  # as if their bits were 1
    ones = np.full(settings.horizon, blind)  # before noise
    if isinstance(stream, ThresholdStream):
        shares, bits = stream.kinds()
        users = rng.multinomial(seeing[0], shares)
        true, false = rng.binomial(users, 1 - slip), rng.binomial(users, slip)  # answers of 1 to bits 1, and to bits 0
        ones += false.sum() + (true - false) @ bits.astype(np.int64)
    else:
        by_answers = rng.multinomial(seeing, np.outer([1 - slip, slip], [slip, 1 - slip]).ravel())
        for (always, honest, opposite, _), means in zip(by_answers, stream.group_means, strict=True):
            ones += always + rng.binomial(honest, means) + rng.binomial(opposite, 1 - means)
    noise = expit(-settings.report_epsilon)
    return np.asarray(ones - rng.binomial(ones, noise) + rng.binomial(settings.n_users - ones, noise))


def _chunks(stream: BitStream | ThresholdStream, rng: np.random.Generator) -> Iterator[NDArray[np.uint8]]:
    """The users' bits, (users, epochs) at a time; of a stream with many bits an epoch, one of them at random."""
    if isinstance(stream, ThresholdStream):
        yield from stream.chunks(rng)
        return
    for size, means in zip(stream.sizes, stream.group_means, strict=True):
        for block in blocks(int(size), max(1, _ENTRIES // stream.horizon)):
            yield (rng.random((len(block), stream.horizon)) < means).astype(np.uint8)
