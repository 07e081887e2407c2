"""Laws of what one user sends in the protocols of local reports: heavy hitters and RAPPOR.

Public choices (slots, levels, hash functions) are fixed; each function gives a law for each of a few inputs of a user.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.audit.exact.laws import product, worst_loss
from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters.bitstogram import BitstogramProtocol
from evolvingdp.heavy_hitters.count_sketch import FreqOracle
from evolvingdp.heavy_hitters.rappor import Rappor
from evolvingdp.heavy_hitters.sketches.geometry import Geometry
from evolvingdp.heavy_hitters.sketches.local_rnd import LocalRnd
from evolvingdp.heavy_hitters.sketches.projective import PointHashes, ProjectiveOracle
from evolvingdp.heavy_hitters.tree_hist import Protocol

Report = tuple[FreqOracle, Any, int]  # the oracle, the user's key there, and the user's slot


def transcript_law(reports: Iterable[Report]) -> dict[tuple[Hashable, ...], float]:
    """The law of all bits that a user sends, one to each (oracle, key, slot)."""
    bits = (
        oracle.client.randomizer.probabilities(int(oracle.client.true_bits(np.array([key]), np.array([slot]))[0]))
        for oracle, key, slot in reports
    )
    return product(bits)


def reports_loss(*phases: tuple[FreqOracle, NDArray[np.uint64]]) -> float:
    """Of a compressed report to each oracle together, over all slots and all pairs of users: phases have a key for each."""
    slots = itertools.product(*(range(oracle.hashes.rows * oracle.hashes.width) for oracle, _ in phases))
    users = range(len(phases[0][1]))
    return max(
        worst_loss(
            transcript_law((oracle, keys[user], slot) for (oracle, keys), slot in zip(phases, own, strict=True))
            for user in users
        )
        for own in slots
    )


def uncompressed_laws(client: LocalRnd, keys: NDArray[np.uint64], row: int = 0) -> list[dict[Any, float]]:
    """Laws of a report of `width` signs, of which all but that of the user's cell are fair coins."""
    cells, signs = client.hashes.cells_and_signs(np.full(len(keys), row), keys)
    width = client.hashes.width
    laws = []
    for cell, sign in zip(cells.tolist(), signs.tolist(), strict=True):
        own = client.randomizer.probabilities(sign)
        outputs = itertools.product((-1, 1), repeat=width)
        laws.append({report: own[report[cell]] / 2 ** (width - 1) for report in outputs})
    return laws


def tree_hist_loss(protocol: Protocol, leaves: NDArray[np.uint64]) -> float:
    """All of a user's reports together, for every level that it may be given and every slot."""
    settings, oracles = protocol.settings, protocol.oracles
    again = [(oracles[-1], leaves)] if settings.plan == "two_reports" else []
    levels = range(settings.tree.depth)
    return max(reports_loss((oracles[level], settings.tree.prefixes(leaves, level)), *again) for level in levels)


def bitstogram_loss(protocol: BitstogramProtocol, messages: NDArray[np.uint64]) -> float:
    """All of a user's reports together, for every group, column and final slot that it may be given."""
    phases = (protocol.bits, messages), (protocol.final, messages)
    return reports_loss(*phases) if protocol.settings.plan == "two_reports" else max(map(reports_loss, phases))


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
