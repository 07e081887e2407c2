"""Scenes of heavy hitters: RAPPOR and its decoder, trust, plans, theory, streams."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

from evolvingdp.audit.recorded.heavy_hitters.searches import COUNTS, KEYS
from evolvingdp.audit.recorded.heavy_hitters.sketch_edges import EPSILONS, NONE
from evolvingdp.audit.recorded.scene import Scene, outcome, taken
from evolvingdp.heavy_hitters import planning, rappor_decoding, rappor_null, streams, theory
from evolvingdp.heavy_hitters.rappor import BitCounts, Rappor
from evolvingdp.heavy_hitters.tree_hist import TreeHist
from evolvingdp.heavy_hitters.trust import shuffling
from evolvingdp.heavy_hitters.trust.shuffling import Shuffled
from evolvingdp.heavy_hitters.word_tree import WordTree


def rappor_edges(rng: np.random.Generator) -> Iterator[Any]:
    for n_bits, n_hashes, noise, zero, one in (
        (2, 1, 0.5, 0.25, 0.75), (2, 3, 0.25, 0.1, 0.2), (64, 3, 0.9, 0.49, 0.51), (8, 2, 0.0, 1e-6, 0.6),
        (4, 1, 1e-9, 0.3, 0.999), (8, 1, -0.1, 0.2, 0.7),
        (16, 5, 0.75, 0.05, 0.5), (1, 1, 0.5, 0.2, 0.7), (128, 1, 0.5, 0.2, 0.7), (8, 0, 0.5, 0.2, 0.7),
        (8, 1, 1.0, 0.2, 0.7), (8, 1, 0.5, 0.0, 0.7), (8, 1, 0.5, 0.2, 1.0), (8, 1, 0.5, 0.5, 0.5), (12, 1, 0.5, 0.2, 0.7),
    ):  # fmt: skip
        settings = outcome(Rappor, n_bits, n_hashes, 2, noise, zero, one)
        yield settings
        if isinstance(settings, str):
            continue
        yield settings.gain, settings.epsilon_permanent, [settings.epsilon_of_reports(number) for number in (1, 2, 9, 10**4)]
        yield [(settings.permanent_one(bit), settings.report_one(bit)) for bit in (0, 1)]
        yield [settings.log_bit_probability(bit, ones, 3) for bit in (0, 1) for ones in range(4)]
        for first, second in (([1], [2]), ([3], [3]), ([1, 1], [1, 2]), ([1, 2, 1], [2, 1, 2]), ([0] * 5, [3, 1, 2, 0, 3])):
            yield settings.loss_of_histories(first, second)
        drawn = settings.draw_hashes(rng)
        cohorts = drawn.assign(5, rng)
        held = KEYS[rng.integers(0, 2, (5, 3))]
        yield cohorts, drawn.bloom(KEYS, np.arange(5) % 2), drawn.cells(KEYS, np.array(1))
        memo = drawn.start()
        for keys in (*held.T, held[:, 0]):  # the last word again
            memo, reports = drawn.step(memo, np.arange(5), cohorts, keys, rng)
            yield memo.bits, reports
        memo, reports = drawn.step(memo, np.array([7, 7, 0, 7]), np.array([1, 1, cohorts[0], 1]), KEYS[[4, 4, 4, 3]], rng)
        yield memo.bits, reports, len(memo.pairs), drawn.add(drawn.empty(), np.array([1, 1, 0, 1]), reports)
        yield (
            drawn.collect(held, cohorts, rng),
            drawn.simulate(KEYS, COUNTS, rng),
            drawn.simulate(KEYS, COUNTS, rng, n_reports=4),
        )
        pairs, times = rng.integers(0, 50, (5, 2, 3)), np.array([1, 2, 7])
        yield drawn.simulate_pairs(KEYS, pairs, times, rng), drawn.simulate_pairs(KEYS, 0 * pairs, times, rng)
        yield drawn.simulate(KEYS, COUNTS * 10**6, rng, n_reports=2), drawn.collect(held[:0], cohorts[:0], rng)
        for wrong in ((held, cohorts[1:]), (held[:, 0], cohorts)):
            yield outcome(drawn.collect, *wrong, rng)
        yield outcome(drawn.simulate, KEYS, COUNTS[1:], rng), outcome(drawn.simulate, KEYS, COUNTS, rng, n_reports=0)
        yield outcome(settings.epsilon_of_reports, 0), outcome(settings.loss_of_histories, [], [])
        yield outcome(settings.loss_of_histories, [1], [1, 2]), outcome(settings.loss_of_histories, [1] * 13, [1] * 13)
        yield taken(drawn.empty().__add__, BitCounts(np.zeros((2, 3), dtype=int), np.zeros(2, dtype=int)))
    yield (
        settings,
        Rappor(),
        Rappor().loss_of_histories([1] * 12, [1, 2] * 6),
        Rappor(n_bits=2, n_hashes=2).epsilon_permanent,
    )
    for epsilon, hashes in product((0.05, 1.0, 5.0, 50.0, 50.1, 0.0), (1, 2)):
        made = outcome(Rappor.one_shot, epsilon, n_hashes=hashes)
        yield (
            made,
            "" if isinstance(made, str) else (made.epsilon_of_reports(1), np.log(made.one_from_zero), made.report_one(1)),
        )
    yield outcome(Rappor.one_shot, 1.0, n_hashes=0), outcome(Rappor.one_shot, 1.0, n_cohorts=3)
    long = Rappor(2, 1, 1).draw_hashes(rng)
    many = 2**15 + 3
    memo, reports = long.step(long.start(), np.arange(many), np.zeros(many, int), KEYS[np.arange(many) % 5], rng)
    yield memo.bits[::99], memo.bits[-9:], reports[::99], reports[-9:]


def searched_rappor_decoding(rng: np.random.Generator) -> Iterator[Any]:
    """Post-processing: no privacy rests on it."""
    for n_bits, n_hashes, cohorts, noise, scale in (
        (8, 1, 4, 0.5, 99),
        (16, 2, 3, 0.0, 9),
        (4, 3, 6, 0.25, 2000),
        (2, 1, 5, 0.5, 50),
    ):
        drawn = Rappor(n_bits, n_hashes, cohorts, noise).draw_hashes(rng)
        counts = drawn.simulate(KEYS, COUNTS * scale, rng)
        counts.n_reports[0] = counts.ones[0] = 0  # a cohort without reports
        for asked in (
            KEYS[:1],
            KEYS,
            np.append(KEYS, np.arange(100, 108, dtype=np.uint64)),
            np.append(KEYS, np.arange(60, 95, dtype=np.uint64)),
        ):
            told = outcome(rappor_decoding.decode, drawn, counts, asked)
            if isinstance(told, str):
                yield told
                continue
            yield (
                told,
                told.dispersion,
                told.n_equations,
                outcome(told.listed),
                outcome(told.listed, 0.9),
                outcome(told.listed, 1e-9),
            )
            yield outcome(told.listed, 0.0), outcome(told.listed, 1.0)
        for asked in (NONE, KEYS[[0, 0]]):
            yield outcome(rappor_decoding.decode, drawn, counts, asked)
        yield outcome(rappor_decoding.decode, drawn, drawn.empty(), KEYS)
        yield outcome(rappor_decoding.decode, Rappor(n_cohorts=cohorts + 1).draw_hashes(rng), counts, KEYS)
    for bits, hashes, laws, cohorts in ((2, 1, 1, 1), (4, 2, 3, 5), (3, 5, 2, 2), (8, 1, 2, 40)):
        values = rng.normal(size=(laws, cohorts, bits)) * np.array([1e-3, 1.0, 50.0])[:laws, None, None]
        for scores in (np.zeros((laws, 1)), np.linspace(-5, 90, laws * 7).reshape(laws, 7), values.sum(axis=1)[:, :2]):
            tails = rappor_null.tail(values, hashes, scores)
            yield tails, np.log(np.maximum(tails, 1e-300))
        yield rappor_null.tail(values * 0, hashes, np.zeros((laws, 1)))
    yield rappor_null.tail(rng.normal(size=(30, 90, 2)), 1, rng.normal(size=(30, 1)) * 9)


def shuffled_edges(_: np.random.Generator) -> Iterator[Any]:
    for place, (users, values, hashed) in enumerate(product((2, 17, 3000, 10**6), (2, 30), (True, False))):
        epsilon = EPSILONS[(place + place // 4) % 4]
        for steps in (2, 24):
            made = Shuffled(epsilon, users, values, hashed, steps)
            deltas = np.array([made.delta(total) for total in (0.0, 0.01, 0.3, 1.0, epsilon, epsilon + 1)])
            yield made.blanket, deltas, np.log(np.maximum(deltas, 1e-300))
        yield made.total_epsilon(1e-3 if hashed else 0.5)
    for wrong in ((0.0, 9, 2), (15.0, 9, 2), (15.1, 9, 2), (1.0, 1, 2), (1.0, 9, 1), (1.0, 9, 2, True, 1)):
        yield outcome(Shuffled, *wrong)
    made = Shuffled(1.0, 9, 2)
    for total in (-0.1, 0.0, 15.0, 15.1):
        yield outcome(made.delta, total)
    for delta in (9.9e-13, 1e-12, 0.999, 1.0, 0.0):
        yield outcome(made.total_epsilon, delta)
    for epsilon, delta, users, most in (
        (0.05, 1e-9, 10**6, 8.0),
        (0.5, 1e-3, 500, 3.0),
        (5.0, 1e-6, 99, 2.0),
        (1.0, 1e-12, 2, 12.0),
        (0.2, 1e-6, 10**9, 1.0),
    ):
        for rough in (True, False):
            yield outcome(
                shuffling.epsilon_of_a_report, epsilon, delta, users, lambda one: 2 + int(3 * one), most, True, rough
            )
        yield outcome(shuffling.epsilon_of_a_report, epsilon, delta, users, lambda _: 9, most, False, True)
    for few in ((0.0, 1e-6, 9), (1.0, 0.0, 9), (1.0, 1.0, 9), (1.0, 1e-6, 1)):
        yield (
            outcome(shuffling.epsilon_of_a_report, *few, lambda _: 2, 5.0),
            outcome(shuffling.epsilon_of_a_report, *few, lambda _: 2, 0.0),
        )


def plan_edges(rng: np.random.Generator) -> Iterator[Any]:
    for epsilon, users, threshold, more in (
        (0.05, 10**6, 3e5, {}), (5.0, 10**5, 900.0, {"length": 2}), (2.0, 10**5, 4000.0, {"length": 3, "power": 2.0}),
        (1.0, 10**6, 4e4, {"max_candidates": 10**5}), (1.0, 10**6, 4e4, {"compression": "none", "length": 4}),
        (1.0, 10**4, 5.0, {}), (1.0, 10**4, 5.0, {"rows_collide": False, "max_candidates": 10**6}),
        (1.0, 10**5, 3e4, {"least_share": 0.49}),
        (1.0, 10**5, 3e4, {"least_share": 0.51}), (0.0, 9, 1.0, {}), (1.0, 1, 1.0, {}), (1.0, 9, 1.0, {"length": 1}),
        (12.0, 10**5, 99.0, {}),
    ):  # fmt: skip
        yield outcome(planning.planned, epsilon, users, threshold, **more)
    tree = WordTree((1, 2), 3)
    leaves, counts = tree.encode(["abc", "abd", "xyz"]), np.array([50, 30, 9])
    for plan, how, compression in product(
        ("split", "one_report", "two_reports"), ("joint", "median"), ("hadamard", "projective")
    ):
        settings = TreeHist(tree, 2.0, 20.0, 8, 64, plan, estimator=how, compression=compression, max_survivors=40)
        yield (
            outcome(planning.predicted_f1, settings, leaves, counts),
            outcome(planning.expected_f1, settings, leaves, counts),
        )
        yield (
            planning.known_f1(settings, counts),
            [planning.expected_candidates(settings, users) for users in (2, 89, 10**6)],
        )
    yield planning.f1_of(np.array([0.9, 0.2, 0.0]), 0.7, np.array([True, False, True]))
    for epsilon, users, beta in product((0.05, 1.0, 12.0), (2, 5000, 10**9), (1e-9, 0.5)):
        yield outcome(planning.as_printed, tree, epsilon, users, beta)
        yield (
            outcome(theory.bitstogram_constants, users, epsilon, beta),
            outcome(theory.hashtogram_constants, users, epsilon, beta, 3.0),
        )
        yield (
            theory.paper_rows(users, beta),
            theory.paper_width(users, beta),
            theory.paper_error_bound(users, epsilon, 1 / beta),
        )
        yield theory.paper_threshold(users, epsilon, beta, 3.0), theory.succinct_hist_constants(users, epsilon, 5.0)
        yield [theory.noise_standard_error(users, epsilon, rows) for rows in (1, 2, 9, 10, 11, 200)]
        yield theory.mean_standard_error(users, epsilon), theory.median_error(COUNTS, users, epsilon, 3, 8, np.array([0, 1]))
        yield planning.several_words(epsilon / 2, users, 3, 1.0), outcome(planning.several_words, epsilon, users, 1, 0.5)
    for users, compression in product(
        (2, 131_071, 131_072, 819_199, 10**6, 1_048_576, 10**8), ("projective", "hadamard", "none")
    ):
        yield planning.sketch_size(users, compression)
    calls: tuple[tuple[Callable[..., Any], tuple[float, ...]], ...] = (
        (theory.paper_rows, (0, 0.1)), (theory.paper_width, (9, 1.0)), (theory.paper_threshold, (9, 1.0, 0.0, 2.0)),
        (theory.paper_error_bound, (9, 0.0, 1.0)), (theory.noise_standard_error, (9, 1.0, 0)),
        (theory.mean_standard_error, (0, 1.0)), (theory.normal_median_deviation, (0,)),
        (planning.several_words, (1.0, 9, 0)), (theory.succinct_hist_constants, (0, 1.0, 1.0)),
        (theory.bitstogram_constants, (9, 1.0, 0.0)),
    )  # fmt: skip
    for function, arguments in calls:
        yield outcome(function, *arguments)
    yield [theory.normal_median_deviation(size) for size in (4, 9, 10, 11, 12, 285)]


def stream_edges(rng: np.random.Generator) -> Iterator[Any]:
    for users, items, power in product((2, 3, 10**6), (2, 7), (0.5, 15.0)):
        yield (
            streams.power_law_counts(users, rng, n_items=items, power=power),
            streams.zipf_counts(users, rng, n_items=items, power=power),
        )
    yield (
        streams.random_words(13, rng, length=1),
        outcome(streams.random_words, 14, rng, length=1),
        streams.random_words(2, rng, length=9),
    )
    yield (
        streams.brown_counts(10**5, rng)[:60],
        streams.brown_keys()[:9],
        int(streams.brown_keys().sum()),
        streams.zipf_counts(1, rng),
    )
    yield streams.demo_3(5, 4, rng, n_values=3), streams.demo_3(1, 1, rng, n_values=1), streams.demo_3(40, 9, rng)
    values = KEYS[[[0, 1, 0], [2, 2, 2], [1, 1, 4]]]
    yield streams.repeated_values(values, np.array([1, 0, 1]), 2), streams.repeated_values(values[:1, :1], np.array([4]), 5)
    yield (
        streams.brown_keys().flags.writeable,
        outcome(streams.brown_counts, 0, rng),
        outcome(streams.power_law_counts, 1, rng),
    )
    yield (
        outcome(streams.zipf_counts, 0, rng),
        outcome(streams.zipf_counts, 9, rng, power=0.0),
        outcome(streams.demo_3, 0, 1, rng),
    )
    yield outcome(streams.power_law_counts, 9, rng, n_items=1), outcome(streams.random_words, 0, rng)


def scenes() -> dict[str, Scene]:
    warnings.simplefilter("ignore")
    every = (rappor_edges, searched_rappor_decoding, shuffled_edges, plan_edges, stream_edges)
    return {scene.__name__ if "searched" in scene.__name__ else f"words_{scene.__name__}": scene for scene in every}
