"""Laws of reports: projective ones, and public hash functions that tell what is held apart."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.olh import OLH
from evolvingdp.core.reports import Hashed, Report
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters.sketches.geometry import Geometry
from evolvingdp.heavy_hitters.sketches.projective import PointHashes, ProjectiveOracle


@dataclass(frozen=True)
class Known:
    """Public randomness that was chosen: every hash function is that of `seed`, every uniform number is `uniform`."""

    seed: int
    uniform: float = 0.0

    def integers(self, low: int, high: int, size: int, dtype: Any) -> NDArray[Any]:
        return np.full(size, self.seed, dtype=dtype)

    def random(self, size: int) -> NDArray[np.float64]:
        return np.full(size, self.uniform)


def telling(oracle: OLH, *asked: Any) -> Known:
    """The first of random hash functions under which the keys of each of `asked` differ: where they do not, a report tells
    less of them, so that the worst loss is the one under such a function. Raises LookupError where 4,096 are none."""
    for drawn in stream(0, "telling").integers(0, 2**64, size=1 << 12, dtype=np.uint64):
        hashed = [oracle._hash(drawn, np.asarray(keys, dtype=np.uint64)) for keys in asked]
        if all(len(np.unique(values)) == len(np.unique(keys)) for values, keys in zip(hashed, asked, strict=True)):
            return Known(int(drawn))
    raise LookupError(f"{oracle} must have a hash function that tells the keys apart")


def told(report: Report) -> Any:
    """Public randomness for one user's `report`: a hash function that tells all values apart, one that was chosen; rows of
    signs are followed like any draw, and None stands for them."""
    return telling(report.oracle, np.arange(report.n_values)) if isinstance(report, Hashed) else None


def projective_laws(oracle: ProjectiveOracle, space: Geometry | None = None) -> list[dict[Hashable, float]]:
    """Laws of a report of each point, from what is sent for every uniform vector by those who lie and those who do not.

    `space` in the oracle's place: one that is small enough to enumerate.
    """
    if space is not None:
        oracle = type(oracle)(PointHashes(MultiplyShift.draw(1, 2**32, stream(0, "hashes")), space), oracle.epsilon)
    vectors, size = np.arange(oracle.space.vectors), oracle.space.points + 1
    laws: list[dict[Hashable, float]] = []
    for point in range(oracle.space.points):
        own = np.full(len(vectors), point)
        lying, honest = (
            np.bincount(oracle.sent(own, vectors, np.full(len(vectors), lies)), minlength=size) / len(vectors)
            for lies in (True, False)
        )
        laws.append(dict(enumerate((oracle.lie * lying + (1 - oracle.lie) * honest).tolist())))
    return laws
