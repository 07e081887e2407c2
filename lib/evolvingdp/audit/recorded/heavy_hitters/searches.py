"""Scenes of heavy hitters: sketches, searches, their rivals, what trust buys, and planning."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from evolvingdp.audit.recorded.scene import Scene, outcome
from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.heavy_hitters import bitstogram
from evolvingdp.heavy_hitters.binary_code import BinaryCode
from evolvingdp.heavy_hitters.bitstogram import Bitstogram
from evolvingdp.heavy_hitters.count_sketch import ESTIMATORS, FreqOracle
from evolvingdp.heavy_hitters.sketches import geometry, pursuit, simulation
from evolvingdp.heavy_hitters.sketches.combining import mean_of_rows, median_of_rows
from evolvingdp.heavy_hitters.sketches.local_rnd import LocalRnd
from evolvingdp.heavy_hitters.sketches.projective import ProjectiveOracle, report_error
from evolvingdp.heavy_hitters.tree_hist import PLANS, PRUNINGS, TreeHist
from evolvingdp.heavy_hitters.word_tree import WordTree

KEYS = np.array([3, 17, 2**40 + 1, 5, 90], dtype=np.uint64)
COUNTS = np.array([60, 25, 11, 3, 1])


def _read(oracle: FreqOracle, sketch: Any) -> Iterator[Any]:
    yield sketch.sums, sketch.n_reports, sketch.oracle, oracle.row_estimates(sketch, KEYS), oracle.cell_estimates(sketch)
    many = np.arange(300, dtype=np.uint64)
    for estimator in ESTIMATORS:
        yield outcome(oracle.estimate, sketch, KEYS, estimator), outcome(oracle.standard_errors, sketch, KEYS, estimator)
        yield oracle.standard_error(500, estimator), outcome(oracle.reaching, sketch, many, 40.0, estimator)
    yield outcome(pursuit.standing_out, oracle, sketch, many[:40], 9.0), oracle.users_of_a_report, oracle.shape


def frequency_oracles(rng: np.random.Generator) -> Iterator[Any]:
    held = np.repeat(KEYS, COUNTS)
    for compression, epsilon, rows, width in product(("hadamard", "none"), (0.4, 3.0), (1, 4), (1, 16)):
        oracle = FreqOracle(MultiplyShift.draw(rows, width, rng), epsilon, compression)
        yield oracle.fingerprint, oracle.client.randomizer
        twice = oracle.collect(held, *rng.spawn(2)) + oracle.collect(held[:50], *rng.spawn(2))
        yield from _read(oracle, twice)
        for path in ("auto", "groups", "users"):
            yield from _read(oracle, oracle.simulate(KEYS, COUNTS, rng, path=path))
        for estimator in ESTIMATORS:
            yield outcome(oracle.simulate_estimates, KEYS, COUNTS, np.arange(9, dtype=np.uint64), rng, estimator)
        yield (
            outcome(oracle.check, FreqOracle(oracle.hashes, 1.0, compression).empty()),
            outcome(oracle.simulate, KEYS, COUNTS[1:], rng),
        )
        yield (
            outcome(oracle.add, oracle.empty(), np.array([0, 0, 99]), np.array([1, -1, 1])),
            outcome(oracle.add, twice, [0], [2]),
        )
    large = FreqOracle(MultiplyShift.draw(8, 256, rng), 1.0)
    for scale in (10**4, 10**7):
        yield large.simulate(KEYS, COUNTS * scale, rng).sums
    unhashed = FreqOracle(large.hashes, 1.0, "none")
    yield (
        unhashed.simulate_estimates(KEYS, COUNTS * 10**4, np.arange(9, dtype=np.uint64), rng),
        outcome(FreqOracle, large.hashes, 1e-12),
    )
    for rows, width in ((1, 8), (5, 16)):
        hashed = bitstogram.hashtogram(rows, width, 1.1, rng)
        yield hashed.hashes.cells(np.arange(rows), KEYS[:1])
        yield from _read(hashed, hashed.collect(held, *rng.spawn(2)))
        yield from _read(hashed, hashed.simulate(KEYS, COUNTS, rng))
    for values in (rng.normal(size=(1, 4)), rng.normal(size=(4, 3)), rng.normal(size=(5, 3))):
        yield median_of_rows(values), mean_of_rows(values)


def local_reports(rng: np.random.Generator) -> Iterator[Any]:
    held = np.repeat(KEYS, COUNTS)
    for epsilon, rows, width in product((0.3, 2.0), (1, 3), (4, 32)):
        client = LocalRnd(MultiplyShift.draw(rows, width, rng), epsilon)
        slots, chosen = client.assign(100, rng), client.assign_rows(100, rng)
        yield (
            slots,
            chosen,
            client.true_bits(held, slots),
            client.report(held, slots, rng),
            client.report_all_signs(held, chosen, rng),
        )
        for path in ("auto", "groups", "users"):
            yield simulation.one_bit(client.hashes, client.randomizer, KEYS, COUNTS, rng, path)
        yield simulation.all_signs(client.hashes, client.randomizer, KEYS, COUNTS, rng)
        yield simulation.all_signs(client.hashes, client.randomizer, KEYS, COUNTS, rng, np.arange(4, dtype=np.uint64))
        yield simulation.holders(client.hashes, KEYS, COUNTS, rng)


def projective_reports(rng: np.random.Generator) -> Iterator[Any]:
    held = np.repeat(KEYS, COUNTS)
    for epsilon, rows, cells in product((0.5, 1.2, 4.0, 6.0), (1, 5), (8, 60)):
        oracle = ProjectiveOracle.draw(rows, cells, epsilon, rng)
        yield oracle.space, oracle.response, oracle.lie, oracle.fingerprint
        yield oracle.report(held, rng.integers(0, rows, len(held)), rng)
        yield from _read(oracle, oracle.collect(held, *rng.spawn(2)))
        yield from _read(oracle, oracle.simulate(KEYS, COUNTS, rng))
        some, lies = oracle.empty(), oracle.report(held, np.zeros(len(held), dtype=np.int64), rng)
        yield oracle.add(some, np.zeros(len(held), dtype=np.int64), lies).sums, outcome(oracle.add, some, [0], [-1])
        yield oracle.simulate(KEYS, COUNTS * 5000, rng).sums
        yield (
            report_error(oracle.response, 1000),
            report_error(oracle.response, 1000, 5),
            report_error(oracle.response, 1000, 1, 50.0),
        )
    for order, dimension in ((2, 3), (3, 2), (5, 2), (7, 3)):
        space = geometry.Geometry(order, dimension)
        yield space.vectors, space.points, space.vector_of, space.pivot, space.point_of, space.times(order - 1)
        yield space.orthogonal(np.arange(space.vectors)), space.digits
    for epsilon, cells in product((0.1, 1.0, 2.0, 5.0), (2, 100, 10**5)):
        yield geometry.geometry(epsilon, cells)


WORDS = np.array(["ab", "ba", "zz", "cd", "aa"])


def found(hitters: Any) -> Any:
    return (hitters.words, hitters.path) if not isinstance(hitters, str) else hitters


def tree_searches(rng: np.random.Generator) -> Iterator[Any]:
    trees = (WordTree((1, 1), 2), WordTree((5, 3, 2), 2, "bits"), WordTree((1, 1), 2, shorter=True))
    for tree, plan, pruning, compression in product(trees, PLANS, PRUNINGS, ("hadamard", "none", "projective")):
        leaves = tree.encode(WORDS.tolist())
        for shared, estimator, cut in ((False, "joint", True), (True, "median" if tree.shorter else "mean", False)):
            options = {
                "plan": plan,
                "pruning": pruning,
                "compression": compression,
                "estimator": estimator,
                "final_cut": cut,
            }
            settings = outcome(
                TreeHist,
                tree,
                3.0,
                60.0,
                4,
                16,
                shared_sketch=shared,
                leaf_share=0.6,
                max_candidates=3000,
                max_survivors=9,
                **options,
            )
            yield settings
            if isinstance(settings, str):
                continue
            yield settings.epsilon_of_a_report, settings.shares, settings.report_error(90), settings.report_error(90, 40.0)
            yield [(settings.level_error(level, 700), settings.level_error(level, 700, 99.0)) for level in range(tree.depth)]
            yield [settings.cut(level, 700) for level in range(tree.depth)]
            drawn = settings.draw_hashes(rng)
            reports = drawn.collect(np.repeat(leaves, COUNTS), *rng.spawn(2))
            yield [sketch.sums for sketch in reports.levels], reports.final.sums if reports.final else None
            yield found(outcome(drawn.search, reports, 100)), outcome(drawn.search, reports, 99)
            yield [sketch.sums for sketch in drawn.simulate(leaves, COUNTS * 50, rng).levels]
            yield found(outcome(drawn.simulate_search, leaves, COUNTS * 50, rng))


def words_and_codes(rng: np.random.Generator) -> Iterator[Any]:
    for settings in (((2, 2), 4), ((1, 3), 4, "letters", True), ((5, 5, 10), 4, "bits"), ((3,), 4), ((4,), 4, "x")):
        tree = outcome(WordTree, *settings)
        yield tree
        if isinstance(tree, str):
            continue
        leaves = tree.encode(["abcd", "zzzz"])
        yield (
            leaves,
            tree.decode(leaves),
            tree.base,
            tree.depth,
            outcome(tree.encode, ["ab"]),
            outcome(tree.encode, ["abcde"]),
        )
        for level in range(tree.depth):
            yield tree.prefixes(leaves, level), tree.fan(level)
            yield np.sort(tree.children(tree.prefixes(leaves, level - 1) if level else np.zeros(1, dtype=np.uint64), level))[
                :99
            ]
    for length, bits in ((7, 4), (15, 5), (31, 16), (127, 29), (29, 29), (16, 5), (3, 9)):
        code = outcome(BinaryCode, length, bits)
        yield code
        if isinstance(code, str):
            continue
        messages = rng.integers(0, 1 << bits, 9).astype(np.uint64)
        sent = code.encode(messages)
        for wrong in (0, code.correctable, code.correctable + 1):
            noisy = sent.copy()
            noisy[:, rng.permutation(length)[:wrong]] ^= 1
            yield sent, code.correctable, code.decode(noisy)


def bitstograms(rng: np.random.Generator) -> Iterator[Any]:
    for plan, bit_as, estimator, soft in product(bitstogram.PLANS, bitstogram.READINGS, ("joint", "median"), (0, 2)):
        for final_cut, signed, repetitions in ((True, True, 1), (False, False, 2)):
            settings = Bitstogram(
                6.0,
                250.0,
                1,
                BinaryCode(15, 5),
                8,
                repetitions,
                plan,
                0.4,
                bit_as,
                3,
                16,
                signed,
                estimator,
                final_cut,
                soft,
            )
            yield settings.epsilon_of_a_report, settings.shares, settings.bit_error(300, 4000), settings
            drawn = settings.draw_hashes(rng)
            messages = settings.encode(np.array(["a", "q", "z", "b", "c"]))
            reports = drawn.collect(np.repeat(messages, COUNTS), *rng.spawn(2))
            yield [sketch.sums for sketch in reports.levels], reports.final.sums if reports.final else None
            yield drawn.read_bits(reports), found(outcome(drawn.search, reports, 100)), outcome(drawn.search, reports, 99)
            many = drawn.simulate(messages, COUNTS * 40, rng)
            both, rows = reports + many, np.arange(drawn.bits.hashes.rows)
            yield [sketch.sums for sketch in both.levels], drawn.bits.hashes.cells(rows, messages[:1]), str(both)
            yield (
                [sketch.sums for sketch in many.levels],
                found(outcome(drawn.search, many, 4000)),
                drawn.final.epsilon,
                drawn.bits.epsilon,
            )
    for wrong in (
        {"epsilon": 0.0},
        {"threshold": 0.0},
        {"plan": "x"},
        {"final_share": 1.0},
        {"buckets": 3},
        {"soft_bits": 99},
    ):
        yield outcome(Bitstogram, **({"epsilon": 1.0, "threshold": 9.0} | wrong))


def scenes() -> dict[str, Scene]:
    warnings.simplefilter("ignore")  # of searches that have more survivors than they may
    every = (frequency_oracles, local_reports, projective_reports, tree_searches, words_and_codes, bitstograms)
    return {f"words_{scene.__name__}": scene for scene in every}
