"""Projective-geometry response inside a count sketch: OLH's error from a server that reads a sketch.

**Computes** an estimate of how many users hold any word asked about after the collection.  A public hash function of a
public row sends the word to a point; the user sends one of the reports that support this point, or, so often as privacy
asks, any report.  The server counts them, and one fast transform a row tells how many support each point: asking for a word
is then a look-up a row, where OLH asks every report.  In two dimensions it is randomized response on the points.

**Guarantee.** Pure epsilon-local differential privacy per report: each has one of two probabilities whose ratio is
e^epsilon.  Neighbouring inputs are any two words of one user.

**Error.** For a rare word sqrt(n c (1 - c)) / (keep - c), with c the share of the reports that support a point, and keep the
probability of one that supports the own; how users are dealt to rows is in it, how words collide is not (pairwise; hash
values are uniform to 2^-15).  It is that of OLH with 1/c hash values, about e^epsilon + 1.

**Source.** Feldman, Nelson, Nguyen and Talwar, Private frequency estimation via projective geometry (2022); the rows and
hash functions are Algorithm 2's of Bassily et al. (2020), without signs: estimates are centred by what all words together
add to a cell, since n reports support a point c n times on average.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks
from evolvingdp.core.geometry import Geometry, geometry
from evolvingdp.core.hashing import MultiplyShift, scramble
from evolvingdp.core.reports import Projective
from evolvingdp.core.sampling import blocks, split_evenly
from evolvingdp.heavy_hitters import theory
from evolvingdp.heavy_hitters.count_sketch import ESTIMATORS, FreqOracle, Sketch
from evolvingdp.heavy_hitters.sketches.joint_fit import JointFit

_CHUNK = 1 << 15  # users at a time
_HASH_BITS = np.int64(32)


class PointReport(Projective):
    """Of words that are hashed to all points of a space: users at other points are taken to be at uniform ones."""

    @property
    def other(self) -> float:
        return self.space.share


@dataclass(frozen=True)
class PointHashes:
    """Hash functions to the points of a space; all signs are +1."""

    family: MultiplyShift  # 2^32 cells
    space: Geometry

    @property
    def rows(self) -> int:
        return self.family.rows

    @property
    def width(self) -> int:
        return self.space.points

    def cells_and_signs(
        self, rows: NDArray[np.integer], keys: NDArray[np.uint64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
        cells = self.cells(rows, keys)
        return cells, np.ones(cells.shape, dtype=np.int8)

    def cells(self, rows: NDArray[np.integer], keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        cells = self.family.cells(rows, scramble(keys))  # keys in progression collide together
        cells *= self.width
        cells >>= _HASH_BITS
        return cells


@dataclass(frozen=True, eq=False)
class PointCounts(Sketch):
    """What the server holds: how often each report came in each row, int64 (rows, points)."""

    space: Geometry = field(default=Geometry(2, 2))

    @cached_property
    def transformed(self) -> NDArray[np.int64]:
        """How many reports of each row support each point, (rows, points)."""
        return np.array([self.space.supporting(row) for row in self.sums])


@dataclass(frozen=True)
class ProjectiveOracle(FreqOracle):
    """A `FreqOracle` whose users report points: `draw` makes one.  Estimators, joint fit and merging are FreqOracle's."""

    @classmethod
    def draw(cls, rows: int, cells: int, epsilon: float, public: np.random.Generator) -> ProjectiveOracle:
        """With `rows` hash functions to about `cells` points (see `geometry`), and epsilon > 0 of one report."""
        checks.positive(epsilon=epsilon)
        checks.integer_at_least(2, cells=cells)
        space = geometry(min(float(epsilon), 36.0), cells)
        return cls(PointHashes(MultiplyShift.draw(rows, 2**32, public), space), epsilon)

    def __post_init__(self) -> None:
        checks.positive(epsilon=self.epsilon)
        if not isinstance(self.hashes, PointHashes):
            raise TypeError(f"hashes must be PointHashes, as draw makes them, got {type(self.hashes).__name__}")
        if self.epsilon > 36:
            raise ValueError(
                f"epsilon must be at most 36, so that random doubles can tell it from infinity, got {self.epsilon!r}"
            )
        _ = self.response

    @property
    def space(self) -> Geometry:
        assert isinstance(self.hashes, PointHashes)
        return self.hashes.space

    @cached_property
    def response(self) -> PointReport:
        """The law of a report."""
        return PointReport(self.space.points, self.epsilon, self.space)

    def _sketch(self, sums: NDArray[np.int64], n_reports: int) -> PointCounts:
        return PointCounts(sums, n_reports, self.fingerprint, self.space)

    def report(self, keys: NDArray[np.uint64], rows: NDArray[np.int64], private: np.random.Generator) -> NDArray[np.integer]:
        """One report a user, (n,), below the number of points.  Drawn once and then fixed."""
        checks.one_each(keys=keys, rows=rows)
        return self.response.report(self.hashes.cells(rows, keys), private)

    def add(self, sketch: Sketch, slots: NDArray[np.int64], reports: NDArray[np.integer]) -> Sketch:
        """`sketch` plus `reports` (n,) of users in the rows `slots` (n,)."""
        self.check(sketch)
        rows = checks.integer_array("slots", slots, below=self.hashes.rows)
        reports = checks.integer_array("reports", reports, below=self.shape[1])
        if len(rows) != len(reports):
            raise ValueError(f"reports must have one entry per slot, got {len(reports)} for {len(rows)}")
        counts = np.bincount(rows * self.shape[1] + reports, minlength=sketch.sums.size).reshape(self.shape)
        return self._sketch(sketch.sums + counts, sketch.n_reports + len(rows))

    def collect(self, keys: NDArray[np.uint64], public: np.random.Generator, private: np.random.Generator) -> Sketch:
        """Per-user path: user i holds keys[i], (n,)."""
        keys, sketch = checks.keys(keys), self.empty()
        sums = sketch.sums.ravel()
        for some in blocks(len(keys), _CHUNK):
            own = keys[some[0] : some[-1] + 1]
            rows = public.integers(0, self.hashes.rows, size=len(own))
            np.add.at(sums, rows * self.shape[1] + self.report(own, rows, private), 1)
        return self._sketch(sums.reshape(self.shape), len(keys))

    def simulate(self, keys: NDArray[np.uint64], counts: NDArray[np.integer], rng: np.random.Generator) -> Sketch:
        """A sketch with exactly the law of `collect` when counts[i] users hold keys[i]."""
        keys, space = checks.keys(keys), self.space
        dealt = split_evenly(checks.counts_of_keys(counts, keys), self.hashes.rows, rng).T
        sums = np.empty(self.shape, dtype=np.int64)
        for row, users in enumerate(dealt):
            held = np.bincount(self.hashes.cells(np.array(row), keys), weights=users, minlength=space.points)
            sums[row] = self.response.draw_reports(held.astype(np.int64), rng)
        return self._sketch(sums, int(np.sum(counts)))

    @property
    def users_of_a_report(self) -> float:
        return self.hashes.rows / self.response.gain

    def _cell_sums(self, sketch: Sketch) -> NDArray[np.float64]:
        """Reports of every row that support every point, less what is expected of users at uniform points."""
        self.check(sketch)
        return np.asarray(sketch.transformed - sketch.sums.sum(axis=1, keepdims=True) * self.space.share)

    def standard_error(self, n_reports: int, estimator: str = "median") -> float:
        """Of a rare word, in users, without collisions; for the median of rows sqrt(pi/2) times that of the mean."""
        checks.one_of(ESTIMATORS, estimator=estimator)
        median_of = self.hashes.rows if estimator == "median" else 1
        return self.response.standard_error(n_reports) * theory.normal_median_deviation(median_of) * math.sqrt(median_of)

    def standard_errors(self, sketch: Sketch, keys: NDArray[np.uint64], estimator: str) -> NDArray[np.float64]:
        """As FreqOracle's; a word's own holders add their own variance."""
        others = super().standard_errors(sketch, keys, estimator)
        held = np.clip(self.estimate(sketch, keys, estimator), 0, sketch.n_reports)
        rare, own = (self.response.standard_errors(sketch.n_reports, count) ** 2 for count in (0 * held, held))
        return np.asarray(np.sqrt(np.maximum(others**2 + own - rare, 0)))

    def joint_fit(self, keys: NDArray[np.uint64]) -> JointFit:
        cells = self.hashes.cells(np.arange(self.hashes.rows)[:, None], keys[None, :])
        return JointFit.of(cells, None, self.hashes.width)
