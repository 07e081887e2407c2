"""Users of a group whose words of an epoch can be counted up: one word, two words, or a few words drawn a few times.

All that matters of such users is how many have histogram r at the last update and v truthful votes. A vote is a
deterministic function of the histograms now and then; given its vote, a user's histogram has the law of the epoch cut to
those that vote so. Words that have the same signs in several coordinates look the same there, so that reports are drawn by
sign pattern and spread over its coordinates afterwards. All exact but for a mass of 1e-30 where there are two words; the
cost grows with the square of the number of histograms, not with the users.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

from evolvingdp.evolving.count_law import CountLaw
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.streams import WordStream

HISTOGRAMS = 3000  # that are kept, at most: then an epoch costs about a tenth of a second
_WORDS = 62  # whose signs are bits of a number

Law = tuple[NDArray[np.int64], NDArray[np.float64]]  # histograms (h, words) and their probabilities (h,)


@dataclass(frozen=True, eq=False)
class Words:
    """The words of a group: the `laws` of their histograms, `patterns` (p, words) of their signs, +-1, and which of these
    each coordinate has, (width,)."""

    laws: dict[int, Law]
    patterns: NDArray[np.int64]
    pattern_of: NDArray[np.int64]

    @classmethod
    @lru_cache(maxsize=16)  # many runs have the same stream
    def make(cls, settings: HeavyThresh, stream: WordStream, group: int) -> Words | None:
        """None where there are too many histograms."""
        which = np.unique(stream.which[group]).tolist()
        words = np.flatnonzero(np.any(stream.distributions[which] > 0, axis=0))
        if len(words) > _WORDS or _histograms(stream.epoch_length, len(words)) > HISTOGRAMS:
            return None
        laws = {law: _law(stream.epoch_length, stream.distributions[law][words]) for law in which}
        rows, code = np.arange(settings.width), np.zeros(settings.width, dtype=np.int64)
        for place, word in enumerate(words):
            code |= (settings.projection.signs(rows, word) < 0).astype(np.int64) << place
        codes, pattern_of = np.unique(code, return_inverse=True)
        return cls(laws, 1 - 2 * (codes[:, None] >> np.arange(len(words)) & 1), pattern_of)


class Cells:
    """One group. `users` (r, v): how many have histograms[r] at the last update and v truthful votes."""

    def __init__(self, settings: HeavyThresh, stream: WordStream, group: int, words: Words, rng: np.random.Generator):
        self.settings, self.rng, self.words = settings, rng, words
        self.which = stream.which[group].tolist()
        self.histograms = np.zeros((1, words.patterns.shape[1]), dtype=np.int64)
        self.users = np.array([[int(stream.sizes[group])]])
        self.voted, self.yes = np.zeros_like(self.users), np.zeros((1, 1), dtype=bool)

    @property
    def votes_cast(self) -> int:
        return int(self.users.shape[1]) - 1

    def vote(self, epoch: int, never_updated: bool) -> int:
        """The truthful yes votes of an epoch, drawn cell by cell; remembers them for `update`."""
        voting = self.settings.voting
        now, mass = self.words.laws[self.which[epoch - 1]]
        self.yes = np.ones((len(self.histograms), len(mass)), dtype=bool)
        if not never_updated:
            self.yes = self._distances(now) >= voting.cut(epoch)
        may = np.where(np.arange(self.users.shape[1]) < voting.vote_cap, self.users, 0)
        chance = np.where(self.yes.all(axis=1), 1.0, np.clip(self.yes @ mass, 0, 1))
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
        for here, there in zip(self.words.patterns @ now.T, self.words.patterns @ self.histograms.T, strict=True):
            np.maximum(largest, np.abs(here[None, :] - there[:, None]), out=largest)
        return largest

    def update(self, epoch: int, truthful: bool) -> NDArray[np.int64]:
        """The users' histograms, drawn given their votes in this epoch, and their reports summed by coordinate, (width,)."""
        now, mass = self.words.laws[self.which[epoch - 1]]
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

    def _given(self, users: NDArray[np.int64], mass: NDArray[np.float64], allowed: NDArray[np.bool_]) -> NDArray[np.int64]:
        """The histograms, in all, of users[i] users who have one of allowed[i] (h,): (h,)."""
        cut = np.where(allowed[users > 0], mass, 0.0)
        return np.asarray(self.rng.multinomial(users[users > 0], cut / cut.sum(axis=1, keepdims=True)).sum(axis=0))

    def _reports(self, truthful: bool) -> NDArray[np.int64]:
        settings, rng, words = self.settings, self.rng, self.words
        spread = rng.multinomial(self.users.sum(axis=1), np.bincount(words.pattern_of) / settings.width)  # (r, patterns)
        means = self.histograms @ words.patterns.T / settings.voting.epoch_length
        plus = rng.binomial(spread, settings.report_plus(means if truthful else np.zeros_like(means))).sum(axis=0)
        sums = np.zeros(settings.width, dtype=np.int64)
        for pattern, (positive, everybody) in enumerate(zip(plus, spread.sum(axis=0), strict=True)):
            rows = np.flatnonzero(words.pattern_of == pattern)
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
