"""Scenes of heavy hitters: edges of sketches and of searches of trees."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from evolvingdp.audit.recorded.heavy_hitters.searches import COUNTS, KEYS
from evolvingdp.audit.recorded.scene import Scene, outcome, taken
from evolvingdp.core.hashing import MultiplyShift, ShaPrefix
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.heavy_hitters import olh
from evolvingdp.heavy_hitters.binary_code import BinaryCode, check_length
from evolvingdp.heavy_hitters.count_sketch import COMPRESSIONS, ESTIMATORS, FreqOracle, Sketch
from evolvingdp.heavy_hitters.sketches import geometry, projective, pursuit, simulation
from evolvingdp.heavy_hitters.sketches.joint_fit import JointFit
from evolvingdp.heavy_hitters.sketches.local_rnd import LocalRnd
from evolvingdp.heavy_hitters.sketches.projective import PointCounts, ProjectiveOracle
from evolvingdp.heavy_hitters.word_tree import WordTree

NONE, EPSILONS, USERS = np.zeros(0, dtype=np.uint64), (0.05, 1.0, 5.0, 12.0), (1, 90, 10**6)
TREE = WordTree((1, 1), 2)


def sketch_edges(rng: np.random.Generator) -> Iterator[Any]:
    for place, (rows, width, compression) in enumerate(product((1, 2, 9), (2, 8), COMPRESSIONS)):
        epsilon = EPSILONS[(place + place // 4) % 4]
        oracle = FreqOracle(MultiplyShift.draw(rows, width, rng), epsilon, compression)
        yield oracle.fingerprint, oracle.shape, oracle.users_of_a_report, oracle.client.randomizer.keep
        yield [[oracle.standard_error(users, how) for how in ESTIMATORS] for users in USERS]
        for held in (NONE, KEYS[:1]):
            sketch = oracle.collect(held, *rng.spawn(2))
            yield sketch.sums, sketch.n_reports, [oracle.standard_errors(sketch, KEYS[:2], how) for how in ESTIMATORS]
            yield [outcome(oracle.estimate, sketch, asked, how) for asked in (NONE, KEYS[:2]) for how in ESTIMATORS]
        many = oracle.simulate(KEYS, COUNTS * 900, rng)
        yield many.sums, [outcome(oracle.estimate, many, KEYS[:3], how) for how in ESTIMATORS]
        asked = np.append(KEYS, np.arange(100, 130, dtype=np.uint64))
        for how, cut in product(("mean", "median"), (-9e9, 5e3, 3e4, 9e9)):
            yield outcome(oracle.reaching, many, asked, cut, how), outcome(oracle.reaching, many, NONE, cut, how)
        yield outcome(oracle.estimate, many, np.arange(oracle.empty().sums.size + 1, dtype=np.uint64), "joint")
    one, other = (FreqOracle(ShaPrefix(b"salt", 2, 4), epsilon) for epsilon in (1.0, 1.5))
    made, by_hand = one.simulate(KEYS, COUNTS, rng), Sketch(np.arange(8).reshape(2, 4), 28)
    yield made.sums, made + by_hand, by_hand + made, (made + made).n_reports, taken(one.check, by_hand)
    for wrong in (other.empty(), Sketch(np.zeros((2, 8), dtype=np.int64), 0), Sketch(np.zeros((2, 3), dtype=np.int64), 0)):
        yield taken(one.check, wrong), taken(made.__add__, wrong), outcome(one.estimate, wrong, KEYS)
    for slots, reports in (([0, 7], [1, -1]), ([0, 8], [1, 1]), ([-1], [1]), ([1], [1, 1]), ([0, 1], [1, 0]), ([], [])):
        yield outcome(one.add, made, np.array(slots, dtype=int), np.array(reports, dtype=int))
    for wrong_one in (0.0, 1e-9, 9.9e-10, -1.0, np.inf, np.nan):
        yield taken(FreqOracle, one.hashes, wrong_one), taken(LocalRnd, one.hashes, wrong_one)
    yield taken(FreqOracle, one.hashes, 1.0, "x"), taken(FreqOracle, ShaPrefix(b"salt", 2, 3), 1.0)
    yield outcome(one.estimate, made, KEYS, "x"), outcome(one.standard_error, 9, "x"), outcome(one.standard_error, 0)


def sketch_long(rng: np.random.Generator) -> Iterator[Any]:
    """Blocks of users and of cells end here."""
    held = np.repeat(KEYS, COUNTS * 700)
    oracle = FreqOracle(MultiplyShift.draw(3, 4, rng), 1.0)
    plain = replace(oracle, compression="none")
    yield oracle.collect(held, *rng.spawn(2)).sums, oracle.simulate(KEYS, COUNTS * 700, rng, path="users").sums
    yield replace(oracle, hashes=MultiplyShift.draw(1, 2, rng)).simulate(KEYS, COUNTS // 3, rng).sums
    yield plain.collect(held[:9000], *rng.spawn(2)).sums
    wide = FreqOracle(MultiplyShift.draw(5, 1 << 12, rng), 1.0)
    for scale in (1, 900, 10**9):  # float32 or not; users or groups
        sketch = wide.simulate(KEYS, COUNTS * scale, rng)
        asked = np.arange(9000, dtype=np.uint64)
        yield sketch.sums[:, ::37], sketch.transformed.dtype.str, sketch.transformed[:, ::37]
        yield [wide.estimate(sketch, asked, how)[::19] for how in ("mean", "median")]
        yield [wide.reaching(sketch, asked, 30.0 * scale, how) for how in ("mean", "median")]
    for small in (4095, 4096):
        sums = np.zeros((1, 4096), dtype=np.int64)
        sums[0, 5] = -small
        yield Sketch(sums, small).transformed.dtype.str


def joint_fits(rng: np.random.Generator) -> Iterator[Any]:
    for rows, width, keys, signed in product((1, 3, 63, 64), (4, 64), (1, 6, 40), (True, False)):
        cells = rng.integers(0, width, (rows, keys))
        signs = rng.choice(np.array([-1, 1], dtype=np.int8), (rows, keys)) if signed else None
        fit = JointFit.of(cells, signs, width)
        numbers = rng.normal(size=keys)
        yield fit.means_of(numbers), fit.cells_of(numbers)[:, :6], fit.used[:9], fit.centred, outcome(fit.spread)
        yield (
            outcome(fit.solve, fit.means_of(numbers))
            if keys * 2 < rows * width
            else taken(fit.solve, np.ones(rows * width + 1))
        )
    fit = JointFit.of(rng.integers(0, 4096, (2, 600)), None, 4096)
    yield fit.spread()[::7]
    oracle = FreqOracle(MultiplyShift.draw(4, 16, rng), 2.0)
    sketch = oracle.simulate(KEYS, COUNTS * 40, rng)
    for least, number in product((1.0, 100.0, 500.0, 9e9), (1, 5, 60)):
        asked = np.append(KEYS, np.arange(200, 200 + number, dtype=np.uint64))
        yield pursuit.standing_out(oracle, sketch, asked, least)


def sketch_laws(rng: np.random.Generator) -> Iterator[Any]:
    for epsilon, rows, width in product((0.05, 1.0, 12.0), (1, 3), (1, 2, 32)):
        hashes, coin = MultiplyShift.draw(rows, width, rng), SignFlip(epsilon)
        for counts in (COUNTS * 0, COUNTS // 30, np.array([8, 9, 24, 25, 10**6]) * rows, COUNTS * 30):
            for path in ("auto", "groups", "users") if counts.max() < 10**6 else ("auto",):
                yield simulation.one_bit(hashes, coin, KEYS, counts, rng, path)
            yield simulation.all_signs(hashes, coin, KEYS, counts, rng), simulation.holders(hashes, KEYS, counts, rng)
            for asked in (NONE, KEYS[:1], KEYS):
                yield simulation.all_signs(hashes, coin, KEYS, counts, rng, asked)
        yield simulation.one_bit(hashes, coin, NONE, np.zeros(0, dtype=np.int64), rng)
        edge = 2 * rows * width * width.bit_length()
        for users in (edge - 1, edge, edge + 1):
            yield simulation.one_bit(hashes, coin, KEYS[:1], np.array([users]), rng)
        client = LocalRnd(hashes, epsilon)
        slots = client.assign(60, rng)
        yield client.true_bits(np.repeat(KEYS, 12), slots), client.report(np.repeat(KEYS, 12), slots, rng)
        yield client.report_all_signs(np.repeat(KEYS, 12), client.assign_rows(60, rng), rng)


def projective_edges(rng: np.random.Generator) -> Iterator[Any]:
    for rows, cells, epsilon in (
        (1, 2, 0.05),
        (3, 30, 0.05),
        (3, 2, 1.0),
        (1, 30, 1.0),
        (2, 30, 2.2),
        (3, 20, 3.5),
        (1, 9, 6.0),
    ):
        oracle = ProjectiveOracle.draw(rows, cells, epsilon, rng)
        yield oracle.space, oracle.lie, oracle.shape, oracle.users_of_a_report, oracle.response.keep, oracle.fingerprint
        yield [[oracle.standard_error(users, how) for how in ESTIMATORS] for users in USERS]
        points = rng.integers(0, oracle.space.points, 9)
        vectors = rng.integers(0, oracle.space.vectors, 9)
        yield [oracle.sent(points, vectors, np.full(9, lies)) for lies in (False, True)]
        yield oracle.space.product(vectors, points), oracle.space.made_orthogonal(vectors, points)
        yield oracle.report(np.repeat(KEYS, 4), rng.integers(0, rows, 20), rng)
        for path, scale in (("auto", 9), ("groups", 2), ("users", 2), ("auto", 10**4)):
            sketch = oracle.simulate(KEYS, COUNTS * scale, rng, path=path)
            yield sketch.sums, sketch.n_reports, sketch.transformed, oracle.cell_estimates(sketch)
            for how in ESTIMATORS:
                yield oracle.estimate(sketch, KEYS[:2], how), oracle.standard_errors(sketch, KEYS[:2], how)
        for held in (NONE, KEYS[:1]):
            yield oracle.collect(held, *rng.spawn(2)).sums, oracle.simulate(held, np.ones(len(held), int), rng).sums
        some = oracle.empty()
        for slots, reports in (([0, rows - 1], [0, oracle.space.points]), ([rows], [0]), ([0], [oracle.space.points + 1])):
            yield outcome(oracle.add, some, np.array(slots), np.array(reports))
        yield outcome(oracle.add, some, np.zeros(2, int), np.zeros(1, int)), taken(some.__add__, sketch)
    yield taken(ProjectiveOracle, MultiplyShift.draw(1, 2, rng), 1.0), PointCounts(np.zeros((1, 4), dtype=int), 0).space
    for wrong in ((1, 8, 0.0), (0, 8, 1.0), (1, 1, 1.0), (1, 8, -1.0)):
        yield taken(ProjectiveOracle.draw, *wrong, rng)
    held, oracle = np.repeat(KEYS, COUNTS * 350), ProjectiveOracle.draw(2, 8, 1.0, rng)
    yield oracle.collect(held, *rng.spawn(2)).sums, oracle.simulate(KEYS, COUNTS * 700, rng, path="users").sums
    for order, dimension in ((2, 2), (5, 2), (13, 2), (3, 4)):
        space = geometry.Geometry(order, dimension)
        yield space.partner if dimension == 2 else space.digits, space.orthogonal(np.append(np.ones(space.points, int), 3))
    for epsilon, cells in product((0.01, 0.69, 0.7, 1.5, 3.0, 4.0, 7.0, 9.0), (2, 1000, 2**19, 10**7)):
        yield geometry.geometry(epsilon, cells)
    for epsilon, users, rows, held_by in product((0.3, 3.0), USERS, (1, 2, 15), (0.0, 0.4, 1e9)):
        yield projective.report_error(olh.OLH(epsilon, 3), users, rows, held_by)


def binary_codes(rng: np.random.Generator) -> Iterator[Any]:
    for length in range(1, 18):
        yield taken(check_length, length), outcome(BinaryCode, length, 1), outcome(BinaryCode, length, length)
    yield taken(check_length, 2**16 - 1), taken(check_length, 2**16), taken(check_length, 2**17 - 1)
    for pair in ((0, 1), (7, 0), (63, 63), (65, 65), (63, 64), (7, 5), (63, 29), (127, 30), (64, 64)):
        yield outcome(BinaryCode, *pair)
    for length, bits in (
        (3, 1),
        (7, 4),
        (7, 1),
        (15, 7),
        (15, 1),
        (31, 6),
        (63, 30),
        (127, 57),
        (255, 63),
        (5, 5),
        (63, 63),
    ):
        code = outcome(BinaryCode, length, bits)
        if isinstance(code, str):
            yield code
            continue
        messages = rng.integers(0, 1 << bits, 4, dtype=np.uint64)
        sent = code.encode(messages)
        yield code, code.trivial, code.correctable, messages, sent, code.bits(messages, np.arange(4) % length)
        for wrong_bits in (0, 1, code.correctable, code.correctable + 1, length // 2):
            noisy = sent.copy()
            noisy[:, rng.permutation(length)[:wrong_bits]] ^= 1
            yield code.decode(noisy)
        yield code.decode(rng.integers(0, 2, (9, length), dtype=np.uint8)), outcome(code.decode, sent[:0])


def scenes() -> dict[str, Scene]:
    warnings.simplefilter("ignore")  # of searches that have more survivors than they may
    every = (sketch_edges, sketch_long, joint_fits, sketch_laws, projective_edges, binary_codes)
    return {f"words_{scene.__name__}": scene for scene in every}
