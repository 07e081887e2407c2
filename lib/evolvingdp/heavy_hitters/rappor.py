"""RAPPOR: hashed words with a permanent and a fresh randomized response, the baseline of Section 4.1.

**Computes** how often each bit of the users' filters, which have a word's hash value set, is reported in each cohort;
`rappor_decoding` fits candidate words to that.

**Guarantee.** Pure epsilon-local differential privacy. Between two words that a user may hold, **one report** loses
`epsilon_of_reports(1)` and any number of reports of **that one word** at most `epsilon_permanent`, since they all come from
the same permanent response: a client makes all its reports in one call. Whether a user's word *changes* is not protected
(`loss_of_histories`). Cohorts are public and independent of the words.

**Source.** Erlingsson, Pihur and Korolova, RAPPOR: randomized aggregatable privacy-preserving ordinal response (2014).
Their f is `permanent_noise`, p is `one_from_zero`, q is `one_from_one`, k and m are `n_bits` and `n_cohorts`; h is 1, as
in their Demo 3. Applies E-HH-10.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from evolvingdp.core import checks
from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.randomizers import rounded_up
from evolvingdp.core.sampling import split_evenly

_CHUNK = 1 << 15  # reports at a time: one uniform per bit
_GRID = 2.0**53  # uniform doubles are multiples of 1 / _GRID, and so are the probabilities that they decide on
_LEAST = 2.0**-52  # of a noise: half of it is one such step


@checks.plain
@dataclass(frozen=True)
class Rappor:
    """The settings; the defaults are Google's Demo 3.

    A bit b of a filter becomes, once and for all, a fair coin with probability `permanent_noise` and else stays b;
    each report shows a permanent 1 as 1 with probability `one_from_one`, a permanent 0 with `one_from_zero`.  Those of
    a 0 are rounded up and of a 1 down to multiples of 2^-53, which are what is drawn (`permanent_one`, `fresh_one`).
    """

    n_bits: int = 32
    n_cohorts: int = 64
    permanent_noise: float = 0.5
    one_from_zero: float = 0.25
    one_from_one: float = 0.75

    def __post_init__(self) -> None:
        checks.integer_at_least(1, n_cohorts=self.n_cohorts)
        checks.power_of_two(n_bits=self.n_bits)
        if not 2 <= self.n_bits <= 64:
            raise ValueError(f"n_bits must lie in [2, 64], got {self.n_bits}: a report is one machine word")
        checks.finite(permanent_noise=self.permanent_noise, one_from_zero=self.one_from_zero, one_from_one=self.one_from_one)
        if not 0 <= self.permanent_noise < 1:
            raise ValueError(f"permanent_noise must lie in [0, 1), got {self.permanent_noise!r}")
        if not 0 < self.one_from_zero < self.one_from_one < 1:
            raise ValueError(
                "one_from_zero and one_from_one must satisfy 0 < one_from_zero < one_from_one < 1, got "
                f"{self.one_from_zero!r} and {self.one_from_one!r}"
            )
        if 0 < self.permanent_noise < _LEAST or not self.permanent_one(0) < self.permanent_one(1):
            raise ValueError(f"permanent_noise must be 0 or lie in [{_LEAST}, {1 - _LEAST}], got {self.permanent_noise!r}")
        if not self.fresh_one(0) < self.fresh_one(1):
            raise ValueError(
                f"one_from_one must be above one_from_zero by {_LEAST} or more, got {self.one_from_one!r} and "
                f"{self.one_from_zero!r}"
            )

    @classmethod
    def one_shot(cls, epsilon: float, **settings: int) -> Rappor:
        """Without a permanent response, symmetric: one report loses `epsilon`, of at most 50, and users report once."""
        checks.positive(epsilon=epsilon)
        if epsilon > 50:
            raise ValueError(f"epsilon must be at most 50, beyond which a report hides nothing, got {epsilon!r}")
        flip = rounded_up(float(expit(-epsilon / 2)))
        return cls(permanent_noise=0.0, one_from_zero=flip, one_from_one=1 - flip, **settings)

    def permanent_one(self, bit: int) -> float:
        """The probability that the permanent response to `bit` is 1."""
        changed = math.ceil(self.permanent_noise / 2 * _GRID) / _GRID
        return 1 - changed if bit else changed

    def fresh_one(self, permanent: int) -> float:
        """The probability that a report shows a `permanent` bit as 1."""
        return math.floor(self.one_from_one * _GRID) / _GRID if permanent else math.ceil(self.one_from_zero * _GRID) / _GRID

    def report_one(self, bit: int) -> float:
        """q* or p*: the probability that one report shows `bit` as 1."""
        permanent = self.permanent_one(bit)
        return permanent * self.fresh_one(1) + (1 - permanent) * self.fresh_one(0)

    @property
    def gain(self) -> float:
        """q* - p*, what a true 1 adds to the probability of a reported 1."""
        return self.report_one(1) - self.report_one(0)

    def log_bit_probability(self, bit: int, ones: int, n_reports: int) -> float:
        """The log probability that a given sequence of `n_reports` reports of one `bit` with `ones` ones is sent."""
        permanent = self.permanent_one(bit)
        given = [
            ones * math.log(p) + (n_reports - ones) * math.log1p(-p)  # of a permanent 0, of a permanent 1
            for p in (self.fresh_one(0), self.fresh_one(1))
        ]
        with np.errstate(divide="ignore"):  # without permanent noise one of the two is impossible
            return float(np.logaddexp(np.log(1 - permanent) + given[0], np.log(permanent) + given[1]))

    def epsilon_of_reports(self, n_reports: int) -> float:
        """The exact privacy loss of `n_reports` reports of one word: the worst log ratio over words and reports."""
        checks.integer_at_least(1, n_reports=n_reports)
        lost, gained = (
            self.log_bit_probability(bit, ones, n_reports) - self.log_bit_probability(1 - bit, ones, n_reports)
            for bit, ones in ((1, n_reports), (0, 0))  # all ones speak most for a 1, all zeros most for a 0
        )
        return lost + gained

    def loss_of_histories(self, first: Sequence[int], second: Sequence[int]) -> float:
        """The exact privacy loss between two sequences of up to 12 reported words, given by their filters (bit b of the
        integer is bit b of the filter); equal filters are one word, with one permanent response."""
        if not 0 < len(first) == len(second) <= 12:
            raise ValueError(f"first and second must have one length from 1 to 12, got {len(first)} and {len(second)}")
        sent = np.array(list(itertools.product((0, 1), repeat=len(first))))

        def log_law(history: Sequence[int], bit: int) -> NDArray[np.float64]:
            law = np.zeros(len(sent))
            for word in set(history):
                own = [place for place, held in enumerate(history) if held == word]
                by_ones = [self.log_bit_probability(word >> bit & 1, ones, len(own)) for ones in range(len(own) + 1)]
                law += np.array(by_ones)[sent[:, own].sum(axis=1)]
            return law

        alike: dict[tuple[int, ...], list[int]] = {}  # bits that look alike in all words of both histories
        for bit in range(self.n_bits):
            alike.setdefault(tuple(word >> bit & 1 for word in (*first, *second)), []).append(bit)
        return sum(len(bits) * float(np.max(log_law(first, bits[0]) - log_law(second, bits[0]))) for bits in alike.values())

    @property
    def epsilon_permanent(self) -> float:
        """The loss of infinitely many reports of one word, that of the permanent response itself; inf without one."""
        if self.permanent_noise == 0:
            return math.inf
        return 2 * math.log(self.permanent_one(1) / self.permanent_one(0))  # of the bits of two words

    def draw_hashes(self, public: np.random.Generator) -> RapporProtocol:
        """The protocol with hash functions drawn: what is published before anybody reports."""
        return RapporProtocol(self, MultiplyShift.draw(self.n_cohorts, self.n_bits, public, scrambled=True))


@dataclass(frozen=True, eq=False)
class BitCounts:
    """What the server holds: ones int64 (cohorts, bits), and how many reports it had of each cohort.  Merge with `+`."""

    ones: NDArray[np.int64]
    n_reports: NDArray[np.int64]  # (cohorts,)

    def __add__(self, other: BitCounts) -> BitCounts:
        if self.ones.shape != other.ones.shape:
            raise ValueError(f"counts must have one shape to be merged, got {self.ones.shape} and {other.ones.shape}")
        return BitCounts(self.ones + other.ones, self.n_reports + other.n_reports)


@checks.draws
@dataclass(frozen=True, eq=False)
class RapporProtocol:
    """A `Rappor` with its public hash functions."""

    settings: Rappor
    hashes: MultiplyShift  # one function per cohort: the bit that a word sets

    def assign(self, n_clients: int, public: np.random.Generator) -> NDArray[np.int64]:
        """A uniform cohort per client, (n_clients,), kept for all its reports.  Public."""
        return public.integers(0, self.settings.n_cohorts, size=n_clients)

    def report(
        self, keys: NDArray[np.uint64], cohorts: NDArray[np.int64], private: np.random.Generator
    ) -> NDArray[np.uint64]:
        """All reports of clients of `cohorts` (clients,), who hold keys[i, t] at report t: packed, (clients, reports).

        The permanent response of a client to a word is drawn once for all its reports of it: once is how often a client may
        be asked, as another call draws another response.
        """
        if np.ndim(keys) != 2 or len(keys) != len(cohorts):
            raise ValueError(f"keys must be (clients, reports), {len(cohorts)} clients, got {np.shape(keys)}")
        held, cohorts = checks.keys(np.ravel(keys)), checks.integer_array("cohorts", cohorts, below=self.settings.n_cohorts)
        clients, settings = np.repeat(np.arange(len(cohorts), dtype=np.uint64), np.shape(keys)[1]), self.settings
        pairs, place = np.unique(np.column_stack([clients, held]), axis=0, return_inverse=True)
        filters = np.uint64(1) << self.hashes.cells(cohorts[pairs[:, 0].astype(np.int64)], pairs[:, 1]).astype(np.uint64)
        permanent = self._respond(filters, settings.permanent_one(0), settings.permanent_one(1), private)
        shown = self._respond(permanent[place.ravel()], settings.fresh_one(0), settings.fresh_one(1), private)
        return shown.reshape(np.shape(keys))

    def _respond(
        self, filters: NDArray[np.uint64], from_zero: float, from_one: float, private: np.random.Generator
    ) -> NDArray[np.uint64]:
        """Each bit of `filters` becomes 1 with probability `from_zero` or `from_one`, independently."""
        weights = np.uint64(1) << np.arange(self.settings.n_bits, dtype=np.uint64)
        responses = np.empty_like(filters)
        for first in range(0, len(filters), _CHUNK):
            chunk = slice(first, first + _CHUNK)
            bits = (filters[chunk, None] & weights) != 0
            ones = private.random(bits.shape) < np.where(bits, from_one, from_zero)
            responses[chunk] = ones @ weights
        return responses

    def empty(self) -> BitCounts:
        shape = self.settings.n_cohorts, self.settings.n_bits
        return BitCounts(np.zeros(shape, dtype=np.int64), np.zeros(shape[0], dtype=np.int64))

    def add(self, counts: BitCounts, cohorts: NDArray[np.int64], reports: NDArray[np.uint64]) -> BitCounts:
        """`counts` plus packed `reports` (n,) of clients in `cohorts` (n,)."""
        ones = counts.ones.copy()
        for bit in range(self.settings.n_bits):
            shown = (reports >> np.uint64(bit)) & np.uint64(1)
            ones[:, bit] += np.bincount(cohorts, weights=shown, minlength=len(ones)).astype(np.int64)
        return BitCounts(ones, counts.n_reports + np.bincount(cohorts, minlength=len(ones)))

    def collect(self, keys: NDArray[np.uint64], cohorts: NDArray[np.int64], private: np.random.Generator) -> BitCounts:
        """Per-user path: what `report` sends, added up."""
        reports = self.report(keys, cohorts, private)
        return self.add(self.empty(), np.repeat(cohorts, reports.shape[1]), reports.ravel())

    def simulate(
        self, keys: NDArray[np.uint64], counts: NDArray[np.integer], rng: np.random.Generator, *, n_reports: int = 1
    ) -> BitCounts:
        """Exactly the law of `collect` with uniform cohorts when counts[i] clients report keys[i] `n_reports` times each."""
        checks.integer_at_least(1, n_reports=n_reports)
        cohorts = split_evenly(checks.counts_of_keys(counts, keys), self.settings.n_cohorts, rng)
        return self.simulate_pairs(keys, cohorts[:, :, None], np.array([n_reports]), rng)

    def simulate_pairs(
        self,
        keys: NDArray[np.uint64],
        pairs: NDArray[np.integer],
        multiplicity: NDArray[np.integer],
        rng: np.random.Generator,
    ) -> BitCounts:
        """Exactly the law of `collect` when pairs[i, c, r] clients of cohort c report keys[i] multiplicity[r] times.

        Given the filters all bits are independent: the permanent ones of each bit are a binomial of the pairs, the
        reported ones a binomial of the permanent ones.  The cost does not depend on the number of clients.
        """
        settings, counts = self.settings, self.empty()
        for cohort in range(settings.n_cohorts):
            held, with_bit = pairs[:, cohort, :], np.zeros((settings.n_bits, len(multiplicity)), dtype=np.int64)
            np.add.at(with_bit, self.hashes.cells(np.array(cohort), keys), held)
            total = held.sum(axis=0)
            permanent = rng.binomial(with_bit, settings.permanent_one(1))
            permanent += rng.binomial(total - with_bit, settings.permanent_one(0))
            shown = rng.binomial(multiplicity * permanent, settings.fresh_one(1))
            shown += rng.binomial(multiplicity * (total - permanent), settings.fresh_one(0))
            counts.ones[cohort] = shown.sum(axis=1)
            counts.n_reports[cohort] = total @ multiplicity
        return counts
