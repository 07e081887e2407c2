"""Scenes of the rivals of TreeHist and Bitstogram, of other trust, and of planning."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from evolvingdp.audit.recorded.heavy_hitters.searches import COUNTS, KEYS, WORDS, found
from evolvingdp.audit.recorded.scene import Scene, outcome
from evolvingdp.heavy_hitters import olh, planning, rappor_decoding, streams, theory
from evolvingdp.heavy_hitters.pem import PEM
from evolvingdp.heavy_hitters.rappor import Rappor
from evolvingdp.heavy_hitters.tree_hist import TreeHist
from evolvingdp.heavy_hitters.trust import prefix_counts, shuffling
from evolvingdp.heavy_hitters.trust.prefix_counts import PrefixCounts
from evolvingdp.heavy_hitters.trust.shuffling import Shuffled
from evolvingdp.heavy_hitters.word_tree import WordTree


def prefix_searches(rng: np.random.Generator) -> Iterator[Any]:
    tree = WordTree((1, 1), 2)
    leaves = tree.encode(WORDS.tolist())
    for epsilon, shares in product((0.3, 2.0, 5.0), ((0.5, 0.5), (0.1, 0.9))):
        search = PEM(tree, epsilon, 30.0, shares)
        reports = search.collect(np.repeat(leaves, COUNTS), *rng.spawn(2))
        yield (
            [(level.seeds, level.values) for level in reports.levels],
            reports.settings,
            found(search.search(reports + reports)),
        )
        yield found(search.simulate(leaves, COUNTS * 400, rng)), search.standard_errors(np.array([0.0, 70.0]), 900)
        yield outcome(PEM(tree, epsilon + 1, 30.0, shares).search, reports), search.oracle
        for servers in (1, 2, 3):
            counted = PrefixCounts(tree, epsilon, 40.0, servers, shares)
            generators = [rng] * servers
            yield [
                (counted.noise(level), counted.error(level), counted.cut(level), counted.passing(level)) for level in (0, 1)
            ]
            yield (
                found(counted.search(leaves, COUNTS * 3, generators)),
                outcome(counted.search, leaves, COUNTS, generators[1:]),
            )
            yield (
                found(counted.simulate(leaves, COUNTS * 3, rng)),
                found(PrefixCounts(tree, epsilon, 2.0, servers, shares).simulate(leaves, COUNTS, rng)),
            )
            yield prefix_counts.noise_tail(counted.noise(0), servers, 9)
    for wrong in ({"shares": (0.5, 0.4)}, {"servers": 0}, {"threshold": -1.0}, {"tree": WordTree((5, 5), 2, "bits")}):
        yield outcome(PrefixCounts, **({"tree": tree, "epsilon": 1.0, "threshold": 9.0, "shares": (0.5, 0.5)} | wrong))
        yield outcome(PEM, **({"tree": tree, "epsilon": 1.0, "threshold": 9.0, "shares": (0.5, 0.5)} | wrong))


def rappor_clients(rng: np.random.Generator) -> Iterator[Any]:
    for n_bits, n_hashes, noise, zero, one in product((4, 32), (1, 2), (0.0, 0.5), (0.25, 0.4), (0.75,)):
        settings = outcome(Rappor, n_bits, n_hashes, 3, noise, zero, one)
        yield settings
        if isinstance(settings, str):
            continue
        yield (
            settings.epsilon_permanent,
            settings.gain,
            [(settings.permanent_one(bit), settings.report_one(bit)) for bit in (0, 1)],
        )
        yield [settings.epsilon_of_reports(number) for number in (1, 2, 30, 1000)], settings.log_bit_probability(1, 2, 5)
        yield (
            settings.log_bit_probability(0, 2, 5),
            settings.loss_of_histories([1, 2], [3, 0]),
            settings.loss_of_histories([4], [4]),
        )
        for first, second in (([0, 3, 0], [0, 0, 3]), ([1, 0, 2, 5], [1, 5, 0, 2])):
            yield settings.loss_of_histories(first, second), settings.loss_of_histories(second, first)
        drawn = settings.draw_hashes(rng)
        cohorts = drawn.assign(9, rng)
        held = KEYS[rng.integers(0, 3, (9, 4))]
        yield cohorts, drawn.bloom(held[:, 0], cohorts), drawn.cells(held[:, 0], cohorts)
        memo = drawn.start()
        for keys in (*held.T, *held.T):
            memo, reports = drawn.step(memo, np.arange(9), cohorts, keys, rng)
            yield memo.bits, reports
        memo, reports = drawn.step(memo, np.array([0, 0, 4]), cohorts[[0, 0, 4]], KEYS[[4, 4, 4]], rng)
        yield memo.bits, reports, drawn.collect(held, cohorts, rng) + drawn.empty()
        for number in (1, 3):
            yield (
                drawn.simulate(KEYS, COUNTS, rng, n_reports=number),
                drawn.simulate(KEYS, COUNTS * 9000, rng, n_reports=number),
            )
    yield (
        outcome(Rappor.one_shot, 1.0),
        outcome(Rappor.one_shot, 4.0, n_bits=8),
        outcome(Rappor.one_shot, 4.0, n_hashes=2),
        outcome(Rappor, 99),
        outcome(Rappor, 32, 2, 0),
    )


def searched_rappor_decoder(rng: np.random.Generator) -> Iterator[Any]:
    """Post-processing: no privacy rests on it."""
    for n_hashes, scale in ((1, 4000), (2, 300)):
        drawn = Rappor(n_hashes=n_hashes, n_cohorts=8).draw_hashes(rng)
        counts = drawn.simulate(KEYS, COUNTS * scale, rng)
        for others in (10, 300):  # more than equations: the lasso
            told = rappor_decoding.decode(drawn, counts, np.append(KEYS, np.arange(100, 100 + others, dtype=np.uint64)))
            words = told.words.sort_values("key") if "key" in told.words else told.words
            yield (
                words[words.columns[:2]],
                told.dispersion,
                told.n_equations,
                outcome(told.listed),
                outcome(told.listed, 0.5),
            )


def shuffled(rng: np.random.Generator) -> Iterator[Any]:
    for epsilon, users, values, hashed in product((0.5, 3.0), (2, 900, 10**6), (2, 20), (False, True)):
        made = Shuffled(epsilon, users, values, hashed, 64)
        for total in (0.0, 0.1, 0.4, 2.0):
            delta = made.delta(total)
            yield made.blanket, delta, np.log(delta) if delta else 0.0
        yield made.total_epsilon(1e-6), made.total_epsilon(0.1)
    for epsilon, delta, users in product((0.1, 1.0), (1e-9, 1e-3), (10, 10**4, 10**7)):
        for hashed, rough in ((True, True), (False, True), (True, False)):
            yield outcome(shuffling.epsilon_of_a_report, epsilon, delta, users, lambda one: 3 + int(one), 8.0, hashed, rough)
    yield outcome(shuffling.epsilon_of_a_report, 1.0, 1e-13, 99, lambda _: 2, 8.0), outcome(Shuffled, 16.0, 9, 2)


def plans(rng: np.random.Generator) -> Iterator[Any]:
    brown = np.sort(np.append(COUNTS, rng.integers(1, 4, 300)))[::-1] * 40
    leaves = WordTree((2, 2, 2), 6).encode(streams.random_words(len(brown), rng).tolist())
    for epsilon, users, threshold in product((0.5, 2.0, 5.0), (10**5, 10**7), (0.002, 0.02)):
        for more in ({}, {"compression": "hadamard"}, {"least_share": 0.3, "rows_collide": False}):
            settings = outcome(planning.planned, epsilon, users, threshold * users, **more)
            yield settings
            if isinstance(settings, TreeHist) and not more:
                yield outcome(planning.predicted_f1, settings, leaves, brown), outcome(planning.known_f1, settings, brown)
                yield planning.expected_candidates(settings, users), outcome(planning.expected_f1, settings, leaves, brown)
        yield outcome(planning.several_words, epsilon, users, 9), outcome(planning.several_words, epsilon, users, 9, 100.0)
    yield (
        outcome(planning.as_printed, WordTree((5, 5), 2, "bits"), 2.0, 10**5, 0.1),
        planning.sketch_size(10**6),
        planning.sketch_size(99, "none"),
    )
    for users, epsilon in product((10**4, 10**8), (0.5, 4.0)):
        yield theory.noise_standard_error(users, epsilon, 9), theory.mean_standard_error(users, epsilon)
        yield theory.median_error(COUNTS, users, epsilon, 9, 64), theory.median_error(COUNTS, users, epsilon, 9, 64, 60)
        yield theory.paper_threshold(users, epsilon, 0.1, 30.0), theory.bitstogram_constants(users, epsilon, 0.1)
        yield theory.succinct_hist_constants(users, epsilon, 30.0), theory.hashtogram_constants(users, epsilon, 0.1, 9.0)
        yield theory.paper_error_bound(users, epsilon, 7.0), theory.paper_rows(users, 0.1), theory.paper_width(users, 0.1)
    yield (
        [theory.normal_median_deviation(size) for size in (1, 2, 3, 8, 101)],
        olh.explicit_hist(2.0),
        outcome(olh.explicit_hist, 37.0),
    )
    yield (
        olh.consistent(np.array([5.0, -3.0, 1.0]), 9),
        olh.consistent(np.array([-5.0, -3.0]), 9),
        olh.consistent(np.array([50.0, 3.0]), 9),
    )


def held_words(rng: np.random.Generator) -> Iterator[Any]:
    yield (
        streams.power_law_counts(1000, rng),
        streams.power_law_counts(1000, rng, n_items=5, power=1.0),
        streams.random_words(9, rng),
    )
    yield streams.zipf_counts(1000, rng, n_items=7), streams.demo_3(20, 3, rng), streams.random_words(9, rng, length=2)
    values, cohorts = KEYS[rng.integers(0, 3, (9, 4))], rng.integers(0, 3, 9)
    yield streams.repeated_values(values, cohorts, 3), outcome(streams.repeated_values, values, cohorts[1:], 3)


def scenes() -> dict[str, Scene]:
    every = (prefix_searches, rappor_clients, searched_rappor_decoder, shuffled, plans, held_words)
    return {scene.__name__ if "searched" in scene.__name__ else f"words_{scene.__name__}": scene for scene in every}
