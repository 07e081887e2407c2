"""RAPPOR: Bloom filters with a permanent and a fresh randomized response, the baseline of Section 4.1.

**Computes** how often each bit of the users' Bloom filters is reported in each cohort; `rappor_decoding` fits candidate
words to that.

**Guarantee.** Pure epsilon-local differential privacy. Between two words that a user may hold, **one report** loses
`epsilon_of_reports(1)` and any number of reports of **that one word** at most `epsilon_permanent`, since they all come from
the same permanent response. Whether a user's word *changes* is not protected (`loss_of_histories`). Cohorts are public and
independent of the words.

**Source.** Erlingsson, Pihur and Korolova, RAPPOR: randomized aggregatable privacy-preserving ordinal response (2014).
Their f is `permanent_noise`, p is `one_from_zero`, q is `one_from_one`, k, h and m are `n_bits`, `n_hashes` and
`n_cohorts`. Applies E-HH-10.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit

from evolvingdp.core import checks
from evolvingdp.core.hashing import MultiplyShift, scramble
from evolvingdp.core.randomizers import rounded_up
from evolvingdp.core.sampling import split_evenly

_CHUNK = 1 << 15  # reports at a time: one uniform per bit
_GRID = 2.0**53  # uniform doubles are multiples of 1 / _GRID, and so are the probabilities that they decide on
_LEAST = 2.0**-52  # of a noise: half of it is one such step
_NO_PAIRS = pd.MultiIndex.from_arrays([np.zeros(0, np.int64), np.zeros(0, np.uint64)])


@checks.plain
@dataclass(frozen=True)
class Rappor:
    """The settings; the defaults are Google's Demo 3.

    A bit b of a Bloom filter becomes, once and for all, a fair coin with probability `permanent_noise` and else stays b;
    each report shows a permanent 1 as 1 with probability `one_from_one`, a permanent 0 with `one_from_zero`.  Those of
    a 0 are rounded up and of a 1 down to multiples of 2^-53, which are what is drawn (`permanent_one`, `fresh_one`).
    """

    n_bits: int = 32
    n_hashes: int = 1
    n_cohorts: int = 64
    permanent_noise: float = 0.5
    one_from_zero: float = 0.25
    one_from_one: float = 0.75

    def __post_init__(self) -> None:
        checks.integer_at_least(1, n_hashes=self.n_hashes, n_cohorts=self.n_cohorts)
        checks.power_of_two(n_bits=self.n_bits)
        if not 2 <= self.n_bits <= 64:
            raise ValueError(f"n_bits must lie in [2, 64], got {self.n_bits}: a report is one machine word")
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
        """Without a permanent response, symmetric, with a one-report loss of at most `epsilon` (exactly that where two words
        can have disjoint Bloom filters): for users who report once. `epsilon` at most 50."""
        checks.positive(epsilon=epsilon)
        if epsilon > 50:
            raise ValueError(f"epsilon must be at most 50, beyond which a report hides nothing, got {epsilon!r}")
        n_hashes = settings.get("n_hashes", 1)
        checks.integer_at_least(1, n_hashes=n_hashes)
        flip = rounded_up(float(expit(-epsilon / (2 * n_hashes))))
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
        return self._worst(lost, gained)

    def loss_of_histories(self, first: Sequence[int], second: Sequence[int]) -> float:
        """The exact privacy loss between two sequences of reported words, given by their Bloom filters (bit b of the integer
        is bit b of the filter); equal filters are one word, with one permanent response. For up to 12 reports."""
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
        bit = math.log(self.permanent_one(1) / self.permanent_one(0))
        return self._worst(bit, bit)

    def _worst(self, loss_of_a_one: float, loss_of_a_zero: float) -> float:
        """The largest loss over pairs of Bloom filters with `own` bits in the first only, `other` in the second, `both`."""
        sizes = range(self.n_hashes + 1)
        return max(
            own * loss_of_a_one + other * loss_of_a_zero
            for own, other, both in itertools.product(sizes, repeat=3)
            if 1 <= own + both <= self.n_hashes and 1 <= other + both <= self.n_hashes and own + other + both <= self.n_bits
        )

    def draw_hashes(self, public: np.random.Generator) -> RapporProtocol:
        """The protocol with hash functions drawn: what is published before anybody reports."""
        return RapporProtocol(self, MultiplyShift.draw(self.n_cohorts * self.n_hashes, self.n_bits, public))


@dataclass(frozen=True, eq=False)
class Memo:
    """The permanent responses of all (client, word) pairs that have reported.  Secret: each stays on its device."""

    pairs: pd.MultiIndex
    bits: NDArray[np.uint64]  # (pairs,), a permanent response each
    cohorts: NDArray[np.int64]  # (pairs,), for which it was drawn


@dataclass(frozen=True, eq=False)
class BitCounts:
    """What the server holds: ones int64 (cohorts, bits), and how many reports it had of each cohort.  Merge with `+`."""

    ones: NDArray[np.int64]
    n_reports: NDArray[np.int64]  # (cohorts,)

    def __add__(self, other: BitCounts) -> BitCounts:
        if self.ones.shape != other.ones.shape:
            raise ValueError(f"counts must have one shape to be merged, got {self.ones.shape} and {other.ones.shape}")
        return BitCounts(self.ones + other.ones, self.n_reports + other.n_reports)


@dataclass(frozen=True, eq=False)
class RapporProtocol:
    """A `Rappor` with its public hash functions."""

    settings: Rappor
    hashes: MultiplyShift  # n_hashes functions per cohort

    def bloom(self, keys: NDArray[np.uint64], cohorts: NDArray[np.int64]) -> NDArray[np.uint64]:
        """The Bloom filters of `keys` in `cohorts` (broadcast), packed: bit b of the result is bit b of the filter."""
        ones = np.uint64(1) << self.cells(keys, cohorts).astype(np.uint64)
        return np.asarray(np.bitwise_or.reduce(ones, axis=0))

    def cells(self, keys: NDArray[np.uint64], cohorts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The bits that `keys` set in `cohorts`, (n_hashes, *broadcast shape)."""
        functions = self.settings.n_hashes
        scrambled = scramble(keys)
        return np.stack([self.hashes.cells(cohorts * functions + own, scrambled) for own in range(functions)])

    def assign(self, n_clients: int, public: np.random.Generator) -> NDArray[np.int64]:
        """A uniform cohort per client, (n_clients,), kept for all its reports.  Public."""
        return public.integers(0, self.settings.n_cohorts, size=n_clients)

    def start(self) -> Memo:
        """No permanent response yet."""
        return Memo(_NO_PAIRS, np.zeros(0, np.uint64), np.zeros(0, np.int64))

    def step(
        self,
        memo: Memo,
        clients: NDArray[np.int64],
        cohorts: NDArray[np.int64],
        keys: NDArray[np.uint64],
        private: np.random.Generator,
    ) -> tuple[Memo, NDArray[np.uint64]]:
        """One report of each entry of `clients` on its word, packed (n,).

        Clients are known by integers.  The permanent response to a pair of client and word is drawn when it first reports
        and kept for ever.  Raises ValueError where the client was in another cohort then: another would cost as much again.
        """
        clients = checks.integer_array("clients", clients, low=-(2**63), below=2**63)
        keys = checks.keys(keys)
        cohorts = checks.integer_array("cohorts", cohorts, below=self.settings.n_cohorts)
        checks.one_each(clients=clients, cohorts=cohorts, keys=keys)
        asked = pd.MultiIndex.from_arrays([clients, keys])
        new = ~(asked.isin(memo.pairs) | asked.duplicated())
        pairs, drawn_for = memo.pairs.append(asked[new]), np.append(memo.cohorts, cohorts[new])
        place = pairs.get_indexer(asked)
        if (moved := drawn_for[place] != cohorts).any():
            first = int(moved.argmax())
            raise ValueError(
                f"cohorts must stay what they were when a client first reported a word, {drawn_for[place[first]]} of client "
                f"{clients[first]}, got {cohorts[first]}"
            )
        filters = self.bloom(keys[new], cohorts[new])
        drawn = self._respond(filters, self.settings.permanent_one(0), self.settings.permanent_one(1), private)
        memo = Memo(pairs, np.concatenate([memo.bits, drawn]), drawn_for)
        kept = memo.bits[place]
        return memo, self._respond(kept, self.settings.fresh_one(0), self.settings.fresh_one(1), private)

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
        """Per-user path: client i of cohort cohorts[i] holds keys[i, t] at its report t; keys are (n_clients, n_reports)."""
        if keys.ndim != 2 or len(keys) != len(cohorts):
            raise ValueError(f"keys must be (n_clients, n_reports), n_clients = {len(cohorts)}, got {keys.shape}")
        memo, counts, clients = self.start(), self.empty(), np.arange(len(keys))
        for held in keys.T:
            memo, reports = self.step(memo, clients, cohorts, held, private)
            counts = self.add(counts, cohorts, reports)
        return counts

    def simulate(
        self, keys: NDArray[np.uint64], counts: NDArray[np.integer], rng: np.random.Generator, *, n_reports: int = 1
    ) -> BitCounts:
        """Exactly the law of `collect` with uniform cohorts when counts[i] clients report keys[i] `n_reports` times each."""
        checks.counts(counts=counts)
        checks.integer_at_least(1, n_reports=n_reports)
        if len(keys) != len(counts):
            raise ValueError(f"counts must have one entry per key, got {len(counts)} for {len(keys)} keys")
        cohorts = split_evenly(counts, self.settings.n_cohorts, rng)
        return self.simulate_pairs(keys, cohorts[:, :, None], np.array([n_reports]), rng)

    def simulate_pairs(
        self,
        keys: NDArray[np.uint64],
        pairs: NDArray[np.integer],
        multiplicity: NDArray[np.integer],
        rng: np.random.Generator,
    ) -> BitCounts:
        """Exactly the law of `collect` when pairs[i, c, r] clients of cohort c report keys[i] multiplicity[r] times.

        Given the Bloom filters all bits are independent: the permanent ones of each bit are a binomial of the pairs, the
        reported ones a binomial of the permanent ones.  The cost does not depend on the number of clients.
        """
        settings, counts = self.settings, self.empty()
        for cohort in range(settings.n_cohorts):
            held = pairs[:, cohort, :]
            cells = self.cells(keys, np.array(cohort))
            with_bit = np.zeros((settings.n_bits, len(multiplicity)), dtype=np.int64)
            for own, cell in enumerate(cells):
                new = np.all(cells[:own] != cell, axis=0)  # two hash functions may set one bit
                np.add.at(with_bit, cell[new], held[new])
            total = held.sum(axis=0)
            permanent = rng.binomial(with_bit, settings.permanent_one(1))
            permanent += rng.binomial(total - with_bit, settings.permanent_one(0))
            shown = rng.binomial(multiplicity * permanent, settings.fresh_one(1))
            shown += rng.binomial(multiplicity * (total - permanent), settings.fresh_one(0))
            counts.ones[cohort] = shown.sum(axis=1)
            counts.n_reports[cohort] = total @ multiplicity
        return counts
