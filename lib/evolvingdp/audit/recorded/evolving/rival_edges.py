"""Scenes of the rivals: crews that relieve each other, plans for groups, means that move, and hardly anybody."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from evolvingdp.audit.recorded.evolving.edges import sizes_named
from evolvingdp.audit.recorded.evolving.thresh import apart
from evolvingdp.audit.recorded.scene import Scene, outcome, taken
from evolvingdp.evolving import heavy_protocol, heavy_simulation, thresh_protocol, thresh_simulation
from evolvingdp.evolving.heavy_projection import HashSigns
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.rivals import choosing, crew_thresh, crew_words, detection, memoized, once, once_words, signs, tree
from evolvingdp.evolving.rivals.crew_thresh import CrewThresh
from evolvingdp.evolving.rivals.crew_words import CrewWords
from evolvingdp.evolving.rivals.threshold_stream import ThresholdStream
from evolvingdp.evolving.streams import BitStream, WordStream
from evolvingdp.evolving.thresh import Thresh


def relieved(rng: np.random.Generator) -> Iterator[Any]:
    """Crews that relieve each other at every change, planned and spare; and plans for parts of the users."""
    bits = BitStream.make([60, 20], [[0.05, 0.05, 0.95, 0.95, 0.05, 0.5, 0.95, 0.95], [0.1, 0.2] * 4], 100)
    laws = [[0.97, 0.02, 0.01], [0.01, 0.02, 0.97], [0.1, 0.8, 0.1]]
    words = WordStream.make([60, 20], laws, [[0, 0, 1, 1, 2, 2, 0, 0], [0, 1, 1, 1, 2, 2, 2, 0]], 40)
    for vote, changes, reports in ((6.0, 2, 1), (6.0, 1, 2), (3.0, 3, 3)):
        voting = Thresh(12, 8, 100, 8 * vote, vote, 0.0, 4, 4, unit=0.02, margin=0.4)
        crews = CrewThresh(80, 8 * vote, voting, changes=changes, cell=7, spare_cell=2, reports=reports)
        yield crew_thresh.run(crews, bits, **apart(rng, "bits", "private")), crew_thresh.simulate(crews, bits, rng)
        traced = crew_thresh.traced(crews, bits, rng)
        yield traced.estimate, traced.updated, traced.frozen, traced.yes, traced.max_votes
        heavy = HeavyThresh(replace(voting, epoch_length=40, reach=2, vote_cap=1, vote_epsilon=4.9), 3)
        of_words = CrewWords(80, 9.8, heavy, changes=changes, cell=7, spare_cell=2)
        yield crew_words.run(of_words, words, **apart(rng, "words", "public", "private"))
        simulated = crew_words.simulate(of_words, words, rng)
        yield simulated.public, simulated.yes, simulated.votes_cast
        voted, heard = crew_thresh.start(crews, rng), crew_words.start(of_words, rng)
        for epoch in range(1, 9):
            voted, first = crew_thresh.step(crews, voted, bits.counts(epoch, rng), rng)
            heard, second = crew_words.step(of_words, heard, words.counts(epoch, rng), *rng.spawn(2))
            yield first, second, voted.since, heard.since, voted.votes.reference, heard.votes.reference
            yield voted.votes.used, heard.votes.used
        yield taken(crew_thresh.step, crews, voted, bits.counts(1, rng), rng), of_words.standard_error()
        yield of_words.parts, [of_words.reporters(update) for update in range(4)], of_words.standard_error(3, 0.2)
    for (users, epsilon, beta), (group, groups) in product(
        ((4000, 12.0, 0.05), (4000, 1.0, 0.5), (10**6, 1.0, 0.05), (10**6, 0.05, 0.5)), ((None, 1), (0.5, 2), (0.1, 3))
    ):
        more = {"min_group": group and int(group * users), "n_groups": groups, "beta": beta}
        for changes, spare in ((2, 1), (1, 3)):
            planned = sizes_named(CrewThresh.plan, users, 20, 500, epsilon, changes=changes, spare=spare, **more)
            yield planned
            if isinstance(planned, CrewThresh):
                yield planned.error_bound, planned.predicted_error, planned.parts, planned.voting.privacy_loss
        yield sizes_named(CrewWords.plan, users, 20, 500, min(epsilon, 9.0), 5, changes=1, phi=HashSigns(5, 9, 1), **more)


def moving(rng: np.random.Generator) -> Iterator[Any]:
    """Means that segments do not explain, epochs with few reports or none; trees and memos of hardly anybody."""
    reports = np.tile([0, 1, 1, 2, 5], 40)
    for noise, online in product((0.01, 3.0), (False, True)):
        releases = np.cumsum(rng.normal(size=200)) + noise * rng.normal(size=200)
        fit = detection.detect(np.where(reports > 0, releases, np.nan), reports, noise**2, online=online)
        yield fit, fit.changes, fit.standard_errors(noise), detection.bound(fit, releases, reports, noise**2)
        table = np.stack([releases, -releases], axis=1)
        yield detection.detect(table, reports, [noise, 1.0], online=online)
    level = np.repeat([0.0, 3.0, 2.0, 7.0, 6.5, 1.0], [150, 90, 70, 5, 120, 65]) + rng.normal(size=500)
    for online in (False, True):
        yield detection.detect(level, rng.integers(1, 4, 500), 1.0, online=online)
    flat = np.stack([np.full(9, level) for level in (0.5, 0.6, 0.4, -2.0)], axis=1)
    graded = np.tile(np.linspace(-1, 3, 33), (9, 1))
    graded[0], graded[1] = np.nan, graded[1][::-1] * 3  # epochs of no report, and of one
    for spread in (0.3, 1.0, 9.0):
        yield (
            detection.frequent(graded, np.arange(9), spread),
            detection.frequent(graded, np.arange(9), np.linspace(1, 9, 33)),
        )
    yield detection.frequent(flat, np.full(9, 4), np.ones(4)), detection.frequent(flat / 99, np.full(9, 4), 1.0)
    yield detection.detect(np.array([0.5]), np.array([1]), 1.0), outcome(detection.detect, np.zeros(3), np.zeros(3), 1.0)
    yield outcome(detection.detect, np.zeros(3), np.ones(2), 1.0), outcome(detection.detect, np.zeros(3), np.ones(3), 0.0)
    for users, tuned, randomizer in product((1, 4), (False, True), tree.RANDOMIZERS):
        stream = ThresholdStream.make(users, [0.5, 0.1, 0.9, 0.9, 0.2, 0.0, 1.0, 0.5, 0.5, 0.4, 0.1])
        settings = tree.ChangeTree(users, 11, 4.0, 3, randomizer, tuned)
        for tally in (tree.run(settings, stream, **apart(rng, "bits", "private")), tree.simulate(settings, stream, rng)):
            yield tally, settings.estimates(tally), settings.standard_errors, settings.privacy_loss, settings.gains
        yield [stream.truncation_bias(changes) for changes in (1, 2, 9)], [law.loss for law in settings.signs]
    for changes, epsilon in product((24, 25, 60), (0.05, 12.0)):
        for make in (signs.erlingsson, signs.best, signs.future_rand):
            law = make(changes, epsilon)
            yield law.gain, law.loss, np.log(law.pattern[[0, changes // 2, -1]])
    yield outcome(signs.best, 1001, 1.0), outcome(signs.erlingsson, 0, 1.0), outcome(signs.future_rand, 3, 0.0)
    for epsilon, first, epochs in product((0.05, 1.0, 5.0), (0.02, 0.9), (1, 2, 9)):
        yield outcome(memoized.Memoized.loloha, 9, epochs, epsilon, first)
        for made in (memoized.Memoized(9, epochs, epsilon, first), memoized.Memoized(9, epochs, epsilon, np.inf, True)):
            yield made, made.transcript_loss(), made.one_value_loss(), made.transcript_loss(1), made.one_value_loss(1)
            bits = rng.integers(0, 2, (9, epochs), dtype=np.uint8)
            yield (
                memoized.collect(made, bits, rng),
                memoized.collect(made, bits, rng),
                made.standard_errors(np.array([0.0, 1.0])),
            )


def beyond_the_ends(rng: np.random.Generator) -> Iterator[Any]:
    """Rows too many and too few, streams of other sizes, an epoch after the last, settings at the ends of what is taken."""
    voting = Thresh(60, 3, 9, 9e3, 1.5, 2.0, 3, 3, unit=0.02)
    crew, heavy = replace(voting, n_users=8, estimate_epsilon=0.0), HeavyThresh(voting, 3)
    several = CrewThresh(60, 9e3, crew, changes=2, cell=3, spare_cell=2)
    spoken, single = once_words.OnceWords(60, 3, 3, 1.0), once.Once(60, 3, 9, 1.0)
    of_words = CrewWords(60, 9.0, HeavyThresh(crew, 3), changes=2, cell=3, spare_cell=2)
    bits, words = BitStream.make([60], [[0.2, 0.9, 0.2]], 9), WordStream.make([60], [[0.9, 0.1, 0.0]], [[0, 0, 0]], 9)
    held, counted = bits.counts(1, rng), words.counts(1, rng)
    played: tuple[tuple[Any, Any, Any, Any, int], ...] = (
        (thresh_protocol.step, voting, thresh_protocol.start(voting), held, 1),
        (crew_thresh.step, several, crew_thresh.start(several, rng), held, 1),
        (once.step, single, once.start(single, rng), held, 1),
        (heavy_protocol.step, heavy, heavy_protocol.start(heavy), counted, 2),
        (crew_words.step, of_words, crew_words.start(of_words, rng), counted, 2),
        (once_words.step, spoken, once_words.start(spoken, rng), np.eye(3, dtype=int)[np.arange(60) % 3], 2),
    )
    for step, settings, state, rows, generators in played:
        for wrong in (rows[:-1], np.concatenate([rows, rows[:1]]), rows - 1, rows + 9, rows.astype(float)):
            yield taken(step, settings, state, wrong, *rng.spawn(generators))
        for _ in range(4):
            told = outcome(step, settings, state, rows, *rng.spawn(generators))
            yield told if isinstance(told, str) else "goes on"
            state = state if isinstance(told, str) else told[0]
    bit_streams = [
        BitStream.make(*sizes) for sizes in (([60], bits.means, 8), ([60], [[0.2] * 4], 9), ([61], bits.means, 9))
    ]
    by_bits: tuple[tuple[Any, Any], ...] = (
        (thresh_simulation.simulate, voting), (crew_thresh.simulate, several), (crew_thresh.traced, several),
        (once.simulate, single),
    )  # fmt: skip
    for stream, (simulate, settings) in product((bits, *bit_streams), by_bits):
        yield taken(simulate, settings, stream, rng)
    shape = [[0.9, 0.1, 0.0]]
    word_streams = (
        WordStream.make([61], shape, [[0] * 3], 9), WordStream.make([60], shape, [[0] * 4], 9),
        WordStream.make([60], shape, [[0] * 3], 8), WordStream.make([60], [[0.9, 0.1]], [[0] * 3], 9),
    )  # fmt: skip
    by_words: tuple[tuple[Any, Any], ...] = (
        (heavy_simulation.simulate, heavy), (crew_words.simulate, of_words), (once_words.simulate, spoken),
    )  # fmt: skip
    for sent, (simulate, settings) in product((words, *word_streams), by_words):
        yield taken(simulate, settings, sent, rng)
    yield [taken(replace, several, changes=changes) for changes in (-1, 0, 2, 3)]
    yield [taken(replace, of_words, changes=changes) for changes in (-1, 0, 2, 3)]
    yield [taken(replace, made, n_users=users) for made in (several, of_words) for users in range(20, 40)]
    yield [taken(ThresholdStream.make, 9, means) for means in ([], [[0.5]], [0.5], [1.0], [1.01], [-0.01], [np.nan])]
    yield [outcome(HashSigns, words, 9, seed) for words in (1, 2, 2**32, 2**32 + 1) for seed in (-1, 0, 2**64 - 1, 2**64)]
    yield [taken(replace, heavy, phi=phi) for phi in (3, HashSigns(3, 9, 1), HashSigns(4, 9, 1), HashSigns(2, 9, 1))]
    for length in (3 * 10**18, 3_074_457_345_618_258_602, 3_074_457_345_618_258_603):
        yield taken(HeavyThresh, replace(voting, epoch_length=length), 3)
    for width in (1, 2, 3, 4, 9):
        sentinel = replace(voting, start="sentinel", epoch_length=900, epsilon=9e3)
        yield taken(HeavyThresh, sentinel, 3, HashSigns(3, width, 1))
    of_all: tuple[tuple[Any, Any], ...] = (
        (memoized.collect, memoized.Memoized(9, 4, 1.0)), (tree.collect, tree.ChangeTree(9, 4, 1.0, 2)),
    )  # fmt: skip
    for collect, settings in of_all:
        yield [taken(collect, settings, np.zeros((9, epochs), dtype=np.uint8), rng) for epochs in (3, 4, 5)]
    yield taken(choosing.choose, 9, 0, 9, 1.0, changes=1), taken(choosing.choose, 9, 8, 9, 1.0, changes=-1)
    for epsilon, group in product((1e-9, 1e-3, 0.02), (None, 1, 10**5)):
        yield sizes_named(CrewThresh.plan, 10**6, 20, 500, epsilon, changes=1, min_group=group)


def scenes() -> dict[str, Scene]:
    return {f"evolving_{scene.__name__}": scene for scene in (relieved, moving, beyond_the_ends)}
