"""Laws of what users send in local reports: heavy hitters, through `collect`, and RAPPOR's in closed form."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

import numpy as np

from evolvingdp.audit.exact.draws import loss_of
from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters.rappor import Rappor
from evolvingdp.heavy_hitters.sketches.geometry import Geometry
from evolvingdp.heavy_hitters.sketches.projective import PointHashes, ProjectiveOracle


def collected_loss(make: Callable[[int], Any], keys: Any, seeds: Iterable[int] = range(12)) -> float:
    """The worst loss of all that two users send to `make(seed).collect`, over the public randomness of these seeds.

    The first holds any of `keys`, the second the last of them: noise that the two share would give the first away.
    """

    def loss(seed: int) -> float:
        oracle = make(seed)

        def sent(key: Any, private: Any) -> Any:
            return oracle.collect(np.array([key, keys[-1]], dtype=np.uint64), stream(seed, "public"), private)

        return loss_of(sent, keys)

    return max(map(loss, seeds))


def rappor_laws(settings: Rappor, filters: Iterable[int], n_reports: int) -> Iterator[dict[tuple[int, ...], float]]:
    """Laws of all sequences of reports of one word, for each of its possible Bloom `filters`."""
    for held in filters:
        law = {}
        for sent in itertools.product(range(2**settings.n_bits), repeat=n_reports):
            ones = [sum(report >> bit & 1 for report in sent) for bit in range(settings.n_bits)]
            logs = [settings.log_bit_probability(held >> bit & 1, count, n_reports) for bit, count in enumerate(ones)]
            law[sent] = math.exp(math.fsum(logs))
        yield law


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
