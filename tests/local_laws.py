"""Laws of projective reports."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters.sketches.geometry import Geometry
from evolvingdp.heavy_hitters.sketches.projective import PointHashes, ProjectiveOracle


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
