"""Scenes of the rivals of THRESH and HEAVYTHRESH."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from evolvingdp.audit.recorded.evolving.thresh import apart, bit_stream, word_stream
from evolvingdp.audit.recorded.scene import Scene, outcome
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.rivals import choosing, crew_thresh, crew_words, detection, memoized, once, once_words, signs, tree
from evolvingdp.evolving.rivals.crew_thresh import CrewThresh
from evolvingdp.evolving.rivals.crew_words import CrewWords
from evolvingdp.evolving.rivals.threshold_stream import ThresholdStream
from evolvingdp.evolving.streams import BitStream, WordStream
from evolvingdp.evolving.thresh import Thresh


def each_once(rng: np.random.Generator) -> Iterator[Any]:
    for every, epsilon in product((1, 3), (0.4, 3.0)):
        settings = once.Once(60, 12, 9, epsilon, every)
        for tally in (
            once.run(settings, bit_stream(), **apart(rng, "bits", "private")),
            once.simulate(settings, bit_stream(), rng),
        ):
            yield tally, settings.estimates(tally), settings.variance, settings.standard_error
        state = once.start(settings, rng)
        for epoch in range(1, 13):
            state, tally = once.step(settings, state, bit_stream().counts(epoch, rng), rng)
            yield state, tally + tally
        for oracle in once_words.ORACLES:
            words = once_words.OnceWords(26, 8, 3, epsilon, oracle, every)
            yield once_words.run(words, word_stream(), **apart(rng, "words", "public", "private"))
            tallied = once_words.simulate(words, word_stream(), rng)
            yield (
                tallied + tallied,
                words.estimates(tallied),
                words.variances(np.array([0.0, 0.3])),
                words.standard_error,
                words.width,
            )


def by_lot(rng: np.random.Generator) -> Iterator[Any]:
    for reports, changes, a, cap in product((1, 2), (1, 2, 3), (0.7, 3.0), (1, 2)):
        voting = Thresh(12, 12, 9, 2 * a * cap, a, 0.0, cap, changes + 2, unit=0.02, margin=0.2)
        settings = outcome(CrewThresh, 90, 2 * a * cap, voting, changes=changes, cell=4, spare_cell=2, reports=reports)
        yield settings
        if isinstance(settings, str):
            continue
        three = BitStream.make([50, 40], bit_stream().means, 9)
        yield crew_thresh.run(settings, three, **apart(rng, "bits", "private")), crew_thresh.simulate(settings, three, rng)
        yield settings.parts, settings.crews, [settings.reporting(update) for update in (0, 1, 2, 3)]
        yield (
            [settings.standard_error(update) for update in range(changes + 1)],
            settings.predicted_error,
            settings.error_bound,
        )
        yield [settings.randomizer(update) for update in (0, 1, 2, 3)], settings.estimate(1, 2)
    for users, epsilon, changes in product((10**5, 10**7), (0.5, 4.0), (1, 3)):
        planned = outcome(CrewThresh.plan, users, 64, 1000, epsilon, changes=changes)
        yield planned, outcome(CrewWords.plan, users, 64, 1000, epsilon, 5, changes=changes)
        if isinstance(planned, CrewThresh):
            stream = BitStream.make([users], [[0.2] * 30 + [0.8] * 34], 1000)
            yield crew_thresh.simulate(planned, stream, rng), planned.predicted_error, planned.error_bound
    for cap, estimates in product((1, 2), (2, 3)):
        voting = Thresh(6, 8, 4, 6.0 * cap, 3.0, 0.0, cap, estimates, unit=0.05, margin=0.2, reach=2)
        words = outcome(CrewWords, 26, 6.0 * cap, HeavyThresh(voting, 3), changes=1, cell=3, spare_cell=1)
        if isinstance(words, CrewWords):
            yield crew_words.run(words, word_stream(), **apart(rng, "words", "public", "private"))
            yield crew_words.simulate(words, word_stream(), rng)
        yield words
    # a few whose data change in every epoch: votes without an update, until they are used up
    bits = BitStream.make([21, 7], [[0.2] * 12, [0.1, 0.9] * 6], 99)
    held = WordStream.make([21, 7], [[0.99, 0.01, 0.0], [0.0, 0.01, 0.99]], [[0] * 12, [0, 1] * 6], 99)
    for cap in (1, 2):
        voting = Thresh(12, 12, 99, 4.8 * cap, 2.4, 0.0, cap, 2, unit=0.02, margin=0.6)
        crews = CrewThresh(28, 4.8 * cap, voting, changes=0, cell=3, spare_cell=1)
        yield crew_thresh.run(crews, bits, **apart(rng, "bits", "private")), crew_thresh.simulate(crews, bits, rng)
        words = CrewWords(28, 4.8 * cap, HeavyThresh(replace(voting, reach=2), 3), changes=0, cell=3, spare_cell=1)
        yield crew_words.run(words, held, **apart(rng, "words", "public", "private"))
        voted, heard = crew_thresh.start(crews, rng), crew_words.start(words, rng)
        for epoch in range(1, 13):  # what users keep is secret, and recorded: votes that are not heard show nowhere else
            voted, _ = crew_thresh.step(crews, voted, bits.counts(epoch, rng), rng)
            heard, _ = crew_words.step(words, heard, held.counts(epoch, rng), *rng.spawn(2))
            yield voted.votes.used, heard.votes.used, voted.votes.reference, heard.votes.reference, voted.order, heard.order
        yield outcome(crew_words.simulate, words, held, rng)
    voting = Thresh(9, 8, 4, 3.0, 1.5, 0.0, 1, 2, unit=0.05, margin=0.05, reach=2)
    words = CrewWords(26, 3.0, HeavyThresh(voting, 3), changes=1, cell=3, spare_cell=1)
    yield (
        crew_words.run(words, word_stream(), **apart(rng, "words", "public", "private")),
        crew_words.simulate(words, word_stream(), rng),
    )
    yield (
        words.parts,
        [words.reporters(update) for update in (0, 1, 2)],
        words.standard_error(1),
        words.standard_error(0, 0.4),
    )


def few_changes(rng: np.random.Generator) -> Iterator[Any]:
    stream = ThresholdStream.make(50, [0.1, 0.1, 0.5, 0.5, 0.4, 0.4, 0.9])
    yield stream.truth, stream.kinds(), stream.most_changes(), stream.truncation_bias(1), stream.read_once, stream.horizon
    for randomizer, epsilon, changes, tuned in product(tree.RANDOMIZERS, (0.5, 3.0), (1, 3), (False, True)):
        settings = tree.ChangeTree(50, 7, epsilon, changes, randomizer, tuned)
        yield settings.privacy_loss, settings.gains, settings.shares, settings.standard_errors, settings.nodes
        for tally in (tree.run(settings, stream, **apart(rng, "bits", "private")), tree.simulate(settings, stream, rng)):
            yield tally, settings.estimates(tally), tally + tally
        yield outcome(tree.simulate, replace(settings, n_users=49), stream, rng)
    for changes, epsilon in product((1, 2, 40), (0.1, 1.0, 6.0)):
        for make in (signs.erlingsson, signs.future_rand, signs.best):
            flips = make(changes, epsilon)
            yield flips.pattern, flips.gain, flips.loss, flips.flip_chances, flips.flips(5, rng)
    for epsilon, first in product((0.5, 3.0), (0.1, 0.4)):
        for made in (
            memoized.Memoized.rappor(50, 7, epsilon, first),
            memoized.Memoized.dbitflip(50, 7, epsilon),
            memoized.Memoized.loloha(50, 7, epsilon, first),
        ):
            ones = memoized.run(made, stream, **apart(rng, "bits", "private"))
            yield made, ones, made.estimates(ones), memoized.simulate(made, stream, rng), made.agree, made.spread
            yield made.transcript_loss(), made.transcript_loss(3), made.one_value_loss(), made.one_value_loss(3)
            yield (
                made.standard_errors(np.array([0.1, 0.5])),
                outcome(memoized.simulate, replace(made, n_users=49), stream, rng),
            )
            bits = BitStream.make([30, 20], [stream.means, 1 - stream.means], 1)
            yield memoized.run(made, bits, **apart(rng, "bits", "private")), memoized.simulate(made, bits, rng)
            yield replace(made, horizon=300).transcript_loss()


def chosen(rng: np.random.Generator) -> Iterator[Any]:
    for users, changes, online in product((10**4, 10**6), (0, 3), (False, True)):
        choice = outcome(choosing.choose, users, 64, 1000, 1.0, changes=changes, online=online)
        yield choice
        if not isinstance(choice, str):
            stream = BitStream.make([users], [[0.2] * 30 + [0.8] * 34], 1000)
            for method in choice.predicted:
                yield choice.simulate(stream, rng, method)


def detected(rng: np.random.Generator) -> Iterator[Any]:
    truth = np.repeat([0.2, 0.5, 0.1, 0.1], 40)
    for size, online, alarm in product((3, 30), (False, True), (0.05, 0.5)):
        reports = rng.integers(0, 2 * size, 160)
        estimates = truth + rng.normal(size=160) / np.sqrt(np.maximum(reports, 1))
        fit = detection.detect(estimates, reports, 1.0, false_alarm=alarm, online=online)
        yield fit, fit.changes, fit.standard_errors(1.0), detection.bound(fit, estimates, reports, 1.0, 0.1)
        table = np.stack([estimates, 0.3 - estimates, rng.normal(size=160) / 9], axis=1)
        words = detection.frequent(table, reports, np.array([1.0, 1.0, 0.5]))
        yield words, detection.detect(table, reports, [1.0, 1.0, 0.5], false_alarm=alarm, online=online)
        yield detection.detect(table, reports, 1.0, words=np.array([0, 1]), false_alarm=alarm, online=online)
    for horizon, dimensions, alarm in product((2, 30, 5000), (1, 4), (0.01, 0.3)):
        yield detection.penalty(horizon, dimensions, alarm)


def scenes() -> dict[str, Scene]:
    every = (each_once, by_lot, few_changes, chosen, detected)
    return {f"evolving_{scene.__name__}": scene for scene in every}
