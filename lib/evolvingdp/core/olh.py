"""Local hashing: OLH, today's reference among frequency oracles of small communication.

**Computes** an estimate of how many users hold any value asked about after the collection.

**Guarantee.** Pure epsilon-local differential privacy per report; neighbouring inputs are any two values of one user.  The
user's hash function is public; its value is reported by generalized randomized response, whose probabilities are those of
random doubles: exactly those that `probabilities` states, rounded towards privacy.

**Error.** Unbiased; with g = e^epsilon + 1 the standard error is 2 e^(epsilon/2) / (e^epsilon - 1) sqrt(n) for a rare value,
and its holders' own term for others (`OLH.standard_errors`).
Asking costs a hash per user and value, which is what FreqOracle's sketch avoids.

**Source.** Wang, Blocki, Li and Jha, Locally differentially private protocols for frequency estimation (2017), Section 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks
from evolvingdp.core.hashing import scramble
from evolvingdp.core.randomizers import Support, rounded_up
from evolvingdp.core.sampling import binomial_quantile, binomial_sf

_CHUNK = 1 << 16
_MOST = 2**15 - 1  # hash values, so that they and a distance of two fit in 16 bits


@dataclass(frozen=True, eq=False)
class LocalHashes:
    """What the server holds: each user's public hash seed and reported value, (n,) each.  Merge with `+`."""

    seeds: NDArray[np.uint64]
    values: NDArray[np.uint16]

    def __add__(self, other: LocalHashes) -> LocalHashes:
        return LocalHashes(np.append(self.seeds, other.seeds), np.append(self.values, other.values))


@checks.plain
@dataclass(frozen=True)
class OLH(Support):
    """Local hashing with g = round(e^epsilon) + 1 hash values, 2^15 - 1 at most, unless `values` says otherwise."""

    epsilon: float  # of one report
    values: int | None = None

    def __post_init__(self) -> None:
        checks.positive(epsilon=self.epsilon)
        if self.values is not None:
            checks.integer_at_least(2, values=self.values)
            if self.values > _MOST:
                raise ValueError(f"values must be below 2^15, so that hash values fit in 16 bits, got {self.values}")
        if self.epsilon > 36:
            raise ValueError(
                f"epsilon must be at most 36, so that random doubles can tell it from infinity, got {self.epsilon!r}"
            )
        if not self.own > self.other:
            raise ValueError(f"epsilon must be larger, as random doubles report every value alike, got {self.epsilon!r}")

    @property
    def hash_values(self) -> int:
        """g, how many."""
        return self.values if self.values is not None else min(max(2, round(math.exp(self.epsilon)) + 1), _MOST)

    @property
    def flip(self) -> float:
        """The probability of reporting one of the others: (g - 1) / (e^epsilon + g - 1), multiples of 2^-53, rounded up."""
        others = (self.hash_values - 1) * math.exp(-self.epsilon)
        return rounded_up(others / (1 + others))

    @property
    def own(self) -> float:
        """The probability of reporting one's own hash value: e^epsilon / (e^epsilon + g - 1), which is 1 - flip, exactly."""
        return 1 - self.flip

    @property
    def other(self) -> float:
        """That a value has the hash value of a report of another."""
        return 1 / self.hash_values

    def probabilities(self, hashed: int) -> dict[int, float]:
        """The law of a report given the user's own hash value."""
        other = self.flip / (self.hash_values - 1)
        return {value: self.own if value == hashed else other for value in range(self.hash_values)}

    def report(self, keys: NDArray[np.uint64], public: np.random.Generator, private: np.random.Generator) -> LocalHashes:
        """One report a user; keys (n,).  The seeds are public randomness."""
        keys = checks.keys(keys)
        seeds = public.integers(0, 2**64, size=len(keys), dtype=np.uint64)
        own = self._hash(seeds, keys)
        other = private.integers(1, self.hash_values, size=len(keys), dtype=np.uint16)  # one of the others, as a distance
        flipped = private.random(len(keys)) < self.flip
        return LocalHashes(seeds, np.where(flipped, (own + other) % self.hash_values, own).astype(np.uint16))

    def support(self, reports: LocalHashes, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """For each key, the number of users whose report is their hash of that key, (keys,)."""
        keys = checks.keys(keys)
        counts = np.zeros(len(keys), dtype=np.int64)
        for first in range(0, len(reports.seeds), _CHUNK):
            seeds, values = reports.seeds[first : first + _CHUNK], reports.values[first : first + _CHUNK]
            for position, key in enumerate(keys):
                counts[position] += np.count_nonzero(self._hash(seeds, key) == values)
        return counts

    def simulate_support(
        self, counts: NDArray[np.integer], n_reports: int | NDArray[np.integer], rng: np.random.Generator, least: int = 0
    ) -> NDArray[np.int64]:
        """The exact law of `support` for keys held by `counts` of `n_reports` users (a number, or of a shape that goes with
        that of counts), each key asked for once.

        With a uniformly random function per user the hash values of different keys are independent given the report, so
        the supports are independent sums of two binomials.  Of keys that nobody holds (counts (keys,), `n_reports` a number)
        those below `least` may be 0 instead: drawn is how many reach it, which, and how far.
        """
        checks.counts(counts=counts)
        if least <= 0:
            return self.draw_one(counts, n_reports, rng)
        support, held, empty = np.zeros(len(counts), dtype=np.int64), np.flatnonzero(counts), np.flatnonzero(counts == 0)
        support[held] = self.draw_one(counts[held], n_reports, rng)
        reached = float(binomial_sf(least - 1, n_reports, self.other))
        which = rng.choice(empty, rng.binomial(len(empty), reached), replace=False, shuffle=False)
        tail = reached * (1 - rng.random(len(which)))
        support[which] = int(n_reports) - binomial_quantile(tail, n_reports, 1 - self.other)
        return support

    def _hash(self, seeds: NDArray[np.uint64], keys: NDArray[np.uint64] | np.uint64) -> NDArray[np.uint16]:
        """A value in [0, g) from a seed and a key as in SplitMix64."""
        mixed = scramble(seeds ^ (np.atleast_1d(keys) * np.uint64(0x9E3779B97F4A7C15)))
        hashed = ((mixed >> np.uint64(32)) * np.uint64(self.hash_values)) >> np.uint64(32)
        return hashed.astype(np.uint16)
