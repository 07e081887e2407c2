"""Entries of the ledger for heavy hitters: what one user reports, from home."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from evolvingdp.audit.empirical.failures import NeverClears
from evolvingdp.audit.exact import reports
from evolvingdp.audit.exact.laws import product, worst_loss
from evolvingdp.audit.ledger.entry import EXACT, Entry
from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters import bitstogram, count_sketch, olh, pem, rappor, tree_hist
from evolvingdp.heavy_hitters.binary_code import BinaryCode
from evolvingdp.heavy_hitters.sketches import local_rnd, projective
from evolvingdp.heavy_hitters.sketches.geometry import Geometry
from evolvingdp.heavy_hitters.word_tree import WordTree

_KEYS = np.arange(6, dtype=np.uint64)
_TREE = WordTree((1, 1), length=2)
_EPSILON, _TOO_MUCH = 1.0, 1.1
_LESS = "10 % too small an epsilon in the noise"


def entries() -> Iterator[Entry]:
    yield from _reports()
    yield from _local_hashing()
    yield from _projective()
    yield from _rappor()


def _hashes(rows: int = 1, width: int = 4) -> MultiplyShift:
    return MultiplyShift.draw(rows, width, stream(0, "hashes"))


def _reports() -> Iterator[Entry]:
    def heavy(id: str, name: str, covers: tuple[Any, ...], measure: Any, mutant: str, broken: Any) -> Entry:
        return Entry(
            id, "heavy_hitters", name, covers, "all reports of a user", "any two words", EXACT, _EPSILON,
            measure, mutant, broken,
        )  # fmt: skip

    def oracle(epsilon: float) -> count_sketch.FreqOracle:
        return count_sketch.FreqOracle(_hashes(2), epsilon)

    def twice() -> float:
        one = oracle(_EPSILON)
        return max(
            worst_loss(reports.transcript_law([(one, key, 1), (one, key, slot)]) for key in _KEYS) for slot in range(8)
        )

    yield heavy(
        "freq_oracle", "LocalRnd, FreqOracle", (local_rnd.LocalRnd, count_sketch.FreqOracle),
        lambda: reports.reports_loss((oracle(_EPSILON), _KEYS)), "a user reports twice", twice,
    )  # fmt: skip
    yield heavy(
        "freq_oracle_uncompressed", "FreqOracle, uncompressed", (count_sketch.FreqOracle,),
        lambda: worst_loss(reports.uncompressed_laws(oracle(_EPSILON).client, _KEYS)),
        _LESS, lambda: worst_loss(reports.uncompressed_laws(oracle(_TOO_MUCH).client, _KEYS)),
    )  # fmt: skip

    def hashtogram(epsilon: float) -> float:
        return reports.reports_loss((bitstogram.hashtogram(2, 4, epsilon, stream(0, "hashes")), _KEYS))

    yield heavy(
        "hashtogram", "Hashtogram", (bitstogram.hashtogram, bitstogram.Unsigned), lambda: hashtogram(_EPSILON),
        _LESS, lambda: hashtogram(_TOO_MUCH),
    )  # fmt: skip

    def tree(plan: str, epsilon: float) -> float:
        settings = tree_hist.TreeHist(_TREE, epsilon, 10.0, rows=1, width=4, plan=plan)
        return reports.tree_hist_loss(settings.draw_hashes(stream(0, "hashes")), _TREE.encode(["ab", "ac", "zb", "mn"]))

    for plan in tree_hist.PLANS:
        two = plan == "two_reports"
        yield heavy(
            f"tree_hist_{plan}", f"TreeHist, plan {plan}", (tree_hist.TreeHist, tree_hist.Protocol),
            partial(tree, plan, _EPSILON), "each report has the whole epsilon" if two else _LESS,
            partial(tree, plan, 2 * _EPSILON if two else _TOO_MUCH),
        )  # fmt: skip

    def bits(plan: str, epsilon: float) -> float:
        code = BinaryCode(5, 5)
        settings = bitstogram.Bitstogram(epsilon, 10.0, length=1, code=code, buckets=2, plan=plan, rows=1, width=2)
        return reports.bitstogram_loss(settings.draw_hashes(stream(0, "hashes")), settings.encode(np.array(["a", "b", "p"])))

    for plan in bitstogram.PLANS:
        two = plan == "two_reports"
        yield heavy(
            f"bitstogram_{plan}", f"Bitstogram, plan {plan}",
            (bitstogram.Bitstogram, bitstogram.BitstogramProtocol, bitstogram.CodeHashes),
            partial(bits, plan, _EPSILON), "each report has the whole epsilon" if two else _LESS,
            partial(bits, plan, 2 * _EPSILON if two else _TOO_MUCH),
        )  # fmt: skip


def _local_hashing() -> Iterator[Entry]:
    def loss(oracle: olh.OLH) -> float:
        return worst_loss([oracle.probabilities(hashed) for hashed in range(oracle.hash_values)])

    for id, name, make, covers in (
        ("olh", "OLH", olh.OLH, (olh.OLH,)),
        ("explicit_hist", "ExplicitHist", olh.explicit_hist, (olh.explicit_hist,)),
    ):
        yield Entry(
            id, "heavy_hitters", name, covers, "a report", "any two words", EXACT, _EPSILON,
            partial(loss, make(_EPSILON)), _LESS, partial(loss, make(_TOO_MUCH)),
        )  # fmt: skip

    method = pem.PEM(_TREE, _EPSILON, 10.0, shares=(0.5, 0.5))
    leaves = _TREE.encode(["ab", "ac", "zb", "mn"])

    def at(level: int, seed: int) -> list[dict[int, float]]:
        hashed = method.oracle._hash(np.full(len(leaves), seed, dtype=np.uint64), _TREE.prefixes(leaves, level))
        return [method.oracle.probabilities(int(value)) for value in hashed]

    def everywhere(seed: int) -> float:
        return worst_loss([product(laws) for laws in zip(at(0, seed), at(1, seed), strict=True)])

    yield Entry(
        "pem", "heavy_hitters", "PEM", (pem.PEM,), "all reports of a user", "any two words", EXACT, _EPSILON,
        lambda: max(worst_loss(at(level, seed)) for level in (0, 1) for seed in range(20)),
        "a user reports at every level", lambda: max(everywhere(seed) for seed in range(20)),
    )  # fmt: skip


def _projective() -> Iterator[Entry]:
    """All vectors of a small space, through the hash functions that users have."""

    class Hushed(projective.ProjectiveOracle):
        @property
        def lie(self) -> float:
            return 0.95 * super().lie

    def loss(kind: type[projective.ProjectiveOracle]) -> float:
        return worst_loss(reports.projective_laws(kind.draw(1, 2, _EPSILON, stream(0, "hashes")), Geometry(3, 2)))

    yield Entry(
        "projective", "heavy_hitters", "Projective-geometry response", (projective.ProjectiveOracle,), "a report",
        "any two words", EXACT, _EPSILON, partial(loss, projective.ProjectiveOracle), "a twentieth of the lies is not told",
        partial(loss, Hushed),
    )  # fmt: skip


def _rappor() -> Iterator[Entry]:
    settings, filters = rappor.Rappor(n_bits=4), (1, 2, 4, 8)

    def entry(id: str, name: str, unit: str, promised: float, measure: Any, mutant: str, broken: Any) -> Entry:
        covers = (rappor.Rappor, rappor.RapporProtocol)
        return Entry(id, "heavy_hitters", name, covers, unit, "any two words", EXACT, promised, measure, mutant, broken)

    def loss(of: rappor.Rappor, n_reports: int) -> float:
        return worst_loss(reports.rappor_laws(of, filters, n_reports))

    yield entry(
        "rappor_report", "RAPPOR, one report", "a report", settings.epsilon_of_reports(1), lambda: loss(settings, 1),
        "a true bit is never cleared", lambda: loss(NeverClears(n_bits=4), 1),
    )  # fmt: skip
    yield entry(
        "rappor_permanent", "RAPPOR, any number of reports of one word", "all reports of one word",
        settings.epsilon_permanent, lambda: max(loss(settings, 2), settings.epsilon_of_reports(200)),
        "the permanent response is redrawn", lambda: 3 * loss(settings, 1),
    )  # fmt: skip
    yield entry(
        "rappor_one_shot", "RAPPOR without permanent response", "a report", _EPSILON,
        lambda: loss(rappor.Rappor.one_shot(_EPSILON, n_bits=4), 1),
        _LESS, lambda: loss(rappor.Rappor.one_shot(_TOO_MUCH, n_bits=4), 1),
    )  # fmt: skip
