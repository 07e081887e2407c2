"""FreqOracle: word frequencies from one private bit a user.

**Computes** an estimate of f(v), the number of users who hold v, for any v asked after the collection.

**Guarantee.** Pure epsilon-local differential privacy per report, that of `local_rnd`; neighbouring inputs are any two words
of one user.  A user who takes part in two collections pays for both.

**Error.** Each row's estimate is unbiased over hashes, partition and noise, and the median nearly so where n is large beside
the number of rows.  The median has a standard error of about sqrt(pi/2) a sqrt(n), a = coth(epsilon/2), plus what hash
collisions add (`theory.py`).

**Source.** Algorithm 2 of Bassily et al. (2020): lines 3 and 7-8 are `row_estimates` and `estimate`.  Applies E-HH-2 and
E-HH-3.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks, hadamard
from evolvingdp.core.hashing import HashFamily, scramble
from evolvingdp.core.sampling import blocks
from evolvingdp.heavy_hitters import theory
from evolvingdp.heavy_hitters.sketches import simulation
from evolvingdp.heavy_hitters.sketches.joint_fit import JointFit
from evolvingdp.heavy_hitters.sketches.local_rnd import LocalRnd

ESTIMATORS = ("median", "mean", "joint")
_CHUNK = 1 << 18  # users at a time: their sum costs a pass over the sketch
_READ_AT_ONCE = 1 << 16  # cells: arrays that stay in the cache
_KEYS_AT_ONCE = 1 << 13  # of an estimate
_CERTAIN = 4.0  # standard errors
_SMALLEST = 1e-9  # of epsilons: coins of 53 bits keep estimates unbiased to a millionth
_PROBES = scramble(np.arange(64, dtype=np.uint64))  # keys that tell hash families apart


@dataclass(frozen=True, eq=False)
class Sketch:
    """What the server holds: the sums of reports, int64 (rows, width), and their number.  Merge with `+`.

    `oracle` is the fingerprint of the `FreqOracle` that the reports were made for: only sketches of one oracle are merged,
    and only that oracle reads them.  Empty for a sketch that was made by hand, which fits every oracle of its shape.
    """

    sums: NDArray[np.int64]
    n_reports: int
    oracle: str = ""

    @cached_property
    def transformed(self) -> NDArray[Any]:
        """The signed reports of every row and cell, (rows, width): exact integers."""
        return hadamard.transform(self.sums)

    def __add__(self, other: Sketch) -> Sketch:
        if self.sums.shape != other.sums.shape:
            raise ValueError(f"sketches must have one shape to be merged, got {self.sums.shape} and {other.sums.shape}")
        if self.oracle and other.oracle and self.oracle != other.oracle:
            raise ValueError(f"sketches must be of one oracle to be merged, got one of {self.oracle}, one of {other.oracle}")
        oracle = self.oracle or other.oracle
        return replace(self, sums=self.sums + other.sums, n_reports=self.n_reports + other.n_reports, oracle=oracle)


@checks.plain
@dataclass(frozen=True)
class FreqOracle:
    """Algorithm 2: collect reports into a sketch, then estimate the frequency of any word.

    `hashes` are public and shared with the users.
    """

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
    def client(self) -> LocalRnd:
        """What users run."""
        return LocalRnd(self.hashes, self.epsilon)

    @cached_property
    def fingerprint(self) -> str:
        """What two parties must share to read each other's sketches: the kind of reports, the hash functions, by 64 of their
        values in each row, and epsilon."""
        values = self.hashes.cells_and_signs(np.arange(self.hashes.rows)[:, None], _PROBES[None, :])
        digest = hashlib.sha256(b"".join(np.asarray(part, dtype="<i8").tobytes() for part in values)).hexdigest()
        return f"{type(self).__name__}, hashes {digest[:12]}, epsilon {float(self.epsilon)!r}"

    def check(self, sketch: Sketch) -> None:
        """Raise ValueError unless `sketch` holds reports made for this oracle (by hand: has its shape)."""
        if sketch.sums.shape != self.shape:
            raise ValueError(f"sketch must have the oracle's shape {self.shape} (rows, width), got {sketch.sums.shape}")
        if sketch.oracle and sketch.oracle != self.fingerprint:
            raise ValueError(f"sketch must hold reports made for {self.fingerprint}, got one of {sketch.oracle}")

    def empty(self) -> Sketch:
        """A sketch of no reports."""
        return self._sketch(np.zeros(self.shape, dtype=np.int64), 0)

    @property
    def shape(self) -> tuple[int, int]:
        """That of a sketch's sums."""
        return self.hashes.rows, self.hashes.width

    def _sketch(self, sums: NDArray[np.int64], n_reports: int) -> Sketch:
        return Sketch(sums, n_reports, self.fingerprint)

    def add(self, sketch: Sketch, slots: NDArray[np.int64], reports: NDArray[np.integer]) -> Sketch:
        """`sketch` plus compressed `reports` (n,) of +-1 at `slots` (n,)."""
        self.check(sketch)
        slots = checks.integer_array("slots", slots, below=sketch.sums.size)
        wrong = np.abs(np.asarray(reports, dtype=float)) != 1
        if wrong.shape != slots.shape:
            raise ValueError(f"reports must have one entry per slot, got {wrong.shape} for {slots.shape}")
        if wrong.any():
            raise ValueError(f"reports must be +1 or -1, got {reports[wrong.argmax()]} at position {wrong.argmax()}")
        sums = np.bincount(slots, weights=reports, minlength=sketch.sums.size)
        return self._sketch(sketch.sums + sums.astype(np.int64).reshape(sketch.sums.shape), sketch.n_reports + len(slots))

    def collect(self, keys: NDArray[np.uint64], public: np.random.Generator, private: np.random.Generator) -> Sketch:
        """Per-user path: user i holds keys[i], (n,) uint64.  Chunks do not change the result."""
        keys = checks.keys(keys)
        sums = np.zeros(self.hashes.rows * self.hashes.width)
        for some in _chunks(keys, _CHUNK):
            slots = self.client.assign(len(some), public)
            sums += np.bincount(slots, weights=self.client.report(some, slots, private), minlength=len(sums))
        return self._sketch(sums.astype(np.int64).reshape(self.shape), len(keys))

    def simulate(self, keys: NDArray[np.uint64], counts: NDArray[np.integer], rng: np.random.Generator) -> Sketch:
        """A sketch with exactly the law of `collect` when counts[i] users hold keys[i], whose number does not matter; one
        generator is public and private randomness."""
        keys = checks.keys(keys)
        counts = checks.counts_of_keys(counts, keys)
        return self._sketch(simulation.one_bit(self.hashes, self.client.randomizer, keys, counts, rng), int(np.sum(counts)))

    def row_estimates(self, sketch: Sketch, keys: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Line 7 for every row and key, float64 (rows, keys): rows * a * sum_i y_i g_j(v) W[r_i, h_j(v)]."""
        return np.asarray(self.users_of_a_report * self._read(self._cell_sums(sketch), checks.keys(keys)).astype(np.float64))

    def estimate(self, sketch: Sketch, keys: NDArray[np.uint64], estimator: str = "median") -> NDArray[np.float64]:
        """The frequencies of `keys`, (keys,), in users.  May be negative or above n: not clipped, so that
        rows stay unbiased.

        `"median"` of the rows (line 8) shrugs off collisions; the `"mean"` has less noise and takes them all; `"joint"` is
        the least-squares fit of all `keys` at once, a mean without the collisions among the keys asked for (keys that
        collide in every row cannot be told apart: they share their sum).  Raises ValueError for more keys than cells.
        """
        checks.one_of(ESTIMATORS, estimator=estimator)
        keys = checks.keys(keys)
        estimates = self._combined(self._cell_sums(sketch), keys, estimator)
        return self.joint_fit(keys).solve(estimates) if estimator == "joint" and len(keys) else estimates

    def reaching(
        self, sketch: Sketch, keys: NDArray[np.uint64], cut: float, estimator: str
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Which of `keys` have an `estimate` ("median" or "mean") of at least `cut`, by position, and these estimates.  Of
        many keys, those that come within four standard errors of the cut in the first quarter of the rows."""
        near, some = np.arange(len(keys)), self.hashes.rows // 4
        if some and len(keys) > self.hashes.width:
            apart = math.sqrt(self.hashes.rows / some - 1) * self.standard_error(max(1, sketch.n_reports), estimator)
            first = self._combined(self._cell_sums(sketch)[:some], keys, estimator)
            near = np.flatnonzero(first >= cut - _CERTAIN * apart)
        estimates = self.estimate(sketch, keys[near], estimator)
        return near[estimates >= cut], estimates[estimates >= cut]

    def _combined(self, sums: NDArray[np.number], keys: NDArray[np.uint64], estimator: str) -> NDArray[np.float64]:
        """The median or the mean of what the rows of `sums` say of `keys`, (keys,), in users."""
        found = []
        for some in _chunks(keys, _KEYS_AT_ONCE):
            read = self._read(sums, some)
            found.append(_median(read) if estimator == "median" else read.mean(axis=0, dtype=np.float64))
        return np.asarray(self.users_of_a_report * np.concatenate(found))

    def standard_error(self, n_reports: int, estimator: str = "median") -> float:
        """Standard error of `estimate`, in users, from the known noise alone: without hash collisions (`theory.median_error`
        has the median's), and for "joint" where keys are few beside cells (`standard_errors` has both)."""
        checks.one_of(ESTIMATORS, estimator=estimator)
        if estimator == "median":
            return theory.noise_standard_error(n_reports, self.epsilon, self.hashes.rows)
        return theory.mean_standard_error(n_reports, self.epsilon)

    def standard_errors(self, sketch: Sketch, keys: NDArray[np.uint64], estimator: str) -> NDArray[np.float64]:
        """Standard errors of the estimates of `keys`, (keys,), in users; those of "mean" and "joint" with collisions.

        A cell's mean square, of what a fit leaves, over the rows is the variance of a mean, times the diagonal of the fit's
        inverse.  Right on average over hash functions; never below the known noise.
        """
        keys = checks.keys(keys)
        known = self.standard_error(max(1, sketch.n_reports), estimator)
        if estimator == "median" or not len(keys):
            return np.full(len(keys), known)
        cells, spread, freedom = self.cell_estimates(sketch), np.ones(len(keys)), self.hashes.rows * self.hashes.width
        if estimator == "joint":
            fit = self.joint_fit(keys)
            cells, spread = cells - fit.cells_of(fit.solve(self.estimate(sketch, keys, "mean"))), fit.spread()
            freedom = max(1, freedom - len(keys))
        variance = max(known**2, float(np.sum(np.square(cells))) / freedom / self.hashes.rows)
        return np.asarray(np.sqrt(variance * spread))

    def cell_estimates(self, sketch: Sketch) -> NDArray[np.float64]:
        """For every row and cell, the signed number of users hashed there, float64 (rows, width), in users of all rows."""
        return np.asarray(self.users_of_a_report * self._cell_sums(sketch).astype(np.float64))

    @property
    def users_of_a_report(self) -> float:
        """How many users of all rows a report in one row stands for: rows * a."""
        return self.hashes.rows * self.client.randomizer.debias

    def joint_fit(self, keys: NDArray[np.uint64]) -> JointFit:
        """What all `keys` together put into the cells."""
        cells, signs = self.hashes.cells_and_signs(np.arange(self.hashes.rows)[:, None], keys[None, :])
        return JointFit.of(cells, signs, self.hashes.width)

    def _cell_sums(self, sketch: Sketch) -> NDArray[np.number]:
        """The signed reports of every row and cell, (rows, width), exact integers."""
        self.check(sketch)
        return sketch.transformed

    def _read(self, sums: NDArray[np.number], keys: NDArray[np.uint64]) -> NDArray[np.number]:
        """g_j(v) times the sum of cell h_j(v), for every row of `sums` and key: (rows, keys)."""
        read = np.empty((len(sums), len(keys)), dtype=sums.dtype)
        for rows in blocks(len(sums), max(1, _READ_AT_ONCE // max(1, len(keys)))):
            cells, signs = self.hashes.cells_and_signs(rows[:, None], keys[None, :])
            cells += rows[:, None] * self.hashes.width
            np.multiply(sums.ravel().take(cells), signs, out=read[rows[0] : rows[-1] + 1])
        return read


def _chunks(keys: NDArray[np.uint64], size: int) -> Iterator[NDArray[np.uint64]]:
    for first in range(0, max(len(keys), 1), size):
        yield keys[first : first + size]


def _median(read: NDArray[np.number]) -> NDArray[np.float64]:
    """np.median over axis 0; numpy sorts short rows several times faster than it selects from them, if they lie together."""
    in_order = np.array(read.T, order="C")
    in_order.sort()
    middle = len(read) // 2
    return np.asarray(in_order[:, middle - 1 + len(read) % 2 : middle + 1].mean(axis=1, dtype=np.float64))
