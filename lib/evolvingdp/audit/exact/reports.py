"""Laws of what users send in local reports: heavy hitters, through `collect`, and RAPPOR's in closed form."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.audit.exact.draws import loss_of
from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.olh import OLH
from evolvingdp.core.reports import Hashed, Report
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters.pem import PEM
from evolvingdp.heavy_hitters.rappor import Rappor
from evolvingdp.heavy_hitters.sketches.geometry import Geometry
from evolvingdp.heavy_hitters.sketches.projective import PointHashes, ProjectiveOracle


def collected_loss(make: Callable[[int], Any], keys: Any, seeds: Iterable[int] = range(12)) -> float:
    """The worst `loss_to` of `make(seed).collect`, over the public randomness of these seeds."""
    return max(loss_to(make(seed).collect, keys, lambda seed=seed: stream(seed, "public")) for seed in seeds)  # type: ignore[misc]


def loss_to(collect: Callable[..., Any], keys: Any, public: Callable[[], Any]) -> float:
    """The loss of all that two users send to `collect`, with the same public randomness each time.

    The first holds any of `keys`, the second the last of them: noise that the two share would give the first away.
    """
    return loss_of(lambda key, private: collect(np.array([key, keys[-1]], dtype=np.uint64), public(), private), keys)


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


def report_loss(report: Report) -> float:
    """The loss of what two users add up to, the second of whom holds the last value."""
    values, public = range(report.n_values), told(report)

    def sent(value: int, rng: Any) -> Hashable:
        return tuple(report.collect(np.array([value, report.n_values - 1]), public or rng, rng).tolist())

    return loss_of(sent, values)


def hashed_loss(oracle: OLH, keys: NDArray[Any]) -> float:
    """Of a report by local hashing, of as many of `keys` as there are hash values."""
    few = keys[: oracle.hash_values]
    known = telling(oracle, few)
    return loss_to(oracle.report, few, lambda: known)


def extended_loss(settings: PEM, leaves: NDArray[np.uint64]) -> float:
    """Of PEM's two levels, where `leaves` differ at both: each user at one of them, under one hash function."""
    known = telling(settings.oracle, *[settings.tree.prefixes(leaves, level) for level in range(2)])
    either = [partial(replace, known, uniform=at) for at in (0.25, 0.75)]
    return max(loss_to(settings.collect, leaves, public) for public in either)


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
