"""Scenes of heavy hitters: users, keys, rows, cells, cohorts and candidates that fill more than one block.

A block holds tens of thousands, which no scene has: here it holds a few. Whatever goes through blocks is asked for, also by
those that only pass it on.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from evolvingdp.audit.recorded.heavy_hitters.searches import COUNTS, KEYS, WORDS, found
from evolvingdp.audit.recorded.scene import Scene, in_blocks, outcome, taken
from evolvingdp.core import hadamard
from evolvingdp.core import olh as hashed
from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.heavy_hitters import (
    bitstogram,
    count_sketch,
    olh,
    rappor,
    rappor_decoding,
    rappor_null,
    tree_hist,
    word_tree,
)
from evolvingdp.heavy_hitters.binary_code import BinaryCode
from evolvingdp.heavy_hitters.count_sketch import ESTIMATORS, FreqOracle
from evolvingdp.heavy_hitters.pem import PEM
from evolvingdp.heavy_hitters.sketches import joint_fit, projective, pursuit, simulation
from evolvingdp.heavy_hitters.sketches.projective import ProjectiveOracle
from evolvingdp.heavy_hitters.tree_hist import TreeHist
from evolvingdp.heavy_hitters.word_tree import WordTree

_SKETCHES = (
    (
        count_sketch,
        {"_CHUNK": 16, "_SUMMED_AT_ONCE": 40, "_SIGNS_AT_ONCE": 640, "_READ_AT_ONCE": 48, "_KEYS_AT_ONCE": 24},
    ),
    (simulation, {"_AT_ONCE": 24}),
    (projective, {"_CHUNK": 16, "_READ_AT_ONCE": 48}),
    (joint_fit, {"_AT_ONCE": 2}),
    (hadamard, {"_AT_ONCE": 32}),
)
_SEARCHES = (
    *_SKETCHES,
    (tree_hist, {"_AT_ONCE": 60}),
    (word_tree, {"_AT_ONCE": 2}),
    (hashed, {"_CHUNK": 16}),
    (rappor, {"_CHUNK": 16}),
    (rappor_null, {"_CHUNK": 8}),
)


def blocks_of_sketches(rng: np.random.Generator) -> Iterator[Any]:
    held, asked = np.repeat(KEYS, COUNTS), np.append(KEYS, np.arange(100, 160, dtype=np.uint64))
    with in_blocks(*_SKETCHES):
        for oracle in (
            FreqOracle(MultiplyShift.draw(9, 16, rng), 2.0),
            FreqOracle(MultiplyShift.draw(9, 16, rng), 2.0, "none"),
            bitstogram.hashtogram(5, 32, 2.0, rng),
            ProjectiveOracle.draw(5, 20, 1.2, rng),
        ):
            yield oracle.collect(held, *rng.spawn(2)).sums
            for path in ("auto", "groups", "users"):
                sketch = oracle.simulate(KEYS, COUNTS, rng, path=path)
                yield sketch.sums, sketch.transformed, oracle.row_estimates(sketch, asked), oracle.cell_estimates(sketch)
            for how in ESTIMATORS:
                yield oracle.estimate(sketch, asked, how), oracle.standard_errors(sketch, asked, how)
                yield outcome(oracle.simulate_estimates, KEYS, COUNTS, asked, rng, how)
                yield [outcome(oracle.reaching, sketch, asked, cut, how) for cut in (-50.0, 30.0)]
            yield pursuit.standing_out(oracle, sketch, asked, 9.0)
        many = FreqOracle(MultiplyShift.draw(9, 16, rng), 2.0)
        yield many.simulate(KEYS, COUNTS * 10**5, rng, path="groups").sums
    with in_blocks((joint_fit, {"_AT_ONCE": 7, "_FEW": 3})):
        for signs in (None, rng.choice(np.array([-1, 1], dtype=np.int8), (16, 40))):
            yield joint_fit.JointFit.of(rng.integers(0, 64, (16, 40)), signs, 64).spread()


def blocks_of_searches(rng: np.random.Generator) -> Iterator[Any]:
    tree = WordTree((1, 1), 2)
    leaves, cohorts = tree.encode(WORDS.tolist()), np.arange(sum(COUNTS)) % 3
    held = np.repeat(leaves, COUNTS)
    with in_blocks(*_SEARCHES):
        for compression, how in (("hadamard", "joint"), ("none", "mean"), ("projective", "median")):
            drawn = TreeHist(tree, 9.0, 8.0, 4, 16, estimator=how, compression=compression).draw_hashes(rng)
            yield found(outcome(drawn.search, drawn.collect(held, *rng.spawn(2)), len(held)))
            yield found(outcome(drawn.simulate_search, leaves, COUNTS, rng))
        search = PEM(tree, 4.0, 15.0, (0.5, 0.5))
        yield found(outcome(search.search, search.collect(held, *rng.spawn(2)))), found(search.simulate(leaves, COUNTS, rng))
        bits = bitstogram.Bitstogram(6.0, 9.0, 1, BinaryCode(7, 7), 4, rows=5, width=16).draw_hashes(rng)
        messages = bits.settings.encode(np.array(["a", "q", "z", "b", "c"]))
        for reports in (bits.collect(np.repeat(messages, COUNTS), *rng.spawn(2)), bits.simulate(messages, COUNTS, rng)):
            yield bits.read_bits(reports), found(outcome(bits.search, reports, 100))
        hashing = olh.explicit_hist(1.0)
        yield hashing.support(hashing.report(np.repeat(KEYS, COUNTS), *rng.spawn(2)), KEYS)
        clients = rappor.Rappor(8, 1, 3).draw_hashes(rng)
        words = np.repeat(KEYS, COUNTS)
        memo, sent = clients.step(clients.start(), np.arange(len(words)), cohorts, words, rng)
        yield memo.bits, sent, clients.collect(words[:, None], cohorts, rng)
        counts = clients.simulate(KEYS, COUNTS * 99, rng)
        yield outcome(rappor_decoding.decode, clients, counts, KEYS), tree.decode(np.sort(leaves))
        yield [taken(tree.checked, np.insert(leaves, place, 27 * 27 * 27)) for place in range(6)]
        yield rappor_null.tail(rng.normal(size=(3, 5, 8)), 1, rng.normal(size=(3, 2)) * 3)


def scenes() -> dict[str, Scene]:
    warnings.simplefilter("ignore")  # of searches that have more survivors than they may
    return {f"words_{scene.__name__}": scene for scene in (blocks_of_sketches, blocks_of_searches)}
