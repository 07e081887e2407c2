"""Laws of projective reports."""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core.geometry import Geometry
from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters.sketches.projective import ProjectiveOracle


def of_points(space: Geometry, epsilon: float) -> ProjectiveOracle:
    """An oracle of one row, whose cells are the points of `space`."""
    hashes = MultiplyShift.draw(1, space.points, stream(0, "hashes"), signed=False, scrambled=True)
    return ProjectiveOracle(hashes, epsilon, space)


def projective_laws(oracle: ProjectiveOracle, space: Geometry | None = None) -> list[dict[Hashable, float]]:
    """Laws of a report of each point, from what is sent for every outcome of the draws.

    `space` in the oracle's place: one that is small enough to enumerate.
    """
    if space is not None:
        oracle = of_points(space, oracle.epsilon)
    space, laws = oracle.space, list[dict[Hashable, float]]()
    hashed = oracle.hashes.cells(np.array(0), np.arange(40 * space.points, dtype=np.uint64)).tolist()
    for point in range(space.points):
        key, law = np.array([hashed.index(point)], dtype=np.uint64), np.zeros(space.points)
        for lies, drawn in itertools.product((False, True), range(space.points * space.size)):
            some = Drawn(0.0 if lies else 1.0, {space.points: drawn // space.size, space.size: drawn % space.size})
            law[oracle.report(key, np.array([0]), some)] += oracle.response.lie if lies else 1 - oracle.response.lie
        laws.append(dict(enumerate((law / space.points / space.size).tolist())))
    return laws


@dataclass(frozen=True)
class Drawn:
    """Private randomness that was chosen: a uniform number, and an integer below each bound."""

    uniform: float
    below: dict[int, int]

    def random(self, size: int) -> NDArray[np.float64]:
        return np.full(size, self.uniform)

    def integers(self, low: int, high: int, size: int) -> NDArray[np.int64]:
        return np.full(size, self.below[high])
