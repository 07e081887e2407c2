"""Every user reports once: users are split over epochs, and no user's budget is split.

**Computes** the frequencies of `n_words` words in every epoch; a bit is one of two words, and word 1's frequency is the
mean. Each user's lot names one epoch. In it the user reports one of its words of the epoch with all of epsilon
(`core.reports`), and is silent in all others. With `every` > 1 lots name epochs 1, 1 + every, ..., and an estimate stays
until the next.

**Guarantee.** Pure epsilon-local differential privacy of **everything that one user ever sends**; neighbouring inputs are
any two sequences of words of that user. Lots, and so when something is sent, hash functions and rows do not depend on data.
The loss is exactly epsilon: it is attained by users who hold one word each.

**Error.** Unbiased for any data and any changes; the variance is that of a report, `report.variance`, over the reports of
an epoch, n / horizon or so. Of a mean with m reports it is at most coth(epsilon/2)^2 / 4m.

**Source.** Folklore; the reports are those of `core.reports`. `simulate` is exact: lots are independent of everything, so
that the reporters of a group are multinomial over epochs; a random word of a random histogram is a draw from the group's
distribution, so that their words are multinomial, and what these reports add up to has the law of `Report.draw_sums`.
Users' real hash functions are made from a seed of 64 bits, and stand for fully random ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.core import checks
from evolvingdp.core.detection import Fit, detect, frequent
from evolvingdp.core.reports import BITS, Report, best_report
from evolvingdp.core.smoothing import Smooth, smooth_independent
from evolvingdp.evolving.streams import BitStream, WordStream, sampled

if TYPE_CHECKING:  # a user's side and a simulation need none
    from evolvingdp.core.exchange import Server

_AT_ONCE = 1 << 22  # numbers of words of groups of lots


@checks.draws
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
    """What the server holds, by epoch with reports: how many, (lots,), and what they add up to, (lots, width). Public.
    Servers merge with `+`."""

    reports: NDArray[np.int64]
    sums: NDArray[np.int64]

    @classmethod
    def of(cls, servers: Sequence[Server]) -> Tally:
        """What the servers of the epochs' rounds hold, a list of the same words each (`core.exchange.Listed`)."""
        return cls(np.array([each.n_reports for each in servers]), np.array([each.sums for each in servers]))

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.reports + other.reports, self.sums + other.sums)

    def then(self, later: Tally) -> Tally:
        """This one's epochs, followed by those of `later`: days are appended, where servers are added."""
        return Tally(np.concatenate([self.reports, later.reports]), np.concatenate([self.sums, later.sums]))


@checks.plain
@dataclass(frozen=True)
class Once:
    """Users of `horizon` epochs and a dictionary of `n_words`, of which a bit has two; `epsilon` of a user's only report, in
    an epoch drawn by lot: pure local privacy of everything that a user ever sends. It is the best of at most 256 bits unless
    another `report` is given."""

    n_users: int
    horizon: int
    epsilon: float
    n_words: int = 2
    every: int = 1  # epochs of one estimate
    report: Report = None  # type: ignore[assignment]  # the best one, as soon as it is made

    def __post_init__(self) -> None:
        checks.integer_at_least(2, n_words=self.n_words)
        checks.positive(epsilon=self.epsilon)
        _ = self.lots
        if self.report is None:
            object.__setattr__(self, "report", best_report(self.n_words, self.epsilon, BITS))
        if (self.report.n_values, self.report.epsilon) != (self.n_words, self.epsilon):
            raise ValueError(f"report must be one of {self.n_words} values with epsilon {self.epsilon}, got {self.report}")

    @property
    def lots(self) -> Lots:
        """Which epoch each user reports in."""
        return Lots(self.n_users, self.horizon, self.every)

    def estimates(self, tally: Tally) -> NDArray[np.float64]:
        """Frequencies in the epochs with reports, (lots, n_words), unbiased, not clipped; nan where nobody's lot fell."""
        return self.report.estimates(tally.sums, tally.reports)

    def detect(
        self,
        tally: Tally,
        *,
        words: NDArray[np.int64] | None = None,
        online: bool = False,
        false_alarm: float = 0.05,
    ) -> Fit:
        """`detection.detect` of the estimates of the epochs with reports.

        Changes are looked for in `words`, places in the list, together: of two in the second; of more, unless given, in
        hindsight in `frequent` ones, online in all. Of reports of points the rates of false changes hold for words whose
        places nobody chose with the geometry in mind (`Projective.crowded`): where all that is held, and watched,
        lay on one line, they were .23 in hindsight, .67 online.
        """  # a word that is named twice would count its residuals as two words'
        if words is not None and len(np.unique(words)) < len(words):
            raise ValueError(f"words must be different ones, got {np.asarray(words).tolist()}")
        found = self.estimates(tally)
        if words is None and self.n_words == 2:
            words = np.array([1])
        elif words is None and not online:
            words = frequent(found, tally.reports, self.report.variance(0.0))
        return detect(found, tally.reports, self.report, words=words, online=online, false_alarm=false_alarm)

    def smooth(self, tally: Tally, rng: np.random.Generator, *, coverage: float = 0.95) -> Smooth:
        """`core.smoothing` of `estimates`, in hindsight: estimates, low and high, (lots, n_words), each word by itself; with
        the variances first of the estimates, and then of what is smoothed."""
        found, reports = self.estimates(tally), tally.reports[:, None]
        shares, no_reports = np.nan_to_num(found), np.full(found.shape, np.inf)
        for _ in range(2):
            variances = np.divide(self.report.variance(shares), reports, out=no_reports.copy(), where=reports > 0)
            smoothed = smooth_independent(found, variances, rng, coverage)
            shares = smoothed.estimates
        return smoothed

    def standard_error(self, frequency: float | None = None) -> float:
        """Of a word in an average epoch, before any data: of a mean near 1/2, which has the largest, or a rare word, unless
        its `frequency` is given."""
        share = (0.5 if self.n_words == 2 else 0.0) if frequency is None else frequency
        return float(np.sqrt(self.report.variance(share) * len(self.lots.epochs) / self.n_users))


@dataclass(frozen=True, eq=False, repr=False)
class State:
    """The epoch that has passed, and each user's lot. Nothing of a user's data is kept."""

    epoch: int
    lots: NDArray[np.int64]
    settings: Any  # whose state it is: `step` refuses it for others


def check_words(counts: NDArray[np.integer], n_users: int, n_words: int) -> NDArray[np.integer]:
    """`counts` (n_users, n_words) of words; the error names the first user without any, or with some less than 0 times."""
    counts, shape = np.asarray(counts), (n_users, n_words)
    if counts.dtype.kind not in "iu" or counts.shape != shape:
        raise TypeError(f"counts must be integers, {shape}, got {counts.dtype} {counts.shape}")
    totals = counts.sum(axis=1, dtype=float)
    if (bad := (counts.min(axis=1) < 0) | (totals < 1) | (totals >= 2.0**63)).any():
        user = int(bad.argmax())
        raise ValueError(
            f"counts must hold a word or more of every user, none less than 0 times, and fewer than 2^63 in all, got "
            f"{totals[user]:.0f} in all, the least {counts[user].min()}, for user {user}"
        )
    return counts


@checks.draws
def start(settings: Once, rng: np.random.Generator) -> State:
    """Before the first epoch: users draw their lots."""
    return State(0, settings.lots.deal(rng), settings)


@checks.draws
def step(
    settings: Once, state: State, counts: NDArray[np.integer], public: np.random.Generator, private: np.random.Generator
) -> tuple[State, Tally]:
    """An epoch in which user i holds word v counts[i, v] times, (n_users, n_words), once or more in all, and the tally of
    this epoch: one entry, or none where no lot names it. `public` draws hash functions and rows."""
    checks.state(state, State, settings)
    if state.epoch >= settings.horizon:
        raise ValueError(f"horizon must be larger to go on: {settings.horizon} epochs are over")
    counts = check_words(counts, settings.n_users, settings.n_words)
    state = State(state.epoch + 1, state.lots, settings)
    reporters = np.flatnonzero(state.lots == state.epoch)
    sums = settings.report.collect(sampled(counts[reporters], private), public, private)
    named = np.full(np.count_nonzero(settings.lots.epochs == state.epoch), 1)
    return state, Tally(named * len(reporters), named[:, None] * sums)


@checks.draws
def run(
    settings: Once,
    stream: BitStream | WordStream | ArrayLike,
    *,
    words: np.random.Generator,
    public: np.random.Generator,
    private: np.random.Generator,
) -> Tally:
    """The `Tally` of all epochs of `stream`: what each user holds, (horizon, n_users), words from 0 or bits; or a
    `BitStream` or `WordStream`. `words` draws a stream's data, `private` lots and noise, `public` the hashes.
    """
    drawn = isinstance(stream, BitStream | WordStream)
    held = None if drawn else _held(settings, stream)
    state, tallies = start(settings, private), []
    for epoch in range(1, (stream.horizon if held is None else settings.horizon) + 1):  # type: ignore[union-attr]
        counts = stream.histograms(epoch, words) if held is None else held(epoch)  # type: ignore[union-attr]
        state, tally = step(settings, state, counts, public, private)
        tallies.append(tally)
    return Tally(*(np.concatenate(part) for part in zip(*((each.reports, each.sums) for each in tallies), strict=True)))


def _held(settings: Once, values: Any) -> Callable[[int], NDArray[np.int64]]:
    """What each user holds in an epoch, as `step` takes it; everything is checked before the first draw."""
    table, shape = checks.plain_array(values), (settings.horizon, settings.n_users)
    if table.shape != shape or table.dtype.kind not in "biufO":
        raise ValueError(f"stream must be words from 0, (horizon, n_users) = {shape}, got {table.dtype} {table.shape}")
    if table.dtype.kind == "O":  # something is missing, or a text
        bad = ~np.vectorize(isinstance, otypes=[bool])(table, Real)
    else:
        bad = ~((table >= 0) & (table < settings.n_words)) | (table != np.floor(table))
    if bad.any():
        epoch, user = np.argwhere(bad)[0]
        least = f"from 0 to {settings.n_words - 1}"
        raise ValueError(
            f"stream must hold whole numbers {least}, got {table[epoch, user]} for user {user} in epoch {epoch + 1}: "
            "who holds none needs a word of its own"
        )
    return lambda epoch: np.eye(settings.n_words, dtype=np.int64)[table[epoch - 1].astype(np.int64)]


@checks.draws
def simulate(settings: Once, stream: BitStream | WordStream, rng: np.random.Generator) -> Tally:
    """The law of `run`, at any number of users."""
    same_sizes(settings, stream)
    reports = settings.lots.split(stream.sizes, rng)
    return Tally(reports.sum(axis=0), draw_sums(settings.report, stream, settings.lots.epochs, reports, rng))


@checks.draws
def draw_sums(
    report: Report,
    stream: BitStream | WordStream,
    epochs: NDArray[np.int64],
    reports: NDArray[np.int64],
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """What reports[g, i] users of group g add up to, who report in epochs[i], (epochs, width)."""
    step = max(1, _AT_ONCE // (len(reports) * max(stream.n_words, report.width)))
    parts = [slice(first, first + step) for first in range(0, len(epochs), step)]
    return np.concatenate([report.draw_sums(reports.T[part], stream.laws(epochs[part]), rng) for part in parts])


def same_sizes(settings: Any, stream: BitStream | WordStream) -> None:
    """Raise ValueError unless `stream` has the users, epochs and words of `settings`."""
    for name in ("n_users", "horizon", "n_words"):
        if getattr(stream, name) != getattr(settings, name):
            raise ValueError(f"stream must have {name} = {getattr(settings, name)}, got {getattr(stream, name)}")
