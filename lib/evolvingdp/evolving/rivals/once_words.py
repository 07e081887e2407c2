"""Every user reports one word, once: users are split over epochs, as in `once`, through a frequency oracle.

**Computes** estimates of all words' frequencies in every epoch. A user whose lot names an epoch samples one of its words of
that epoch and reports it with all of epsilon, through OLH or through a sign of a row of a Hadamard matrix.

**Guarantee.** Pure epsilon-local differential privacy of **everything that one user ever sends**; neighbouring inputs are
any two sequences of words of that user. Lots, hash functions and rows are public and do not depend on data. The loss is
exactly epsilon, attained by users who hold one word each.

**Error.** Unbiased for any data. A report adds `variances` to an estimate: with f the word's frequency, p and q the
probabilities that a report supports its own and another word, r (1 - r) / (p - q)^2 with r = q + f (p - q) for OLH, and
coth(epsilon/2)^2 - f^2 for Hadamard. At epsilon = 4 rare words have about a quarter of the standard error with OLH.

**Source.** Wang et al. (2017), Section 4, for OLH (`core.olh`); for Hadamard the report of HEAVYTHRESH (Joseph et al. 2018).
`simulate` is exact: a random word of a random histogram is a draw from the group's distribution, so that the reporters'
words are multinomial. For OLH: given what a user holds and reports, a fully random function sends the other words to
independent uniform values. Given the numbers of holders, the supports of different words are therefore independent sums of
Bin(holders, p) and Bin(others, 1/g), and the joint law of all estimates is exact. Users' real functions (`OLH.report`) are
hashes of a 64-bit seed, which stand for fully random ones. For Hadamard reporters are multinomial over rows, and the plus
signs of a row are binomial; nothing is assumed about hashing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks, hadamard
from evolvingdp.core.olh import OLH
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.evolving.rivals.detection import Fit, detect_at, frequent
from evolvingdp.evolving.rivals.once import Lots, State
from evolvingdp.evolving.streams import WordStream

ORACLES = ("olh", "hadamard")


@dataclass(frozen=True, eq=False)
class WordTally:
    """What the server holds, by epoch with reports: how many, (lots,), and their `sums`: OLH's supports, (lots, n_words), or
    signed sums, (lots, width). Public. Servers merge with `+`."""

    reports: NDArray[np.int64]
    sums: NDArray[np.int64]

    def __add__(self, other: WordTally) -> WordTally:
        return WordTally(self.reports + other.reports, self.sums + other.sums)


@checks.plain
@dataclass(frozen=True)
class OnceWords:
    """Users of `horizon` epochs and a dictionary of `n_words`; `epsilon` of a user's only report."""

    n_users: int
    horizon: int
    n_words: int
    epsilon: float
    oracle: str = "olh"  # what the report is made by
    every: int = 1  # epochs of one estimate

    def __post_init__(self) -> None:
        checks.integer_at_least(2, n_words=self.n_words)
        checks.one_of(ORACLES, oracle=self.oracle)
        checks.positive(epsilon=self.epsilon)
        _ = self.lots, self.local_hash if self.oracle == "olh" else None

    @property
    def lots(self) -> Lots:
        """Which epoch each user reports in."""
        return Lots(self.n_users, self.horizon, self.every)

    @property
    def local_hash(self) -> OLH:
        """Of a report through OLH."""
        return OLH(self.epsilon)

    @property
    def sign(self) -> SignFlip:
        """Of a report of one Hadamard sign."""
        return SignFlip(self.epsilon)

    @property
    def width(self) -> int:
        """How many sums an epoch has: the words for OLH, the rows of the Hadamard matrix."""
        return self.n_words if self.oracle == "olh" else 1 << (self.n_words - 1).bit_length()

    def collect(
        self, words: NDArray[np.int64], public: np.random.Generator, private: np.random.Generator
    ) -> NDArray[np.int64]:
        """Each of these users reports its word: the sums of the reports, (width,)."""
        if self.oracle == "olh":
            reports = self.local_hash.report(words.astype(np.uint64), public, private)
            return self.local_hash.support(reports, np.arange(self.n_words, dtype=np.uint64))
        rows = public.integers(0, self.width, size=len(words))
        signs = self.sign.randomize(hadamard.signs(rows, words), private)
        return np.bincount(rows, weights=signs, minlength=self.width).astype(np.int64)

    def draw_sums(self, sizes: NDArray[np.int64], laws: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
        """The law of `collect` for sizes[g] users whose words are drawn from laws[g], (groups, n_words)."""
        if self.oracle == "olh":
            held = rng.multinomial(sizes, laws).sum(axis=0)
            return self.local_hash.simulate_support(held, int(sizes.sum()), rng)
        users = rng.multinomial(sizes, np.full(self.width, 1 / self.width))  # (groups, width)
        padded = np.pad(laws, ((0, 0), (0, self.width - self.n_words)))
        plus = (1 + np.clip(hadamard.transform(padded), -1, 1)) / 2
        return np.asarray((2 * rng.binomial(users, self.sign.report_one(plus)) - users).sum(axis=0))

    def estimates(self, tally: WordTally) -> NDArray[np.float64]:
        """Frequencies in the epochs with reports, (lots, n_words), unbiased, not clipped; nan where nobody's lot fell."""
        reports, nothing = tally.reports[:, None], np.full(tally.sums.shape, np.nan)
        means = np.divide(tally.sums, reports, out=nothing, where=reports > 0)
        if self.oracle == "olh":
            chance = 1 / self.local_hash.hash_values
            return np.asarray((means - chance) / (self.local_hash.keep - chance))
        return hadamard.transform(means)[:, : self.n_words] * self.sign.debias

    def variances(self, frequencies: NDArray[np.float64] | float) -> NDArray[np.float64]:
        """Of the estimates of words with these frequencies from one report; of m reports, one m-th. Rare words have the
        largest with Hadamard, and the smallest with OLH."""
        known = np.clip(frequencies, 0, 1)
        if self.oracle == "hadamard":
            return np.asarray(self.sign.debias**2 - known**2)
        chance = 1 / self.local_hash.hash_values
        spread = self.local_hash.keep - chance
        support = chance + known * spread
        return np.asarray(support * (1 - support) / spread**2)

    def largest_variance(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of an estimate from one report, for frequencies between `low` and `high`."""
        peak = 0.0
        if self.oracle == "olh":  # where half of the reports support the word
            chance = 1 / self.local_hash.hash_values
            peak = (0.5 - chance) / (self.local_hash.keep - chance)
        return self.variances(np.clip(peak, low, high))

    def detect(
        self,
        tally: WordTally,
        *,
        words: NDArray[np.int64] | None = None,
        online: bool = False,
        false_alarm: float = 0.05,
    ) -> Fit:
        """`detection.detect` of the estimates of the epochs with reports, with the variances of what is estimated.

        Changes are looked for in `words` together: in hindsight `frequent` ones unless given, online in all.
        """
        found = self.estimates(tally)
        if words is None and not online:
            words = frequent(found, tally.reports, self.variances(0.0))
        return detect_at(found, tally.reports, self.largest_variance, words=words, online=online, false_alarm=false_alarm)

    @property
    def standard_error(self) -> float:
        """Of a rare word in an epoch with as many reports as there are on average, before any data."""
        return float(np.sqrt(self.variances(0.0) * len(self.lots.epochs) / self.n_users))


def sampled(counts: NDArray[np.integer], rng: np.random.Generator) -> NDArray[np.int64]:
    """One of each user's words, each alike, (users,), of counts (users, n_words)."""
    below = np.cumsum(counts, axis=1)
    return np.asarray(np.sum(below <= rng.integers(0, below[:, -1])[:, None], axis=1))


def start(settings: OnceWords, rng: np.random.Generator) -> State:
    """Before the first epoch: users draw their lots."""
    return State(0, settings.lots.deal(rng), settings)


def step(
    settings: OnceWords,
    state: State,
    counts: NDArray[np.integer],
    public: np.random.Generator,
    private: np.random.Generator,
) -> tuple[State, WordTally]:
    """An epoch in which user i holds word v counts[i, v] times, (n_users, n_words), once or more in all, and the tally of
    this epoch: one entry, or none where no lot names it."""
    checks.state(state, State, settings)
    state = state.following(settings.horizon)
    counts, shape = np.asarray(counts), (settings.n_users, settings.n_words)
    if counts.dtype.kind not in "iu" or counts.shape != shape:
        raise TypeError(f"counts must be integers, {shape}, got {counts.dtype} {counts.shape}")
    totals = counts.sum(axis=1, dtype=float)
    if (bad := (counts.min(axis=1) < 0) | (totals < 1) | (totals >= 2.0**63)).any():
        user = int(bad.argmax())
        raise ValueError(
            f"counts must hold a word or more of every user, none less than 0 times, and fewer than 2^63 in all, got "
            f"{totals[user]:.0f} in all, the least {counts[user].min()}, for user {user}"
        )
    reporters = np.flatnonzero(state.lots == state.epoch)
    sums = settings.collect(sampled(counts[reporters], private), public, private)
    named = np.full(np.count_nonzero(settings.lots.epochs == state.epoch), 1)
    return state, WordTally(named * len(reporters), named[:, None] * sums)


def run(
    settings: OnceWords,
    stream: WordStream,
    *,
    words: np.random.Generator,
    public: np.random.Generator,
    private: np.random.Generator,
) -> WordTally:
    """All epochs of `stream`, user by user; `words` draws the users' data, `private` lots and noise, `public` the hashes."""
    state, tallies = start(settings, private), []
    for epoch in range(1, stream.which.shape[1] + 1):
        state, tally = step(settings, state, stream.counts(epoch, words), public, private)
        tallies.append(tally)
    return WordTally(*(np.concatenate(part) for part in zip(*((each.reports, each.sums) for each in tallies), strict=True)))


def simulate(settings: OnceWords, stream: WordStream, rng: np.random.Generator) -> WordTally:
    """The same law at a cost that does not grow with the number of users."""
    sizes = (stream.n_users, stream.which.shape[1], stream.distributions.shape[1])
    if sizes != (settings.n_users, settings.horizon, settings.n_words):
        raise ValueError(f"stream must have the sizes of the settings, got n_users, horizon, n_words = {sizes}")
    reports = settings.lots.split(stream.sizes, rng)
    which = stream.which[:, settings.lots.epochs - 1]
    sums = [settings.draw_sums(users, stream.distributions[now], rng) for users, now in zip(reports.T, which.T, strict=True)]
    return WordTally(reports.sum(axis=0), np.stack(sums))
