"""LocalRnd and FreqOracle: word frequencies from one private bit a user.

**Computes** an estimate of f(v), the number of users who hold v, for any v asked after the collection.

**Guarantee.** Pure epsilon-local differential privacy per report: `LocalRnd` is one randomized response on one bit that is
a function of the user's word and of public randomness; neighbouring inputs are any two words of one user.  A user who
takes part in two collections pays for both.  With `compression="none"` the report is `width` signs of which only the one
at the user's cell depends on the word, so the guarantee is the same.

**Error.** Each row's estimate is unbiased over hashes, partition and noise, and the median nearly so where n is large beside
the number of rows.  The median has a standard error of about sqrt(pi/2) a sqrt(n), a = coth(epsilon/2), plus what hash
collisions add (`theory.py`).

**Source.** Algorithms 1 and 2 of the paper; lines 1-7 of Algorithm 1 are `LocalRnd.assign` and `LocalRnd.report`, lines 3
and 7-8 of Algorithm 2 are `FreqOracle.row_estimates` and `FreqOracle.estimate`.  Epsilon here is that of one report (line 7
of Algorithm 1 has epsilon/2 because TreeHist asks each user twice).  Applies E-HH-1, E-HH-2 and E-HH-3.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from evolvingdp.core import checks, hadamard
from evolvingdp.core.hashing import HashFamily
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.sampling import fair_binomial, split_evenly
from evolvingdp.heavy_hitters import theory

COMPRESSIONS = ("hadamard", "none")
ESTIMATORS = ("median", "mean", "joint")
_CHUNK = 1 << 16  # users at a time: half-megabyte arrays stay in the cache and are reused, not returned to the system
_SIGNS_AT_ONCE = 1 << 24  # without compression a user sends `width` signs
_CELLS_AT_ONCE = 1 << 16  # of the simulation: arrays that stay in the cache


@dataclass(frozen=True)
class LocalRnd:
    """Algorithm 1, the user's side.  epsilon-DP per report, pure, local."""

    hashes: HashFamily
    epsilon: float  # of one report

    def __post_init__(self) -> None:
        checks.positive(epsilon=self.epsilon)

    @property
    def randomizer(self) -> SignFlip:
        return SignFlip(self.epsilon)

    def assign(self, n_users: int, public: np.random.Generator) -> NDArray[np.int64]:
        """Line 1: a uniform slot = row * width + column (j_i, r_i) per user, (n_users,).  Public."""
        return public.integers(0, self.hashes.rows * self.hashes.width, size=n_users)

    def true_bits(self, keys: NDArray[np.uint64], slots: NDArray[np.int64]) -> NDArray[np.int8]:
        """Lines 2-6: x_i = g_j(v_i) W[r_i, h_j(v_i)], (n,) of +-1.  Secret: never leaves the user's device."""
        rows = slots >> (self.hashes.width.bit_length() - 1)
        columns = slots & (self.hashes.width - 1)
        cells, signs = self.hashes.cells_and_signs(rows, keys)
        return signs * hadamard.signs(columns, cells)

    def report(
        self, keys: NDArray[np.uint64], slots: NDArray[np.int64], private: np.random.Generator
    ) -> NDArray[np.integer]:
        """Lines 2-8: one private bit y_i a user, (n,) of +-1.  Drawn once and then fixed (E-HH-1)."""
        return self.randomizer.randomize(self.true_bits(keys, slots), private)

    def assign_rows(self, n_users: int, public: np.random.Generator) -> NDArray[np.int64]:
        """The row j_i of each user where reports are not compressed, (n_users,).  Public."""
        return public.integers(0, self.hashes.rows, size=n_users)

    def report_all_signs(
        self, keys: NDArray[np.uint64], rows: NDArray[np.int64], private: np.random.Generator
    ) -> NDArray[np.int8]:
        """A report without compression, as we read Section 4: (n, width) signs, all but that of the user's cell uniform."""
        cells, signs = self.hashes.cells_and_signs(rows, keys)
        reports = 1 - 2 * private.integers(0, 2, size=(len(keys), self.hashes.width), dtype=np.int8)
        reports[np.arange(len(keys)), cells] = self.randomizer.randomize(signs, private)
        return reports


@dataclass(frozen=True, eq=False)
class Sketch:
    """What the server holds: the sums of reports, int64 (rows, width), and their number.  Merge with `+`."""

    sums: NDArray[np.int64]
    n_reports: int

    def __add__(self, other: Sketch) -> Sketch:
        if self.sums.shape != other.sums.shape:
            raise ValueError(f"sketches must have one shape to be merged, got {self.sums.shape} and {other.sums.shape}")
        return Sketch(self.sums + other.sums, self.n_reports + other.n_reports)


@dataclass(frozen=True)
class FreqOracle:
    """Algorithm 2: collect reports into a sketch, then estimate the frequency of any word.

    `hashes` are public and shared with the users.  `compression="hadamard"` is the protocol (one bit a user);
    `"none"` is how we read the paper's experiments, which had no Hadamard compression (`width` bits a user, the same law in
    each cell).
    """

    hashes: HashFamily
    epsilon: float  # of one report
    compression: str = "hadamard"

    def __post_init__(self) -> None:
        checks.positive(epsilon=self.epsilon)
        checks.one_of(COMPRESSIONS, compression=self.compression)
        checks.power_of_two(width=self.hashes.width)

    @property
    def client(self) -> LocalRnd:
        return LocalRnd(self.hashes, self.epsilon)

    def empty(self) -> Sketch:
        return Sketch(np.zeros((self.hashes.rows, self.hashes.width), dtype=np.int64), 0)

    def add(self, sketch: Sketch, slots: NDArray[np.int64], reports: NDArray[np.integer]) -> Sketch:
        """`sketch` plus compressed `reports` (n,) of +-1 at `slots` (n,)."""
        sums = np.bincount(slots, weights=reports, minlength=sketch.sums.size)
        return Sketch(sketch.sums + sums.astype(np.int64).reshape(sketch.sums.shape), sketch.n_reports + len(slots))

    def collect(self, keys: NDArray[np.uint64], public: np.random.Generator, private: np.random.Generator) -> Sketch:
        """Per-user path: user i holds keys[i], (n,) uint64.  With compression, chunks do not change the result."""
        if self.compression == "none":
            return self._collect_uncompressed(keys, public, private)
        sums = np.zeros(self.hashes.rows * self.hashes.width)
        for chunk in _chunks(keys, _CHUNK):
            slots = self.client.assign(len(chunk), public)
            reports = self.client.report(chunk, slots, private)
            sums += np.bincount(slots, weights=reports, minlength=len(sums))
        return Sketch(sums.astype(np.int64).reshape(self.hashes.rows, self.hashes.width), len(keys))

    def _collect_uncompressed(
        self, keys: NDArray[np.uint64], public: np.random.Generator, private: np.random.Generator
    ) -> Sketch:
        sums = self.empty().sums
        for chunk in _chunks(keys, max(1, _SIGNS_AT_ONCE // self.hashes.width)):
            rows = self.client.assign_rows(len(chunk), public)
            np.add.at(sums, rows, self.client.report_all_signs(chunk, rows, private))
        return Sketch(sums, len(keys))

    def simulate(
        self, keys: NDArray[np.uint64], counts: NDArray[np.integer], rng: np.random.Generator, *, path: str = "auto"
    ) -> Sketch:
        """A sketch with exactly the law of `collect` when counts[i] users hold keys[i].

        `path="groups"`: the users of each word are dealt to rows, the holders of each (cell, sign) to Hadamard columns bit
        by bit, and the reports of each (column, sign) are summed by binomials; the cost does not depend on their number.
        `path="users"`: one report after another.  `"auto"` takes the cheaper of the two.  A simulation, not a run of the
        protocol: one generator serves as public and as private randomness.
        """
        checks.counts(counts=counts)
        checks.one_of(("auto", "groups", "users"), path=path)
        if len(keys) != len(counts):
            raise ValueError(f"counts must have one entry per key, got {len(counts)} for {len(keys)} keys")
        groups = self.hashes.rows * self.hashes.width * self.hashes.width.bit_length()
        few_users = self.compression == "hadamard" and np.sum(counts) < groups
        if path == "users" or (path == "auto" and few_users):
            return self.collect(np.repeat(keys, counts), rng, rng)
        return self._simulate_groups(keys, counts, rng)

    def _simulate_groups(self, keys: NDArray[np.uint64], counts: NDArray[np.integer], rng: np.random.Generator) -> Sketch:
        users = split_evenly(counts, self.hashes.rows, rng)
        sums = np.empty((self.hashes.rows, self.hashes.width), dtype=np.int64)
        for rows in np.array_split(np.arange(self.hashes.rows), math.ceil(self.hashes.rows / self._rows_at_once)):
            plus, minus = self._holders(rows, keys, users[:, rows])
            if self.compression == "hadamard":
                plus, minus = _spread_over_columns(plus, minus, rng)
                sums[rows] = self.client.randomizer.sum_given_counts(plus, minus, rng)
            else:
                own = plus + minus
                others = own.sum(axis=1, keepdims=True) - own
                fair_sum = 2 * fair_binomial(others, rng) - others
                sums[rows] = self.client.randomizer.sum_given_counts(plus, minus, rng) + fair_sum
        return Sketch(sums, int(np.sum(counts)))

    @property
    def _rows_at_once(self) -> int:
        return max(1, _CELLS_AT_ONCE // self.hashes.width)

    def _holders(
        self, rows: NDArray[np.int64], keys: NDArray[np.uint64], users: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How many users of each row hold (cell, +1) and (cell, -1): two int64 (rows, width)."""
        cells, signs = self.hashes.cells_and_signs(rows[:, None], keys[None, :])
        size = len(rows) * self.hashes.width
        slots = np.arange(len(rows))[:, None] * self.hashes.width + cells + np.where(signs > 0, 0, size)
        holders = np.bincount(slots.ravel(), weights=users.T.ravel(), minlength=2 * size).astype(np.int64)
        plus, minus = holders.reshape(2, len(rows), self.hashes.width)
        return plus, minus

    def row_estimates(self, sketch: Sketch, keys: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Line 7 for every row and key, float64 (rows, keys): rows * a * sum_i y_i g_j(v) W[r_i, h_j(v)]."""
        return self._read(self.cell_estimates(sketch), keys)

    def estimate(self, sketch: Sketch, keys: NDArray[np.uint64], estimator: str = "median") -> NDArray[np.float64]:
        """The frequencies of `keys`, (keys,), in users.  May be negative or above n: not clipped, so that
        rows stay unbiased.

        `"median"` of the rows (line 8) shrugs off collisions; the `"mean"` has less noise and takes them all; `"joint"` is
        the least-squares fit of all `keys` at once, a mean without the collisions among the keys asked for (keys that
        collide in every row cannot be told apart: they share their sum).  Raises ValueError for more keys than cells.
        """
        checks.one_of(ESTIMATORS, estimator=estimator)
        combine = _median_of_rows if estimator == "median" else _mean_of_rows
        table = self.cell_estimates(sketch)
        chunks = _chunks(keys, max(1, (1 << 21) // self.hashes.rows))
        estimates = np.concatenate([combine(self._read(table, chunk)) for chunk in chunks])
        return self._without_collisions(keys, estimates) if estimator == "joint" else estimates

    def _without_collisions(self, keys: NDArray[np.uint64], means: NDArray[np.float64]) -> NDArray[np.float64]:
        """Solve G f = means, where G[u, v] = mean over rows of g(u) g(v) 1{h(u) = h(v)}: E[means] = G f over the noise."""
        if not len(keys):
            return means
        if len(keys) > self.hashes.rows * self.hashes.width:
            raise ValueError(
                f"the joint estimate of {len(keys)} keys does not exist with {self.hashes.rows} rows of "
                f"{self.hashes.width} cells: ask for fewer keys, or widen the sketch"
            )
        rows = np.arange(self.hashes.rows)[:, None]
        cells, signs = self.hashes.cells_and_signs(rows, keys[None, :])
        _, place = np.unique(rows * self.hashes.width + cells, return_inverse=True)
        columns = np.broadcast_to(np.arange(len(keys)), cells.shape)
        design = sparse.csr_array((signs.ravel().astype(float), (place.ravel(), columns.ravel())))
        gram = (design.T @ design) / self.hashes.rows
        solution, failed = sparse.linalg.cg(gram, means, x0=means, rtol=1e-9)
        if failed:  # pragma: no cover - the system is consistent by construction
            raise RuntimeError(f"the joint estimate of {len(keys)} keys did not converge in {failed} iterations")
        return np.asarray(solution)

    def standard_error(self, n_reports: int, estimator: str = "median") -> float:
        """Standard error of `estimate`, in users, from the known noise alone (hash collisions: `theory.median_error`)."""
        checks.one_of(ESTIMATORS, estimator=estimator)
        if estimator == "median":
            return theory.noise_standard_error(n_reports, self.epsilon, self.hashes.rows)
        return theory.mean_standard_error(n_reports, self.epsilon)

    def cell_estimates(self, sketch: Sketch) -> NDArray[np.float64]:
        """For every row and cell, the signed number of users hashed there, float64 (rows, width), in users of all rows."""
        sums = hadamard.transform(sketch.sums) if self.compression == "hadamard" else sketch.sums
        return np.asarray(sums, dtype=np.float64) * (self.hashes.rows * self.client.randomizer.debias)

    def _read(self, table: NDArray[np.float64], keys: NDArray[np.uint64]) -> NDArray[np.float64]:
        rows = np.arange(self.hashes.rows)[:, None]
        cells, signs = self.hashes.cells_and_signs(rows, keys[None, :])
        estimates: NDArray[np.float64] = table[rows, cells] * signs
        return estimates


def _chunks(keys: NDArray[np.uint64], size: int) -> Iterator[NDArray[np.uint64]]:
    for first in range(0, max(len(keys), 1), size):
        yield keys[first : first + size]


def _median_of_rows(estimates: NDArray[np.float64]) -> NDArray[np.float64]:
    """np.median over axis 0; numpy sorts short rows several times faster than it selects from them."""
    ordered = np.sort(np.ascontiguousarray(estimates.T), axis=1)
    middle = ordered.shape[1] // 2
    if ordered.shape[1] % 2:
        return ordered[:, middle]
    return np.asarray((ordered[:, middle - 1] + ordered[:, middle]) / 2)


def _mean_of_rows(estimates: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(estimates.mean(axis=0))


def _spread_over_columns(
    plus: NDArray[np.int64], minus: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give each holder of (cell c, sign s) a uniform column r: the counts of true bits s W[r, c] = +1 and -1 per r.

    Bit k of r is drawn for whole groups at once: half of a group, in law, takes r_k = 0 and keeps its sign; the rest
    takes r_k = 1 and its sign turns where c_k = 1.  Bit k of c is then forgotten, so there are never more than
    2 * width groups a row and the cost is log2(width) fair binomials per group, whatever the number of users.
    """
    n_rows, width = plus.shape
    users = np.stack([plus, minus], axis=1)[..., None]  # (rows, sign, bits of c still to read, bits of r drawn)
    while users.shape[2] > 1:
        zero = fair_binomial(users, rng)
        one = users - zero
        low_zero, high_zero = zero[:, :, 0::2], zero[:, :, 1::2]
        low_one, high_one = one[:, :, 0::2], one[:, ::-1, 1::2]
        users = np.concatenate([low_zero + high_zero, low_one + high_one], axis=3)
    spread = users.reshape(n_rows, 2, width)
    return spread[:, 0], spread[:, 1]
