"""Scenes of what every paper uses: randomizers, noise, composition, hash functions, exact sampling."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evolvingdp.audit.recorded.scene import Scene, outcome
from evolvingdp.core import accounting, checks, hadamard, hashing, sampling, words
from evolvingdp.core.noise import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, Tape
from evolvingdp.core.olh import OLH
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.seeds import stream

_EPSILONS = (0.01, 0.3, 1.1, 3.0, 8.0, 36.0)


def sign_flip(rng: np.random.Generator) -> Iterator[Any]:
    for epsilon in _EPSILONS:
        flip = SignFlip(epsilon)
        yield (
            flip.keep,
            flip.flip,
            np.log(max(flip.flip, 1e-300)),
            flip.debias,
            flip.probabilities(1),
            flip.variance(),
            flip.variance(0.2),
        )
        yield flip.randomize(np.repeat([-1, 1], 40), rng)
        yield flip.draw_reports(np.linspace(0, 1, 60), rng), flip.report_one(np.linspace(0, 1, 5))
        yield flip.sum_given_counts(np.array([0, 5, 10**6]), np.array([7, 0, 10**5]), rng)


def noise(rng: np.random.Generator) -> Iterator[Any]:
    for scale in (0.03, 0.5, 1.0, 7.3, 8.4, 33.0, 4e4, 2.0**24.5):
        for law in (Laplace(scale), Gaussian(scale), DiscreteLaplace(scale), DiscreteGaussian(scale)):
            yield law.variance, law.draw(40, rng)
    for kind, scale in ((Laplace, 0.0), (DiscreteLaplace, 2.0**47), (DiscreteGaussian, 2.0**26)):
        yield outcome(kind, scale)
    tape = Tape(Laplace(2.0), rng)
    yield [tape.next() for _ in range(5)], tape.take(3), tape.next(), tape.take(2000), tape.next(), tape.take(0)
    yield tape.take(70_000)[::97], tape.take(40_000)[::97]


def composition(rng: np.random.Generator) -> Iterator[Any]:
    for epsilon, delta, n_reports in (
        (0.1, 1e-6, 1),
        (1.0, 1e-6, 7),
        (4.0, 1e-3, 1000),
        (900.0, 1e-9, 2),
        (1.0, 1.5, 2),
        (3000.0, 1e-6, 1),
    ):
        yield outcome(accounting.basic, epsilon, n_reports)
        yield outcome(accounting.advanced, epsilon, delta, n_reports), outcome(accounting.optimal, epsilon, delta, n_reports)
        yield outcome(accounting.gaussian_mu, epsilon, delta), outcome(accounting.concentrated_rho, epsilon, delta)
        yield accounting.delta_of_reports(epsilon / n_reports * 1.5, epsilon, n_reports)
        for size in (0.05, 0.5, 2.0):
            yield accounting.delta_of_gaussian(size, epsilon), accounting.delta_of_concentrated(size, epsilon)


def local_hashing(rng: np.random.Generator) -> Iterator[Any]:
    keys = np.repeat(np.arange(4, dtype=np.uint64), 25)
    for epsilon, values in (
        (0.2, None),
        (1.0, None),
        (4.0, None),
        (1.5, 2),
        (0.7, 30_000),
        (11.0, None),
        (37.0, 2),
        (1.0, 1),
    ):
        oracle = outcome(OLH, epsilon, values)
        if isinstance(oracle, str):
            yield oracle
            continue
        reports = oracle.report(keys, *rng.spawn(2))
        support = oracle.support(reports + reports, np.arange(6, dtype=np.uint64))
        yield reports.seeds, reports.values, support, oracle.estimate(support, 200), oracle.keep, oracle.hash_values
        yield oracle.probabilities(1) if oracle.hash_values < 100 else oracle.probabilities(1)[0]
        yield oracle.standard_error(1000), oracle.standard_errors(1000, np.array([-1.0, 0.0, 300.0, 2000.0]))
        yield oracle.simulate_support(np.array([0, 4, 900]), 1000, rng)
        yield oracle.simulate_support(np.array([0, 4, 90]), np.array([100, 200, 300]), rng)


def hash_functions(rng: np.random.Generator) -> Iterator[Any]:
    keys = np.array([0, 1, 2, 2**32 - 1, 2**32, 2**63 + 5], dtype=np.uint64)
    for family in (hashing.MultiplyShift, hashing.ShaPrefix):
        for rows, width in ((1, 1), (3, 2), (5, 64), (2, 2**32), (2, 2**33), (2, 3), (0, 2)):
            drawn = outcome(family.draw, rows, width, rng)
            if isinstance(drawn, str):
                yield drawn
                continue
            every = np.arange(rows)[:, None]
            yield drawn.cells_and_signs(every, keys), drawn.cells(every, keys[:3]), hashing.places(drawn, every, keys)
            yield drawn.cells_and_signs(np.arange(rows), keys[:rows])
    yield hashing.scramble(keys)
    for width in (1, 2, 16, 64, 512):
        values = rng.integers(-3, 9, size=(3, width))
        yield hadamard.transform(values), hadamard.transform(values[0], np.float32)
    yield hadamard.signs(np.arange(9)[:, None], np.arange(9)), outcome(hadamard.transform, np.ones(3))
    yield hadamard.transform(rng.integers(0, 2, size=(300, 512))).sum(axis=0)


def exact_sampling(rng: np.random.Generator) -> Iterator[Any]:
    for trials in (np.arange(200), np.array([0, 0, 0, 63, 64, 65]), np.array([[1023, 1024], [1100, 10**6]]), np.array([1])):
        yield sampling.fair_binomial(trials, rng)
    for size, bits in ((0, 3), (7, 1), (9, 16), (10, 17), (5, 32), (6, 33), (3, 63)):
        yield sampling.fair_bits(size, bits, rng)
    for counts, parts in (([0, 3, 16, 17, 400], 2), ([5, 60], 7), ([9], 1)):
        yield sampling.split_evenly(np.array(counts), parts, rng)
    yield list(sampling.blocks(7, 3)), list(sampling.blocks(0, 3))


def seeds(_: np.random.Generator) -> Iterator[Any]:
    names: list[tuple[str | int, ...]] = [("a",), ("a", "b"), ("b", "a"), ("a", 1), ("a", "1"), ("a/b",), (1,)]
    for seed, name in product((0, 1), names):
        yield stream(seed, *name).integers(0, 2**60, 3)


def spelling(_: np.random.Generator) -> Iterator[Any]:
    known = ["a", "z", "az", "privacy", "zzzzzzzzzzzzz"]
    yield words.encode(known), words.decode(words.encode(known)), words.index(["aa", "az", "zz"], 2)
    yield words.from_index(np.array([0, 25, 675], dtype=np.uint64), 2), outcome(words.from_index, np.array([676]), 2)
    for wrong in ([""], ["a" * 14], ["A"], [None], "word"):
        yield outcome(words.encode, wrong), outcome(words.index, wrong, 2)
    yield outcome(words.decode, [27]), outcome(words.decode, [0]), outcome(words.decode, [27**13])


def refusals(_: np.random.Generator) -> Iterator[Any]:
    """What mechanisms are asked with, before any noise: at, and one beyond, each end of what they take."""
    numbers: tuple[Any, ...] = (
        -math.inf, -1, -1e-300, 0, 0.0, 1e-300, 0.5, 1 - 2**-53, 1, 1.0, 2, 10**400, -(10**400), math.inf, math.nan, True,
        np.bool_(True), np.float32(0.5), np.int8(1), np.array(0.5), np.array(1), np.array(True), np.array([0.5]), "1",
        None, 1j,
    )  # fmt: skip
    for value in numbers:
        yield [outcome(check, value=value) for check in (checks.finite, checks.number, checks.positive, checks.probability)]
        yield [outcome(checks.integer_at_least, least, value=value) for least in (-1, 0, 1, 2)]
        yield outcome(checks.power_of_two, value=value)
    arrays: tuple[Any, ...] = (
        [], [0], [1, 2], [-1, 2], [2, -1], [2**62], [2**62, 2**62], [2**62, 2**62 - 1024], [2**63], [2**64 - 1], [1.0],
        [True], [[1]], 1, ["1"], np.array([3], dtype=np.uint8), np.zeros((0, 2), dtype=int), np.zeros(0),
    )  # fmt: skip
    for array in arrays:
        yield outcome(checks.counts, value=array), outcome(checks.keys, array), outcome(checks.counts_of_keys, array, [1, 2])
        yield [outcome(checks.integer_array, "value", array, below=below) for below in (1, 2, 3, 2**63)]
    yield [outcome(checks.one_of, ("a", "b"), value=value) for value in ("a", "b", "c", "")]
    seen = Tallied(np.zeros(3))
    yield [outcome(checks.state, seen, kind, sums=shape) for kind in (Tallied, int) for shape in ((3,), (2,), (1, 3))]
    yield [outcome(checks.fits_in_memory, "it", needed, "ask for less") for needed in (0.0, 1.0, 1e30, math.nan)]
    yield [outcome(OLH, 1.0, values) for values in (1, 2, 2**15 - 1, 2**15)], outcome(words.index, ["aa", "a-"], 2)


class Tallied(NamedTuple):
    sums: NDArray[np.float64]


def scenes() -> dict[str, Scene]:
    every = (sign_flip, noise, composition, local_hashing, hash_functions, exact_sampling, seeds, spelling, refusals)
    return {scene.__name__: scene for scene in every}
