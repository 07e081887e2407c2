"""FreqOracle: word frequencies from one private bit a user.

**Computes** an estimate of f(v), the number of users who hold v, for any v asked after the collection.

**Guarantee.** Pure epsilon-local differential privacy per report: one randomized response on one bit that is a function of
the user's word and of public randomness; neighbouring inputs are any two words of one user.  A user who takes part in two
collections pays for both.

**Error.** Each row's estimate is unbiased over hashes, partition and noise, and the median nearly so where n is large beside
the number of rows.  The median has a standard error of about sqrt(pi/2) a sqrt(n), a = coth(epsilon/2), plus what hash
collisions add (`theory.py`).

**Source.** Bassily et al. (2020): Algorithm 1, LocalRnd, is `assign`, `true_bits` and `report`; Algorithm 2's lines 3 and
7-8 are `row_estimates` and `estimate`.  Epsilon is that of one report (line 7 has epsilon/2 because TreeHist asks each user
twice).  Applies E-HH-1, E-HH-2 and E-HH-3.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks, hadamard
from evolvingdp.core.hashing import HashFamily, scramble
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.sampling import blocks, fair_binomial, pieces
from evolvingdp.heavy_hitters import theory

Dealt = tuple[NDArray[np.int64], NDArray[np.int64]]  # numbers of (row, sign, cell), and users there; one may come twice
_AT_ONCE = 1 << 16  # users or cells: arrays that stay in the cache
_DEALT = 1 << 21  # users, or keys times rows, at a time
_RARE = 1  # users a row up to which they are dealt one by one
_BINOMIAL = 1  # users whose columns are as dear as a binomial for a group
_KEYS_AT_ONCE = 1 << 13  # of an estimate
_CERTAIN = {"median": 4.0, "mean": 2.5}  # standard errors; of means, what is asked for lies well below a cut
_SMALLEST = 1e-9  # of epsilons: coins of 53 bits keep estimates unbiased to a millionth
_PROBES = scramble(np.arange(64, dtype=np.uint64))  # keys that tell hash families apart


@dataclass(frozen=True, eq=False)
class Sketch:
    """What the server holds: the sums of reports, int64 (rows, width), and their number.  Merge with `+`.

    `oracle`: what the reports were made for.  Only its sketches are merged with this one, and only it reads them.
    """

    oracle: FreqOracle
    sums: NDArray[np.int64]
    n_reports: int

    def __post_init__(self) -> None:
        if self.sums.shape != self.oracle.shape:
            raise ValueError(f"sums must have the oracle's shape {self.oracle.shape} (rows, width), got {self.sums.shape}")

    @cached_property
    def cells(self) -> NDArray[np.float64]:
        """`FreqOracle.cell_estimates`."""
        return self.oracle._cells(self.sums)

    def __add__(self, other: Sketch) -> Sketch:
        own, another = self.oracle.fingerprint, other.oracle.fingerprint
        if own != another:
            raise ValueError(f"sketches must be of one oracle to be merged, got one of {own}, one of {another}")
        return replace(self, sums=self.sums + other.sums, n_reports=self.n_reports + other.n_reports)


@checks.plain
@dataclass(frozen=True)
class FreqOracle:
    """Algorithm 2: collect reports into a sketch, then estimate the frequency of any word.

    `hashes` are public and shared with the users.
    """

    estimators: ClassVar[tuple[str, ...]] = ("median", "mean")
    hashes: HashFamily
    epsilon: float  # of one report

    def __post_init__(self) -> None:
        checks.positive(epsilon=self.epsilon)
        checks.power_of_two(width=self.hashes.width)
        if self.epsilon < _SMALLEST:
            raise ValueError(
                f"epsilon must be at least {_SMALLEST}, below which a report is all but a fair coin, got {self.epsilon!r}"
            )

    @property
    def randomizer(self) -> SignFlip:
        """The coin of a report."""
        return SignFlip(self.epsilon)

    def assign(self, n_users: int, public: np.random.Generator) -> NDArray[np.int64]:
        """Line 1: a uniform slot = row * width + column (j_i, r_i) per user, (n_users,).  Public."""
        return public.integers(0, self.hashes.rows * self.hashes.width, size=n_users)

    def true_bits(self, keys: NDArray[np.uint64], slots: NDArray[np.int64]) -> NDArray[np.int8]:
        """Lines 2-6: x_i = g_j(v_i) W[r_i, h_j(v_i)], (n,) of +-1.  Secret: never leaves the user's device."""
        rows, columns = np.divmod(slots, self.hashes.width)
        return self.hashes.signs(rows, keys) * hadamard.signs(columns, self.hashes.cells(rows, keys))

    def report(
        self, keys: NDArray[np.uint64], slots: NDArray[np.int64], private: np.random.Generator
    ) -> NDArray[np.integer]:
        """Lines 2-8: one private bit y_i a user, (n,) of +-1.  Drawn once and then fixed (E-HH-1)."""
        checks.one_each(keys=keys, slots=slots)
        return self.randomizer.randomize(self.true_bits(keys, slots), private)

    @cached_property
    def fingerprint(self) -> str:
        """What two parties must share to read each other's sketches: the kind of reports, the hash functions, by 64 of their
        values in each row, and epsilon."""
        asked = np.arange(self.hashes.rows)[:, None], _PROBES[None, :]
        values = [np.asarray(part(*asked), dtype="<i8").tobytes() for part in (self.hashes.cells, self.hashes.signs)]
        digest = hashlib.sha256(b"".join(values)).hexdigest()
        rows, width = self.shape
        return f"{type(self).__name__}, {rows} rows of {width}, hashes {digest[:12]}, epsilon {float(self.epsilon)!r}"

    def check(self, sketch: Sketch) -> None:
        """Raise ValueError unless `sketch` holds reports made for this oracle."""
        if sketch.oracle.fingerprint != self.fingerprint:
            raise ValueError(f"sketch must hold reports made for {self.fingerprint}, got one of {sketch.oracle.fingerprint}")

    def empty(self) -> Sketch:
        """A sketch of no reports."""
        return Sketch(self, np.zeros(self.shape, dtype=np.int64), 0)

    @property
    def shape(self) -> tuple[int, int]:
        """That of a sketch's sums."""
        return self.hashes.rows, self.hashes.width

    def add(self, sketch: Sketch, slots: NDArray[np.int64], reports: NDArray[np.integer]) -> Sketch:
        """`sketch` plus `reports` (n,) of users at `slots` (n,)."""
        self.check(sketch)
        if np.shape(reports) != np.shape(slots):
            raise ValueError(f"reports must have one entry per slot, got {np.shape(reports)} for {np.shape(slots)}")
        sums = sketch.sums.copy()
        self._count(sums, slots, reports)
        return Sketch(self, sums, sketch.n_reports + len(slots))

    def _count(self, sums: NDArray[np.int64], slots: NDArray[np.int64], reports: NDArray[np.integer]) -> None:
        slots = checks.integer_array("slots", slots, below=sums.size)
        if (wrong := np.abs(np.asarray(reports, dtype=float)) != 1).any():
            raise ValueError(f"reports must be +1 or -1, got {reports[wrong.argmax()]} at position {wrong.argmax()}")
        np.add.at(sums.ravel(), slots, reports)

    def collect(self, keys: NDArray[np.uint64], public: np.random.Generator, private: np.random.Generator) -> Sketch:
        """Per-user path: user i holds keys[i], (n,) uint64.  Chunks do not change the result."""
        keys, sums = checks.keys(keys), np.zeros(self.shape, dtype=np.int64)
        for some in blocks(len(keys), _AT_ONCE):
            slots = self.assign(len(some), public)
            self._count(sums, slots, self.report(keys[some], slots, private))
        return Sketch(self, sums, len(keys))

    def simulate(self, keys: NDArray[np.uint64], counts: NDArray[np.integer], rng: np.random.Generator) -> Sketch:
        """A sketch with exactly the law of `collect` when counts[i] users hold keys[i], whose number does not matter; one
        generator is public and private randomness.

        A report is a fair coin with probability 2/(e^epsilon + 1), whatever the word, and else the true bit.  Coins are
        reports without noise of users in cell 0 with a fair sign: what is left is to give every user a uniform column.
        """
        keys, sums, (n_rows, width) = checks.keys(keys), np.zeros(self.shape, dtype=np.int64), self.shape
        counts = checks.counts_of_keys(counts, keys)
        honest = rng.binomial(counts, 1 / self.randomizer.debias)
        coins = rng.multinomial(np.sum(counts - honest), np.full(n_rows, 1 / n_rows))
        heads = rng.binomial(coins, 0.5)
        in_cell_0 = np.arange(2 * n_rows) * width, np.stack([heads, coins - heads], axis=1).ravel()
        dealt = itertools.chain([in_cell_0], self._dealt(keys, honest, rng))
        if counts.sum() < 2 * n_rows * width * width.bit_length() * _BINOMIAL:
            for some in dealt:
                _add_users(sums, *some, rng)
        else:
            users = self._held(dealt)
            for rows in blocks(n_rows, max(1, _AT_ONCE // width)):
                sums[rows] = _by_groups(users[rows], rng)
        return Sketch(self, sums, int(np.sum(counts)))

    def holders(self, keys: NDArray[np.uint64], counts: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """Deal the users to rows: how many hold each cell with sign +1, and with sign -1, (rows, 2, width)."""
        return self._held(self._dealt(keys, counts, rng))

    def _held(self, dealt: Iterable[Dealt]) -> NDArray[np.int64]:
        held = np.zeros(2 * math.prod(self.shape), dtype=np.int64)
        for places, users in dealt:
            np.add.at(held, places, users)
        return held.reshape(self.shape[0], 2, self.shape[1])

    def _dealt(self, keys: NDArray[np.uint64], counts: NDArray[np.int64], rng: np.random.Generator) -> Iterator[Dealt]:
        """Deal the users to rows: those of rare keys one by one."""
        rows = np.arange(self.shape[0])
        rare = counts <= _RARE * len(rows)
        for part in pieces(np.where(rare, counts, len(rows)), _DEALT):
            some, held = part[rare[part]], part[~rare[part]]
            alone = np.repeat(keys[some], counts[some])
            places = self._places(rng.integers(0, len(rows), size=len(alone)), alone)
            together = rng.multinomial(counts[held], np.full(len(rows), 1 / len(rows)))
            yield places, np.ones(len(alone), dtype=np.int64)
            yield self._places(rows[:, None], keys[held]).ravel(), together.T.ravel()

    def _places(self, rows: NDArray[np.int64], keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Numbers of (row, sign, cell)."""
        minus = self.hashes.signs(rows, keys) < 0
        return (2 * rows + minus) * self.hashes.width + self.hashes.cells(rows, keys)

    def row_estimates(self, sketch: Sketch, keys: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Line 7 for every row and key, float64 (rows, keys): rows * a * sum_i y_i g_j(v) W[r_i, h_j(v)]."""
        return self._read(self.cell_estimates(sketch), checks.keys(keys))

    def estimate(self, sketch: Sketch, keys: NDArray[np.uint64], estimator: str = "median") -> NDArray[np.float64]:
        """The frequencies of `keys`, (keys,), in users.  May be negative or above n: not clipped, so that
        rows stay unbiased.

        `"median"` of the rows (line 8) shrugs off collisions; the `"mean"` has less noise and takes them all.
        """
        checks.one_of(self.estimators, estimator=estimator)
        return self.read(self.cell_estimates(sketch), checks.keys(keys), estimator)

    def reaching(
        self, cells: NDArray[np.float64], n_reports: int, keys: NDArray[np.uint64], cut: float, estimator: str = "median"
    ) -> NDArray[np.int64]:
        """Which of `keys` have medians, or means, of the rows of `cells` of at least `cut`, by position.  Whose first
        quarter or half of the rows says too little by far more than its error is read no further."""
        rows, found = len(cells), [np.zeros(0, dtype=np.int64)]
        error = _CERTAIN[estimator] * self.standard_error(max(1, n_reports), estimator)
        for some in blocks(len(keys), _KEYS_AT_ONCE):
            read = np.empty((0, len(some)))
            for first, last in itertools.pairwise((0, *(-(-rows // parts) for parts in (4, 2, 1)))):
                read = np.vstack([read, self._read(cells[first:last], keys[some], first)])
                near = _read_by(estimator, read) >= cut - error * math.sqrt(rows / last - 1)
                some, read = some[near], read[:, near]
            found.append(some)
        return np.concatenate(found)

    def read(self, cells: NDArray[np.float64], keys: NDArray[np.uint64], estimator: str) -> NDArray[np.float64]:
        """The median or the mean of what the rows of `cells` say of `keys`, (keys,)."""
        firsts = range(0, max(len(keys), 1), _KEYS_AT_ONCE)
        return np.concatenate([_read_by(estimator, self._read(cells, keys[first:][:_KEYS_AT_ONCE])) for first in firsts])

    def standard_error(self, n_reports: int, estimator: str = "median") -> float:
        """Standard error of `estimate`, in users, from the known noise alone: without hash collisions (`theory.median_error`
        has the median's)."""
        checks.one_of(self.estimators, estimator=estimator)
        if estimator == "median":
            return theory.noise_standard_error(n_reports, self.epsilon, self.hashes.rows)
        return theory.mean_standard_error(n_reports, self.epsilon)

    def standard_errors(self, sketch: Sketch, keys: NDArray[np.uint64], estimator: str) -> NDArray[np.float64]:
        """Standard errors of the estimates of `keys`, (keys,), in users; of "mean" with collisions: a cell's mean square,
        without the word's own users, over the rows is the variance of a mean, right on average over hash functions."""
        known = np.full(len(checks.keys(keys)), self.standard_error(max(1, sketch.n_reports), estimator))
        if estimator == "median":
            return known
        cells, rows = np.square(self.cell_estimates(sketch)), self.hashes.rows
        others = cells.sum() - rows * np.square(self.estimate(sketch, keys, estimator))
        return np.asarray(np.sqrt(np.maximum(np.square(known), others / cells.size / rows)))

    def cell_estimates(self, sketch: Sketch) -> NDArray[np.float64]:
        """For every row and cell, the signed number of users hashed there, float64 (rows, width), in users of all rows."""
        self.check(sketch)
        return sketch.cells

    def _cells(self, sums: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(self.users_of_a_report * hadamard.transform(sums))

    @property
    def users_of_a_report(self) -> float:
        """How many users of all rows a report in one row stands for: rows * a."""
        return self.hashes.rows * self.randomizer.debias

    def _read(self, cells: NDArray[np.float64], keys: NDArray[np.uint64], first: int = 0) -> NDArray[np.float64]:
        """g_j(v) times cell h_j(v), for every row of `cells`, which are those from `first` on, and key: (rows, keys)."""
        read = np.empty((len(cells), len(keys)))
        for rows in blocks(len(cells), max(1, _AT_ONCE // max(1, len(keys)))):
            some, asked = read[rows[0] : rows[-1] + 1], (first + rows[:, None], keys[None, :])
            places = self.hashes.cells(*asked) + rows[:, None] * self.hashes.width
            cells.ravel().take(places, out=some, mode="clip")  # which checks nothing, and is faster
            some *= self.hashes.signs(*asked)
        return read


def _read_by(estimator: str, read: NDArray[np.float64]) -> NDArray[np.float64]:
    """Over axis 0; numpy sorts short rows several times faster than it selects a median, if they lie together."""
    if estimator == "mean":
        return np.asarray(read.mean(axis=0))
    in_order = np.array(read.T, order="C")
    in_order.sort()
    middle = len(read) // 2
    return np.asarray(in_order[:, middle - 1 + len(read) % 2 : middle + 1].mean(axis=1))


def _add_users(
    sums: NDArray[np.int64], places: NDArray[np.int64], users: NDArray[np.int64], rng: np.random.Generator
) -> None:
    """Give each of the `users` at these places a uniform column, and add the true bits to `sums`, (rows, width)."""
    width = sums.shape[1]
    bits = width.bit_length() - 1
    for some in pieces(users, _AT_ONCE):
        place = np.repeat(places[some], users[some])  # (row * 2 + (sign < 0)) * width + cell
        column = rng.integers(0, width, size=len(place), dtype=np.uint32)
        negative = (np.bitwise_count(place & column & (width - 1)) ^ (place >> bits)) & 1
        np.add.at(sums.ravel(), (place >> (bits + 1) << bits) + column, 1 - 2 * negative)


def _by_groups(users: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """The same for all holders of a cell and sign at once.

    Bit k of their columns r: half of a group, in law, takes r_k = 0 and keeps its sign; the rest takes r_k = 1 and its sign
    turns where c_k = 1, c the cell.  Bit k of c is then forgotten, so there are never more than 2 * width groups a row and
    the cost is log2(width) fair binomials per group, whatever the number of users.
    """
    users = users[..., None]  # (rows, sign, bits of c still to read, bits of r drawn)
    while users.shape[2] > 1:
        zero = fair_binomial(users, rng)
        one = users - zero
        low_zero, high_zero = zero[:, :, 0::2], zero[:, :, 1::2]
        low_one, high_one = one[:, :, 0::2], one[:, ::-1, 1::2]
        users = np.concatenate([low_zero + high_zero, low_one + high_one], axis=3)
    return np.asarray(users[:, 0, 0] - users[:, 1, 0])
