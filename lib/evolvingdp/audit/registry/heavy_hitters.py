"""The registry's entries for searches and frequency oracles: one report of each user."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.audit.registry.entry import FINITE, REPORTS, Door, Mechanism, Trial, settled
from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.olh import OLH
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters import bitstogram, rappor
from evolvingdp.heavy_hitters.bitstogram import Bitstogram
from evolvingdp.heavy_hitters.count_sketch import FreqOracle
from evolvingdp.heavy_hitters.olh import explicit_hist
from evolvingdp.heavy_hitters.pem import PEM
from evolvingdp.heavy_hitters.rappor import Rappor
from evolvingdp.heavy_hitters.sketches.local_rnd import LocalRnd
from evolvingdp.heavy_hitters.sketches.projective import ProjectiveOracle
from evolvingdp.heavy_hitters.tree_hist import TreeHist
from evolvingdp.heavy_hitters.word_tree import WordTree

Rng = np.random.Generator
_USER = ("all reports of a user", "any two words")
_SIZE = "public: of hash functions, trees and lists"
_TREE = WordTree((1, 1), length=2)


def mechanisms() -> Iterator[Mechanism]:
    yield Mechanism(
        "freq_oracle",
        "heavy_hitters",
        (FreqOracle, FreqOracle.collect, LocalRnd, LocalRnd.report, LocalRnd.report_all_signs),
        *_USER,
        REPORTS,
        _oracle_trial,
        _oracle_doors,
        (FreqOracle,),
    )
    yield Mechanism(
        "tree_hist",
        "heavy_hitters",
        (TreeHist, _protocol(TreeHist)),
        *_USER,
        REPORTS,
        _tree_trial,
        _tree_doors,
        (TreeHist,),
        {},
        dict.fromkeys(("rows", "width", "max_survivors", "max_candidates"), _SIZE),
    )
    yield Mechanism(
        "bitstogram",
        "heavy_hitters",
        (Bitstogram, bitstogram.BitstogramProtocol.collect),
        *_USER,
        REPORTS,
        _bits_trial,
        _bits_doors,
        (Bitstogram,),
        {},
        dict.fromkeys(("length", "buckets", "repetitions", "rows", "width", "soft_bits"), _SIZE),
    )
    yield Mechanism(
        "pem",
        "heavy_hitters",
        (PEM, PEM.collect),
        *_USER,
        REPORTS,
        _pem_trial,
        _pem_doors,
        (PEM,),
        {},
        {"max_candidates": _SIZE},
    )
    yield Mechanism(
        "projective",
        "heavy_hitters",
        (ProjectiveOracle, ProjectiveOracle.collect, ProjectiveOracle.report),
        *_USER,
        FINITE,
        _projective_trial,
    )
    yield Mechanism(
        "explicit_hist",
        "heavy_hitters",
        (explicit_hist,),
        "a report",
        "any two values",
        FINITE,
        _edge_trial,
    )
    yield Mechanism(
        "rappor",
        "heavy_hitters",
        (Rappor, rappor.RapporProtocol.step, rappor.RapporProtocol.collect),
        "reports of one word",
        "any two words",
        FINITE,
        _rappor_trial,
        _rappor_doors,
        (Rappor, Rappor.one_shot),
        {},
        {"n_bits": _SIZE, "n_hashes": "counted in `epsilon_of_reports`", "n_cohorts": _SIZE},
    )


def _protocol(kind: Any) -> Any:
    from evolvingdp.heavy_hitters.tree_hist import Protocol

    return Protocol.collect


def _epsilon(rng: Rng) -> float:
    return float(np.exp(rng.uniform(-2.0, 2.0)))


def _pair(rng: Rng, most: int, users: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    keys = rng.integers(0, most, users).astype(np.uint64)
    other = keys.copy()
    other[0] = (int(keys[0]) + int(rng.integers(1, most))) % most
    return keys, other


def _run(protocol: Any, held: Any, noise: Any) -> Any:
    return protocol.collect(held, stream(0, "public"), noise)


def _oracle_trial(rng: Rng) -> Trial:
    hashes = MultiplyShift.draw(int(rng.integers(1, 3)), int(rng.choice([2, 4])), rng)
    made = FreqOracle(hashes, _epsilon(rng), str(rng.choice(["hadamard", "none"])))
    pair = _pair(rng, 50, int(rng.integers(1, 6)))
    return Trial((made, pair[0].tolist()), lambda held, noise: _sums(_run(made, held, noise)), pair, made.epsilon)


def _sums(sketch: Any) -> Any:
    return [sketch.sums, sketch.n_reports]


def _all_sums(reports: Any) -> Any:
    return [*map(_sums, reports.levels), _sums(reports.final) if reports.final is not None else None]


def _oracle_doors(rng: Rng) -> list[Door]:
    made = FreqOracle(MultiplyShift.draw(2, 4, stream(0, "hashes")), 1.0)
    return [_keys(lambda noise, keys: _run(made, keys, noise))]


def _keys(call: Any) -> Door:
    return Door(
        "collect", call, lambda drawn: {"keys": drawn.integers(0, 9, 4)}, loose={"keys": "any number of users may report"}
    )


def _leaves(rng: Rng, users: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    words = ["ab", "cd", "ax", "zz"]
    keys = _TREE.encode([words[place] for place in rng.integers(0, 4, users)])
    other = keys.copy()
    other[0] = next(leaf for leaf in _TREE.encode(words)[rng.permutation(4)] if leaf != keys[0])
    return keys, other


def _tree_trial(rng: Rng) -> Trial:
    def draw() -> TreeHist:
        return TreeHist(
            _TREE,
            _epsilon(rng),
            10.0,
            rows=2,
            width=4,
            plan=str(rng.choice(["two_reports", "split", "one_report"])),
            shared_sketch=bool(rng.random() < 0.3),
            compression=str(rng.choice(["hadamard", "none"])),
        )

    made: TreeHist = settled(draw)
    protocol, pair = made.draw_hashes(rng), _leaves(rng, int(rng.integers(1, 6)))
    return Trial((made, pair[0].tolist()), lambda held, noise: _all_sums(_run(protocol, held, noise)), pair, made.epsilon)


def _tree_doors(rng: Rng) -> list[Door]:
    protocol = TreeHist(_TREE, 1.0, 10.0, rows=2, width=4).draw_hashes(stream(0, "hashes"))
    leaves = _TREE.encode(["ab", "cd", "ax", "zz"])
    return [
        Door(
            "collect",
            lambda noise, keys: _run(protocol, keys, noise),
            lambda drawn: {"keys": drawn.permutation(leaves)},
            loose={"keys": "any number of users may report"},
        )
    ]


def _bits_trial(rng: Rng) -> Trial:
    made = Bitstogram(
        _epsilon(rng),
        10.0,
        length=2,
        buckets=2,
        rows=2,
        width=4,
        plan=str(rng.choice(bitstogram.PLANS)),
        bit_as=str(rng.choice(bitstogram.READINGS)),
        signed_final=bool(rng.random() < 0.5),
    )
    protocol, pair = made.draw_hashes(rng), _pair(rng, 26**2, int(rng.integers(1, 6)))
    return Trial((made, pair[0].tolist()), lambda held, noise: _all_sums(_run(protocol, held, noise)), pair, made.epsilon)


def _bits_doors(rng: Rng) -> list[Door]:
    protocol = Bitstogram(1.0, 10.0, length=2, buckets=2, rows=2, width=4).draw_hashes(stream(0, "hashes"))
    return [_keys(lambda noise, keys: _run(protocol, keys, noise))]


def _pem_trial(rng: Rng) -> Trial:
    made, pair = PEM(_TREE, _epsilon(rng), 10.0, shares=(0.5, 0.5)), _leaves(rng, int(rng.integers(1, 6)))
    return Trial((made, pair[0].tolist()), lambda held, noise: list(_run(made, held, noise).levels), pair, made.epsilon)


def _pem_doors(rng: Rng) -> list[Door]:
    made, leaves = PEM(_TREE, 1.0, 10.0, shares=(0.5, 0.5)), _TREE.encode(["ab", "cd", "ax", "zz"])
    return [
        Door(
            "collect",
            lambda noise, keys: _run(made, keys, noise),
            lambda drawn: {"keys": drawn.permutation(leaves)},
            loose={"keys": "any number of users may report"},
        )
    ]


def _projective_trial(rng: Rng) -> Trial:
    made = ProjectiveOracle.draw(1, 4, float(rng.uniform(0.3, 1.5)), rng)
    pair = _pair(rng, 50, 1)
    return Trial(
        (made, pair[0].tolist(), pair[1].tolist()), lambda held, noise: _sums(_run(made, held, noise)), pair, made.epsilon
    )


class Reported:
    """Public randomness of one hash function, that of `seed`."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def integers(self, low: int, high: int, size: int, dtype: Any) -> NDArray[Any]:
        return np.full(size, self.seed, dtype=dtype)


def _edge_trial(rng: Rng) -> Trial:
    """A report with a large epsilon, at which a double hardly holds the rarer answers."""

    def draw() -> tuple[OLH, float]:
        epsilon = float(rng.uniform(25.0, 40.0))
        return (explicit_hist(epsilon) if rng.random() < 0.5 else OLH(epsilon, int(rng.integers(2, 5)))), epsilon

    made, epsilon = settled(draw)
    known = Reported(int(rng.integers(0, 2**62)))
    keys = tuple(np.array([key], dtype=np.uint64) for key in range(4))
    return Trial((made,), lambda held, noise: made.report(held, known, noise).values, keys, epsilon)


def _rappor_trial(rng: Rng) -> Trial:
    edge, reports = bool(rng.random() < 0.5), int(rng.integers(1, 3))
    if rng.random() < 0.5:
        made, reports = (
            Rappor.one_shot(float(rng.uniform(20.0, 50.0) if edge else rng.uniform(0.2, 3.0)), n_bits=2, n_cohorts=1),
            1,
        )
    else:
        noise = float(10.0 ** rng.uniform(-18, -8)) if edge else float(rng.uniform(0.1, 0.9))
        made = Rappor(2, 1, 1, noise, *sorted(rng.uniform(0.05, 0.95, 2).tolist()))
    protocol = made.draw_hashes(stream(0, "hashes"))
    words = range(16)
    by_filter = {int(protocol.bloom(np.array([word], dtype=np.uint64), np.array([0]))[0]): word for word in words}

    def run(word: int, noise: Any) -> Any:
        memo, told = protocol.start(), []
        for _ in range(reports):
            memo, sent = protocol.step(memo, np.array([0]), np.array([0]), np.array([word], dtype=np.uint64), noise)
            told.append(sent)
        return told

    return Trial((made, reports), run, tuple(by_filter.values()), made.epsilon_of_reports(reports))


def _rappor_doors(rng: Rng) -> list[Door]:
    protocol = Rappor(2, 1, 1).draw_hashes(stream(0, "hashes"))
    return [
        Door(
            "collect",
            lambda noise, keys: protocol.collect(keys, np.zeros(4, dtype=np.int64), noise),
            lambda drawn: {"keys": drawn.integers(0, 9, (4, 2)).astype(np.uint64)},
            loose={"keys": "any number of reports"},
        )
    ]


_ = partial
