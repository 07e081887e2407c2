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
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks
from evolvingdp.core.geometry import Geometry, geometry
from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.reports import Projective
from evolvingdp.heavy_hitters import theory
from evolvingdp.heavy_hitters.count_sketch import FreqOracle, Sketch
from evolvingdp.heavy_hitters.sketches.joint_fit import JointFit


class PointReport(Projective):
    """Of words that are hashed to all points of a space: users at other points are taken to be at uniform ones."""

    @property
    def other(self) -> float:
        return self.space.share


@checks.draws
@dataclass(frozen=True)
class ProjectiveOracle(FreqOracle):
    """A `FreqOracle` whose users report points: `draw` makes one.  Means, medians and merging are FreqOracle's."""

    estimators: ClassVar[tuple[str, ...]] = ("median", "mean", "joint")
    space: Geometry  # whose points are the cells of `hashes`

    @classmethod
    def draw(cls, rows: int, cells: int, epsilon: float, public: np.random.Generator) -> ProjectiveOracle:
        """With `rows` hash functions to about `cells` points (see `geometry`), and epsilon > 0 of one report."""
        checks.positive(epsilon=epsilon)
        checks.integer_at_least(2, cells=cells)
        space = geometry(min(float(epsilon), 36.0), cells)
        return cls(MultiplyShift.draw(rows, space.points, public, signed=False, scrambled=True), epsilon, space)

    def __post_init__(self) -> None:
        checks.positive(epsilon=self.epsilon)
        if self.hashes.width != self.space.points:
            raise ValueError(f"hashes must have {self.space.points} cells, the points of space, got {self.hashes.width}")
        if self.epsilon > 36:
            raise ValueError(
                f"epsilon must be at most 36, so that random doubles can tell it from infinity, got {self.epsilon!r}"
            )
        _ = self.response

    @cached_property
    def response(self) -> PointReport:
        """The law of a report."""
        return PointReport(self.space.points, self.epsilon, self.space)

    def assign(self, n_users: int, public: np.random.Generator) -> NDArray[np.int64]:
        """A uniform row per user, (n_users,).  Public."""
        return public.integers(0, self.hashes.rows, size=n_users)

    def report(self, keys: NDArray[np.uint64], rows: NDArray[np.int64], private: np.random.Generator) -> NDArray[np.integer]:
        """One report a user, (n,), below the number of points.  Drawn once and then fixed."""
        checks.one_each(keys=keys, rows=rows)
        return self.response.report(self.hashes.cells(rows, keys), private)

    def _count(self, sums: NDArray[np.int64], slots: NDArray[np.int64], reports: NDArray[np.integer]) -> None:
        rows = checks.integer_array("slots", slots, below=self.hashes.rows)
        np.add.at(sums.ravel(), rows * self.shape[1] + checks.integer_array("reports", reports, below=self.shape[1]), 1)

    def simulate(self, keys: NDArray[np.uint64], counts: NDArray[np.integer], rng: np.random.Generator) -> Sketch:
        """A sketch with exactly the law of `collect` when counts[i] users hold keys[i]."""
        keys = checks.keys(keys)
        held = self.holders(keys, checks.counts_of_keys(counts, keys), rng)[:, 0]
        return Sketch(self, np.array([self.response.draw_reports(row, rng) for row in held]), int(np.sum(counts)))

    @property
    def users_of_a_report(self) -> float:
        return self.hashes.rows / self.response.gain

    def _cells(self, sums: NDArray[np.int64]) -> NDArray[np.float64]:
        """From the reports of every row that support every point, less what is expected of users at uniform points."""
        supporting, others = self.space.supporting(sums), sums.sum(axis=1, keepdims=True) * self.space.share
        return np.asarray(self.users_of_a_report * (supporting - others))

    def estimate(self, sketch: Sketch, keys: NDArray[np.uint64], estimator: str = "median") -> NDArray[np.float64]:
        """As FreqOracle's, and `"joint"`: the least-squares fit of all `keys` at once, a mean without the collisions among
        them (keys that collide in every row share their sum).  Raises ValueError for more keys than cells."""
        if estimator != "joint" or not len(keys):
            return super().estimate(sketch, keys, estimator if len(keys) else "mean")
        return self.joint_fit(checks.keys(keys)).solve(super().estimate(sketch, keys, "mean"))

    def standard_error(self, n_reports: int, estimator: str = "median") -> float:
        """Of a rare word, in users, without collisions; for the median of rows sqrt(pi/2) times that of the mean."""
        checks.one_of(self.estimators, estimator=estimator)
        median_of = self.hashes.rows if estimator == "median" else 1
        return self.response.standard_error(n_reports) * theory.normal_median_deviation(median_of) * math.sqrt(median_of)

    def standard_errors(self, sketch: Sketch, keys: NDArray[np.uint64], estimator: str) -> NDArray[np.float64]:
        """As FreqOracle's; of "joint" with the collisions that the fit leaves, times the diagonal of its inverse.  A word's
        own holders add their own variance."""
        keys, estimates = checks.keys(keys), self.estimate(sketch, keys, estimator)
        others = super().standard_errors(sketch, keys, "mean" if estimator == "joint" else estimator)
        if estimator == "joint" and len(keys):
            fit, known = self.joint_fit(keys), self.standard_error(max(1, sketch.n_reports), estimator)
            left = np.square(self.cell_estimates(sketch) - fit.cells_of(estimates)).sum()
            left /= max(1, self.hashes.rows * self.hashes.width - len(keys)) * self.hashes.rows
            others = np.sqrt(max(known**2, float(left)) * fit.spread())
        held = np.clip(estimates, 0, sketch.n_reports)
        rare, own = (self.response.standard_errors(sketch.n_reports, count) ** 2 for count in (0 * held, held))
        return np.asarray(np.sqrt(np.maximum(others**2 + own - rare, 0)))

    def joint_fit(self, keys: NDArray[np.uint64]) -> JointFit:
        """What all `keys` together put into the cells."""
        return JointFit.of(self.hashes.cells(np.arange(self.hashes.rows)[:, None], keys[None, :]), self.hashes.width)

    def standing_out(
        self, cells: NDArray[np.float64], keys: NDArray[np.uint64], least: float, most: int
    ) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Which of `keys` have `least` > 0 users or more, (keys,), at most so many, and `cells` without them.

        A key that nobody holds and that shares one cell with a word seems to have its part of the word's count.  Where such
        keys are many beside the cells, a fit of all would spread the word's count over them.  So a round takes those with
        half of the largest mean or more, fits all who were taken, and takes the fit out of the cells: the orthogonal
        matching pursuit of Pati, Rezaiifar and Krishnaprasad (1993), many keys a round.
        """
        listed, left = np.zeros(len(keys), dtype=bool), cells
        means = estimates = self.read(cells, keys, "mean")
        while not listed.all():
            others = np.where(listed, -np.inf, estimates)
            new = others >= max(least, others.max() / 2)
            if np.count_nonzero(new) > (room := most - np.count_nonzero(listed)):
                new = np.isin(np.arange(len(keys)), np.argsort(-others, kind="stable")[: max(0, room)])
            if not new.any():
                break
            listed |= new
            fit = self.joint_fit(keys[listed])
            left = cells - fit.cells_of(fit.solve(means[listed]))
            estimates = self.read(left, keys, "mean")
        return listed, left
