"""HEAVYTHRESH simulated at a cost that does not grow with the number of users.

Two kinds of groups. Where the words of a group's users can be counted up (few words, or few drawn), the users are kept as
counts of users by (words at the last update, truthful votes), which is **exact**: `Cells`. Where not, the maximum of w
correlated coordinates has no closed law; then all users of a group must vote **alike**, which Hoeffding's inequality
decides: each signed mean is within u of its expectation but for a probability exp(-ell u^2 / 4). The law of the simulation
then differs from that of the protocol by at most `Trace.distance` in total variation, a bound that it adds up and that is
refused above `TOLERANCE`. Reports are drawn exactly in both, coordinate by coordinate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evolvingdp.evolving.count_law import CountLaw
from evolvingdp.evolving.heavy_protocol import Words, before
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.streams import WordStream
from evolvingdp.evolving.thresh_protocol import Release

TOLERANCE = 1e-9
HISTOGRAMS = 3000  # that are kept, at most: then an epoch costs about a tenth of a second
_WORDS = 62  # whose signs are bits of a number
_LEFT = 6  # standard deviations of users are drawn one by one, so that Poisson numbers are hardly ever too many


@dataclass(frozen=True, eq=False)
class Trace:
    """`public`: a release an epoch. The rest is secret but for `distance`, see above: `yes`, the truthful yes votes of each
    epoch, and `votes_cast`, the largest number of truthful votes that a user of each group has cast."""

    public: list[Release[Words]]
    yes: list[int]
    votes_cast: list[int]
    distance: float


Ask = Callable[["Hashed", Release[Words]], tuple[Words, "list[Cells | Alike]"]]


def simulate(settings: HeavyThresh, stream: WordStream, rng: np.random.Generator, ask: Ask | None = None) -> Trace:
    """Releases with the law of `heavy_protocol.step`, but for `Trace.distance`.

    `ask` gives the estimates of an update for which others report, and who votes from then on; None: these users do.
    Raises ValueError where a stream does not fit, and where some users of a group would see a change and others not, and no
    exact law is at hand: epoch, group and what would decide it are named.
    """
    voting = settings.voting
    sizes = (stream.n_users, stream.which.shape[1], stream.epoch_length, stream.distributions.shape[1])
    if sizes != (voting.n_users, voting.horizon, voting.epoch_length, settings.n_words):
        raise ValueError(
            f"stream must have the sizes of the settings, got n_users, horizon, epoch_length, n_words = {sizes}"
        )
    hashed = Hashed(settings, stream)
    groups = voters(hashed, stream.sizes, rng)
    release, releases, truthful = before(settings), [], []
    randomizer = voting.vote_randomizer
    for epoch in range(1, voting.horizon + 1):
        yes, wanted = 0, True
        if epoch > 1 or voting.start == "sentinel":
            yes = sum(group.vote(epoch, release.estimates_left == voting.estimate_cap) for group in groups)
            shown = rng.binomial(yes, randomizer.keep) + rng.binomial(voting.n_users - yes, randomizer.flip)
            wanted = bool(shown / voting.n_users > voting.update_cut)
        estimates = None
        if release.pays(voting, wanted):
            if ask:
                estimates, groups = ask(hashed, release)
            else:
                sums = np.sum([group.update(epoch, release.estimates_left > 0) for group in groups], axis=0)
                estimates = settings.estimates(sums)
        release = release.next(wanted, estimates, settings.votes_left(epoch))
        releases.append(release)
        truthful.append(yes)
    return Trace(releases, truthful, [group.votes_cast for group in groups], hashed.distance)


def voters(hashed: Hashed, sizes: NDArray[np.int64], rng: np.random.Generator) -> list[Cells | Alike]:
    """Groups of these sizes, with the stream's words."""
    found = list[Cells | Alike]()
    for group, size in enumerate(sizes.tolist()):
        known = Known.make(hashed.settings, hashed.stream, group) if size else None
        found.append(Alike(hashed, group, size, rng) if known is None else Cells(hashed, group, size, known, rng))
    return found


class Hashed(dict[int, NDArray[np.float64]]):
    """The expected signed means of each distribution of a stream, (width,), hashed when they are first asked for."""

    def __init__(self, settings: HeavyThresh, stream: WordStream) -> None:
        super().__init__()
        self.settings, self.stream = settings, stream
        self.moved: dict[tuple[int, int], float] = {}
        self.distance = 0.0

    def __missing__(self, law: int) -> NDArray[np.float64]:
        signed = self.settings.projection.signed(self.stream.distributions[law][None, :])
        self[law] = np.clip(signed[0], -1, 1)
        return self[law]

    def largest_move(self, now: int, reference: int) -> float:
        pair = (now, reference)
        if pair not in self.moved:
            self.moved[pair] = float(np.abs(self[now] - self[reference]).max())
        return self.moved[pair]

    def reports(self, size: int, law: int | None, rng: np.random.Generator) -> NDArray[np.int64]:
        """Reports of `size` users, summed by coordinate, (width,); None: all lies.

        Poisson numbers of users for each coordinate and sign, which in all are nearly always a little less than `size`, and
        the others one by one: given how many they are, the Poisson numbers are multinomial, so that the law is exact.
        """
        width = self.settings.width
        plus = self.settings.report_plus(np.zeros(width) if law is None else self[law])
        means = max(0.0, size - _LEFT * math.sqrt(size)) / width * np.stack([plus, 1 - plus])
        users = rng.poisson(means)
        while (others := size - int(users.sum())) < 0:
            users = rng.poisson(means)
        place = rng.integers(0, width, size=others)
        signs = np.where(rng.random(others) < plus[place], 1, -1)
        return np.asarray(users[0] - users[1] + np.bincount(place, weights=signs, minlength=width).astype(np.int64))


class Alike:
    """Users who vote alike, with the methods of `Cells`."""

    def __init__(self, hashed: Hashed, group: int, size: int, rng: np.random.Generator) -> None:
        self.hashed, self.group, self.size, self.rng = hashed, group, size, rng
        self.laws = hashed.stream.which[group].tolist()
        self.reference, self.votes_cast = -1, 0

    def vote(self, epoch: int, never_updated: bool) -> int:
        voting = self.hashed.settings.voting
        alike, missed, moved = True, 0.0, math.inf
        if not never_updated:
            moved = self.hashed.largest_move(self.laws[epoch - 1], self.reference)
            alike, missed = _vote_alike(self.hashed.settings, epoch, moved)
        self.hashed.distance += missed * self.size
        if self.hashed.distance > TOLERANCE:
            raise ValueError(
                f"stream must change so that all users of a group see it alike: in epoch {epoch} group {self.group} has "
                f"moved by {moved:.4g}, the threshold is {voting.threshold(epoch):.4g}; longer epochs would decide it, or "
                "words so few that they can be counted up; heavy_protocol.run draws every stream, user by user"
            )
        if not alike or self.votes_cast >= voting.vote_cap:
            return 0
        self.votes_cast += 1
        return self.size

    def update(self, epoch: int, truthful: bool) -> NDArray[np.int64]:
        self.enlist(epoch)
        return self.hashed.reports(self.size, self.reference if truthful else None, self.rng)

    def enlist(self, epoch: int) -> None:
        self.reference = self.laws[epoch - 1]


def _vote_alike(settings: HeavyThresh, epoch: int, moved: float) -> tuple[bool, float]:
    """Whether a user votes yes when the expected signed means have moved by `moved` at most, and how likely it does not."""
    voting = settings.voting
    gap = moved - voting.threshold(epoch)
    missed = math.exp(-voting.epoch_length * gap**2 / 4)  # of one coordinate: the one that moved most, or any of them
    return (True, missed) if gap > 0 else (False, min(1.0, 2 * settings.width * missed))


def reported_sums(hashed: Hashed, epoch: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """All users' reports in `epoch`, summed by coordinate, (width,)."""
    groups = zip(hashed.stream.sizes.tolist(), hashed.stream.which[:, epoch - 1].tolist(), strict=True)
    return np.asarray(np.sum([hashed.reports(size, law, rng) for size, law in groups], axis=0))


Law = tuple[NDArray[np.int64], NDArray[np.float64]]  # histograms (h, words) and their probabilities (h,)


@dataclass(frozen=True, eq=False)
class Known:
    """What stays of a group's words: the `laws` of their histograms, `patterns` (p, words) of their signs, +-1, and which
    of these each coordinate has, (width,)."""

    laws: dict[int, Law]
    patterns: NDArray[np.int64]
    pattern_of: NDArray[np.int64]

    @classmethod
    @lru_cache(maxsize=16)  # many runs have the same stream
    def make(cls, settings: HeavyThresh, stream: WordStream, group: int) -> Known | None:
        """None where there are too many histograms."""
        which = np.unique(stream.which[group]).tolist()
        words = np.flatnonzero(np.any(stream.distributions[which] > 0, axis=0))
        if len(words) > _WORDS or _histograms(stream.epoch_length, len(words)) > HISTOGRAMS:
            return None
        laws = {law: _law(stream.epoch_length, stream.distributions[law][words]) for law in which}
        rows, code = np.arange(settings.width), np.zeros(settings.width, dtype=np.int64)
        for place in range(len(words)):
            code |= (settings.projection.signs(rows, words[place]) < 0).astype(np.int64) << place
        codes, pattern_of = np.unique(code, return_inverse=True)
        return cls(laws, 1 - 2 * (codes[:, None] >> np.arange(len(words)) & 1), pattern_of)


class Cells:
    """Users whose words of an epoch can be counted up: one word, two words, or a few words drawn a few times.

    `users` (r, v): how many have histograms[r] at the last update and v truthful votes, which is all that matters of them. A
    vote is a deterministic function of the histograms now and then; given its vote, a user's histogram has the law of the
    epoch cut to those that vote so. Words that have the same signs in several coordinates look the same there, so that
    reports are drawn by sign pattern and spread over its coordinates afterwards. All exact but for a mass of 1e-30 where
    there are two words; the cost grows with the square of the number of histograms, not with the users.
    """

    def __init__(self, hashed: Hashed, group: int, size: int, known: Known, rng: np.random.Generator):
        self.settings, self.rng, self.known = hashed.settings, rng, known
        self.which = hashed.stream.which[group].tolist()
        self.histograms = np.zeros((1, known.patterns.shape[1]), dtype=np.int64)
        self.users = np.array([[size]])
        self.voted, self.yes = np.zeros_like(self.users), np.zeros((1, 1), dtype=bool)

    @property
    def votes_cast(self) -> int:
        return int(self.users.shape[1]) - 1

    def vote(self, epoch: int, never_updated: bool) -> int:
        """The truthful yes votes of an epoch, drawn cell by cell; remembers them for `update`."""
        voting = self.settings.voting
        now, mass = self.known.laws[self.which[epoch - 1]]
        self.yes = np.ones((len(self.histograms), len(mass)), dtype=bool)
        if not never_updated:
            self.yes = self._distances(now) >= voting.cut(epoch)
        may = np.where(np.arange(self.users.shape[1]) < voting.vote_cap, self.users, 0)
        chance = np.where(self.yes.all(axis=1), 1.0, np.minimum(self.yes @ mass, 1.0))
        self.voted = self.rng.binomial(may, chance[:, None])
        self.before = self.users
        moved = np.zeros((len(self.users), self.users.shape[1] + 1), dtype=np.int64)
        moved[:, :-1] = self.users - self.voted
        moved[:, 1:] += self.voted
        self.users = moved[:, : int(np.flatnonzero(moved.any(axis=0)).max()) + 1]
        return int(self.voted.sum())

    def _distances(self, now: NDArray[np.int64]) -> NDArray[np.int64]:
        """(r, h): the largest change of a signed sum between the histograms kept and those of an epoch."""
        largest = np.zeros((len(self.histograms), len(now)), dtype=np.int64)
        for here, there in zip(self.known.patterns @ now.T, self.known.patterns @ self.histograms.T, strict=True):
            np.maximum(largest, np.abs(here[None, :] - there[:, None]), out=largest)
        return largest

    def update(self, epoch: int, truthful: bool) -> NDArray[np.int64]:
        """The users' histograms, drawn given their votes in this epoch, and their reports summed by coordinate, (width,)."""
        now, mass = self.known.laws[self.which[epoch - 1]]
        users = np.zeros((len(mass), self.users.shape[1] + 1), dtype=np.int64)
        if epoch == 1 and self.settings.voting.start == "forced":
            users[:, 0] = self.rng.multinomial(int(self.users.sum()), mass)
        else:
            for column in range(self.before.shape[1]):
                everybody, voted = self.before[:, column], self.voted[:, column]
                if column >= self.settings.voting.vote_cap:
                    users[:, column] += self.rng.multinomial(int(everybody.sum()), mass)
                    continue
                users[:, column + 1] += self._given(voted, mass, self.yes)
                users[:, column] += self._given(everybody - voted, mass, ~self.yes)
        kept = users.any(axis=1)
        self.histograms = now[kept]
        self.users = users[kept][:, : int(np.flatnonzero(users.any(axis=0)).max()) + 1]
        return self._reports(truthful)

    def enlist(self, epoch: int) -> None:
        """All users remember their words of this epoch, and none has voted."""
        now, mass = self.known.laws[self.which[epoch - 1]]
        users = self.rng.multinomial(int(self.users.sum()), mass)
        self.histograms, self.users = now[users > 0], users[users > 0, None]

    def _given(self, users: NDArray[np.int64], mass: NDArray[np.float64], allowed: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The histograms, in all, of users[i] users who have one of allowed[i] (h,): (h,)."""
        cut = np.where(allowed[users > 0], mass, 0.0)
        return np.asarray(self.rng.multinomial(users[users > 0], cut / cut.sum(axis=1, keepdims=True)).sum(axis=0))

    def _reports(self, truthful: bool) -> NDArray[np.int64]:
        settings, rng, known = self.settings, self.rng, self.known
        spread = rng.multinomial(self.users.sum(axis=1), np.bincount(known.pattern_of) / settings.width)  # (r, patterns)
        means = self.histograms @ known.patterns.T / settings.voting.epoch_length
        plus = rng.binomial(spread, settings.report_plus(means if truthful else np.zeros_like(means))).sum(axis=0)
        sums = np.zeros(settings.width, dtype=np.int64)
        for pattern, (positive, everybody) in enumerate(zip(plus, spread.sum(axis=0), strict=True)):
            rows = np.flatnonzero(known.pattern_of == pattern)
            evenly = np.full(len(rows), 1 / len(rows))
            sums[rows] = rng.multinomial(positive, evenly) - rng.multinomial(everybody - positive, evenly)
        return sums


def _histograms(epoch_length: int, words: int) -> int:
    """How many there are, about; of two words, those within reach of the larger part of the law."""
    if words == 2:
        return min(epoch_length + 1, len(CountLaw.binomial(epoch_length, 0.5).mass))
    return math.comb(epoch_length + words - 1, words - 1)


def _law(epoch_length: int, chances: NDArray[np.float64]) -> Law:
    """All histograms of a user's words, and their probabilities."""
    if len(chances) == 2:
        law = CountLaw.binomial(epoch_length, float(chances[0]))
        return np.stack([law.values, epoch_length - law.values], axis=1), law.mass / law.mass.sum()
    table = np.array(_compositions(epoch_length, len(chances)), dtype=np.int64)
    logs = (
        special.gammaln(epoch_length + 1)
        - special.gammaln(table + 1).sum(axis=1)
        + special.xlogy(table, chances).sum(axis=1)
    )
    mass = np.exp(logs)
    possible = mass > 0
    return table[possible], mass[possible] / mass.sum()


def _compositions(total: int, parts: int) -> list[list[int]]:
    if parts == 1:
        return [[total]]
    return [[first, *rest] for first in range(total + 1) for rest in _compositions(total - first, parts - 1)]
