"""Bitstogram: find frequent words by hashing them apart and reading all bits of the survivor of each bucket at once.

**Computes** a list of words with estimates of how many users hold them, without knowing the words in advance.

**Guarantee.** Pure epsilon-local differential privacy per user: one report of epsilon, or, as `printed`, two of epsilon/2,
which compose.  Neighbouring inputs are any two words of one user.  Which bit a user reports about is public and independent
of the word.

**Error.** Bit l of a bucket is read wrongly with probability Phi(-f/s) or less for a word of f users alone in it, where
s is the standard error of that bit's difference; the code corrects `correctable` wrong bits, and most often more.

**Source.** Algorithm 8 of Bassily et al. (2020), with Algorithms 6 (SuccinctHist: not `coded`) and 7 (`hashtogram`).
The inner Hashtograms have one row of 2 * buckets cells, where their hash is the identity: the paper leaves these open.
All (repetition, bit) groups are the rows of one `FreqOracle` whose hash functions are the codeword's bits.  Applies
E-HH-9 and E-HH-12.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks, words
from evolvingdp.core.hashing import UNSIGNED, MultiplyShift
from evolvingdp.core.olh import OLH
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.heavy_hitters.binary_code import ReedMuller
from evolvingdp.heavy_hitters.count_sketch import FreqOracle
from evolvingdp.heavy_hitters.listing import HeavyHitters, Reports

_LONGEST = 11  # letters


@checks.draws
@checks.plain
def hashtogram(rows: int, width: int, epsilon: float, public: np.random.Generator) -> FreqOracle:
    """Hashtogram (Algorithm 7): FreqOracle without signs; the pairwise independent columns of Z are Hadamard's.

    Its estimates lie about n/width too high, the expected weight of what collides with a word.
    """
    return FreqOracle(MultiplyShift.draw(rows, width, public, signed=False), epsilon)


def explicit_hist(epsilon: float) -> OLH:
    """ExplicitHist (Algorithm 5), local hashing with two values: a randomized bit Z[v_j, j] a user, +1 where user j hashes
    v_j to 1, and a(v) = (e^eps + 1)/(e^eps - 1) sum_j y_j Z[v, j]."""
    return OLH(epsilon, values=2)


@dataclass(frozen=True)
class CodeHashes:
    """Row r * code.length + l hashes a word to its bucket of repetition r together with bit l of its codeword.

    With `two_cells` it is the paper's database over [T] x {0, 1}; else the bit is the sign of the bucket: half the cells,
    the same difference, and 1/sqrt(2) of the noise, since one cell is read instead of two.
    """

    buckets: MultiplyShift  # one row per repetition
    code: ReedMuller
    two_cells: bool

    @property
    def rows(self) -> int:
        return self.buckets.rows * self.code.length

    @property
    def width(self) -> int:
        return self.buckets.width * (1 + self.two_cells)

    def cells(self, rows: NDArray[np.integer], keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        buckets = self.buckets.cells(rows // self.code.length, keys)
        return 2 * buckets + self._bits(rows, keys) if self.two_cells else buckets

    def signs(self, rows: NDArray[np.integer], keys: NDArray[np.uint64]) -> NDArray[np.int8]:
        return UNSIGNED if self.two_cells else 1 - 2 * self._bits(rows, keys).view(np.int8)

    def _bits(self, rows: NDArray[np.integer], keys: NDArray[np.uint64]) -> NDArray[np.uint8]:
        return self.code.bits(keys, rows % self.code.length)


@checks.plain
@dataclass(frozen=True)
class Bitstogram:
    """Users send a bit of their codeword, as the sign of a bucket, or report to a final oracle, read by means.

    `printed`: Algorithm 8 instead.  Each user does both with epsilon/2, a bucket has two cells, the final oracle is
    Hashtogram, read by medians, and its list is not cut at the threshold.  `buckets` is T, `repetitions` is R.
    """

    epsilon: float  # of a user, over all of the user's reports
    threshold: float  # users
    length: int = 6  # letters of a word, exactly
    coded: bool = True  # words have a code that corrects wrong bits
    buckets: int = 1024  # T: several times the number of frequent words
    repetitions: int = 1  # R hash functions into buckets
    final_share: float = 0.3  # of the users report to the final oracle; as printed all do
    rows: int = 16  # of the final oracle
    width: int = 2**16  # cells of a row of the final oracle
    printed: bool = False

    def __post_init__(self) -> None:
        checks.positive(epsilon=self.epsilon, threshold=self.threshold)
        checks.integer_at_least(1, length=self.length, repetitions=self.repetitions, rows=self.rows)
        checks.power_of_two(buckets=self.buckets, width=self.width)
        if self.length > _LONGEST:
            raise ValueError(f"length must be at most {_LONGEST}, whose words a code can carry, got {self.length}")
        checks.probability(final_share=self.final_share)

    @cached_property
    def code(self) -> ReedMuller:
        """Of the numbers of words."""
        return ReedMuller.least((26**self.length - 1).bit_length(), self.coded)

    @property
    def epsilon_of_a_report(self) -> float:
        """Of each of the reports that a user sends."""
        return self.epsilon / 2 if self.printed else self.epsilon

    @property
    def shares(self) -> tuple[float, float]:
        """The shares of the users who report a bit of their codeword, and who report to the final oracle."""
        return (1.0, 1.0) if self.printed else (1 - self.final_share, self.final_share)

    def bit_error(self, count: int, n_users: int) -> float:
        """The ratio f/s for a word of `count` users alone in its bucket: each of its bits is wrong with probability
        Phi(-f/s), Phi the normal distribution function."""
        groups = self.repetitions * self.code.length
        reports = n_users * self.shares[0]
        noise = SignFlip(self.epsilon_of_a_report).debias * np.sqrt(reports * groups)
        if self.printed:
            noise *= np.sqrt(2)  # the difference of two cells with independent noise
        return float(count * self.shares[0] / noise)

    def encode(self, texts: NDArray[np.str_]) -> NDArray[np.uint64]:
        """The messages of words; ValueError names the first that has another length or letter."""
        return words.index(texts, self.length)

    def draw_hashes(self, public: np.random.Generator) -> BitstogramProtocol:
        """The protocol with hash functions drawn: what is published before anybody reports."""
        buckets = MultiplyShift.draw(self.repetitions, self.buckets, public)
        bits = FreqOracle(CodeHashes(buckets, self.code, self.printed), self.epsilon_of_a_report)
        family = MultiplyShift.draw(self.rows, self.width, public, signed=not self.printed)
        final = FreqOracle(family, self.epsilon_of_a_report)
        return BitstogramProtocol(self, bits, final)


@checks.draws
@dataclass(frozen=True, eq=False)
class BitstogramProtocol:
    """A Bitstogram with its public hash functions: collects (or simulates) reports and reads words from them."""

    settings: Bitstogram
    bits: FreqOracle
    final: FreqOracle

    def collect(self, messages: NDArray[np.uint64], public: np.random.Generator, private: np.random.Generator) -> Reports:
        """Per-user path: user i holds messages[i], (n,)."""
        first = last = messages = self._checked(messages)
        if not self.settings.printed:
            final = public.random(len(messages)) < self.settings.final_share
            first, last = messages[~final], messages[final]
        return Reports((self.bits.collect(first, public, private),), self.final.collect(last, public, private))

    def simulate(self, messages: NDArray[np.uint64], counts: NDArray[np.integer], rng: np.random.Generator) -> Reports:
        """Reports with exactly the law of `collect` when counts[i] users hold messages[i]."""
        messages = self._checked(messages)
        first = last = checks.counts_of_keys(counts, messages)
        if not self.settings.printed:
            last = rng.binomial(first, self.settings.final_share)
            first = first - last
        return Reports((self.bits.simulate(messages, first, rng),), self.final.simulate(messages, last, rng))

    def _checked(self, messages: NDArray[np.uint64]) -> NDArray[np.uint64]:
        messages = checks.keys(messages, name="messages")
        if (wrong := messages >= np.uint64(26**self.settings.length)).any():
            raise ValueError(f"messages must be made by encode, got {messages[wrong.argmax()]} at position {wrong.argmax()}")
        return messages

    def certainty(self, reports: Reports) -> NDArray[np.float64]:
        """Step 2: how many more users seem to have a 0 than a 1, of each bucket and bit, (repetitions * buckets,
        code.length); the received bit is 1 where it is negative."""
        settings, code = self.settings, self.settings.code
        cells = self.bits.cell_estimates(reports.levels[0]).reshape(settings.repetitions, code.length, settings.buckets, -1)
        certain = cells[..., 0] - cells[..., 1] if settings.printed else cells[..., 0]
        return np.asarray(certain.swapaxes(1, 2).reshape(-1, code.length))

    def _words(self, reports: Reports) -> NDArray[np.uint64]:
        """The words that buckets decode to, each once.  A word read in a bucket that it is not hashed to is noise."""
        settings, hashes = self.settings, self.bits.hashes
        assert isinstance(hashes, CodeHashes)
        bucket = np.tile(np.arange(settings.buckets), settings.repetitions)
        repetition = np.repeat(np.arange(settings.repetitions), settings.buckets)
        messages = settings.code.decode(self.certainty(reports))
        belongs = (messages < np.uint64(26**settings.length)) & (hashes.buckets.cells(repetition, messages) == bucket)
        return np.unique(messages[belongs])

    def search(self, reports: Reports, n_users: int) -> HeavyHitters:
        """Steps 2 to 5: decode every bucket, and estimate the words that belong where they were read.

        Raises ValueError for reports that were made for another protocol, or by another number of users.
        """
        settings = self.settings
        reports.check((self.bits,), self.final, n_users, both=settings.printed)
        assert reports.final is not None
        candidates = self._words(reports)
        share, estimator = settings.shares[1], "median" if settings.printed else "mean"
        estimates = self.final.estimate(reports.final, candidates, estimator) / share
        errors = self.final.standard_errors(reports.final, candidates, estimator) / share
        listed = estimates >= (-np.inf if settings.printed else settings.threshold)
        path = {"candidates": settings.repetitions * settings.buckets, "survivors": len(candidates)}
        found = words.from_index(candidates[listed], settings.length)
        return HeavyHitters.of(found, estimates[listed], errors[listed], [path])
