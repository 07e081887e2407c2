"""Scenes of evolving data: edges, ties, options left as they are, sizes that refusals name, groups that vote alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from evolvingdp.audit.recorded.evolving.thresh import apart, bit_stream, word_stream
from evolvingdp.audit.recorded.scene import Scene, outcome
from evolvingdp.evolving import (
    baselines,
    constants,
    heavy_protocol,
    heavy_simulation,
    thresh_protocol,
    thresh_simulation,
)
from evolvingdp.evolving.count_law import CountLaw, at_least, at_most
from evolvingdp.evolving.heavy_projection import HashSigns
from evolvingdp.evolving.heavy_simulation import Hashed, Known
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.rivals import choosing, detection, memoized, once, once_words, tree
from evolvingdp.evolving.rivals.crew_thresh import CrewThresh
from evolvingdp.evolving.streams import BitStream, WordStream
from evolvingdp.evolving.thresh import Thresh


def sizes_named(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What `call` returns, or the numbers that its refusal names, whatever its words."""
    try:
        return call(*args, **kwargs)
    except ValueError as error:
        return [float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*\.?\d*(?:e[+-]?\d+)?", str(error))]


def edges_of_settings(_: np.random.Generator) -> Iterator[Any]:
    for users, horizon, length, group, groups, beta in product(
        (100, 10**5), (1, 2, 48), (3, 10**7), (50, 90), (1, 2), (0.05,)
    ):
        size, many = (users, horizon, length), users * group // 100
        yield sizes_named(constants.paper_epsilons, *size, many, groups, beta)
        yield sizes_named(constants.paper_estimate_epsilon, *size, 8, beta)
        yield sizes_named(constants.smallest_vote_epsilon, users, horizon, many, groups, beta)
        for epsilon, changes, start in product((0.05, 5.0), (None, 2), ("forced", "sentinel")):
            more = {"min_group": many, "n_groups": groups, "start": start, "changes": changes, "beta": beta}
            yield sizes_named(Thresh.paper, *size, epsilon, **more, spare=1)
            if length == 3 and groups == 1:
                yield sizes_named(HeavyThresh.paper, *size, epsilon, 8, **more)
    for beta in (0.0, 1.0, 1.5):
        yield outcome(constants.paper_vote_epsilon, 10**6, 8, 10**6, 1, beta), outcome(constants.unit, 9, 8, 4, beta)
        yield outcome(constants.smallest_vote_epsilon, 10**6, 8, 10**6, 1, beta)
        yield (
            outcome(constants.paper_estimate_epsilon, 10**6, 8, 4, 2, beta),
            outcome(Thresh, 9, 8, 4, 9.0, 1, 1, 1, 1, 0.1, beta),
        )
        yield outcome(CrewThresh.plan, 10**6, 8, 4, 1.0, changes=1, beta=beta)
        yield outcome(HeavyThresh.tuned, 10**6, 8, 4, 9.0, 5, changes=1, beta=beta)
    for changes, spare in ((-1, 0), (1, -1), (0, 1)):
        for make in (Thresh.paper, Thresh.tuned):
            yield outcome(make, 10**8, 64, 1000, 9.0, changes=changes, spare=spare)
    heavy = HeavyThresh.tuned(10**7, 64, 10**4, 9.0, 6, changes=2)
    voting = heavy.voting
    for unit in (voting.unit, voting.unit * 0.99, 0.3):
        yield replace(heavy, voting=replace(voting, unit=unit)).error_bound
    for margin in (0.01, constants.paper_margin(10**7, 64, 0.05)):
        yield replace(heavy, voting=replace(voting, margin=margin)).error_bound
    yield replace(heavy, voting=replace(voting, vote_epsilon=1e-4)).error_bound
    for cap, estimates, start in product((0, 3, 4, 5, 8, 9), (1, 3), ("forced", "sentinel")):
        settings = Thresh(60, 12, 900, 100.0, 1.5, 2.0, cap, estimates, unit=0.02, start=start)
        yield settings.changes, settings.privacy_loss, [settings.votes_left(epoch) for epoch in range(13)]
        yield (
            [settings.voting_epochs(epoch) for epoch in range(13)],
            outcome(replace, settings, epsilon=settings.privacy_loss),
        )
        yield outcome(replace, settings, epsilon=settings.privacy_loss * (1 - 1e-6))
    for unit, length, reach in product((0.05, 0.13, 0.2, 0.3, 0.6), (1, 9, 10), (1, 2)):
        yield sizes_named(Thresh, 60, 12, length, 100.0, 1.5, 2.0, 3, 3, unit=unit, reach=reach)
        yield sizes_named(Thresh, 60, 12, length, 100.0, 1.5, 2.0, 3, 3, unit=unit, reach=reach, start="sentinel")
    for horizon in (1, 2, 3, 4, 7, 8, 9):
        settings = Thresh(60, horizon, 10**4, 100.0, 1.5, 2.0, 3, 3, unit=0.02)
        epochs = range(1, horizon + 1)
        yield settings.levels, [settings.threshold(epoch) for epoch in epochs], [settings.cut(epoch) for epoch in epochs]
        settings = Thresh(60, horizon, 10, 100.0, 1.5, 2.0, 9, 3, unit=0.15)  # some thresholds are out of reach
        yield [settings.cut(epoch) for epoch in epochs], [settings.votes_left(epoch) for epoch in epochs]


def untold(rng: np.random.Generator) -> Iterator[Any]:
    """Options that nobody names."""
    bits, words = bit_stream(), word_stream()
    heavy = HeavyThresh(Thresh(26, 8, 4, 100.0, 1.0, 3.0, 3, 3, unit=0.05, reach=2), 3)
    for composition in baselines.COMPOSITIONS:
        yield baselines.epsilon_of_report(2.0, 7, composition), baselines.recompute(bits, 2.0, rng, composition=composition)
        yield list(baselines.recompute_words(heavy, words, rng, composition=composition))
        for delta in (1e-12, 1e-3):
            yield next(baselines.recompute_words(heavy, words, rng, composition=composition, delta=delta))
    yield (
        baselines.epsilon_of_report(2.0, 7),
        baselines.recompute(bits, 2.0, rng),
        once.Once(60, 12, 9, 1.0),
        once.Lots(5, 4),
    )
    yield list(baselines.recompute_words(heavy, words, rng)), once_words.OnceWords(26, 8, 3, 1.0)
    yield Thresh(60, 12, 9, 100.0, 1.5, 2.0, 3, 3, 0.02), tree.ChangeTree(9, 8, 1.0, 2), memoized.Memoized(9, 8, 1.0)
    yield Thresh.tuned(10**6, 64, 1000, 3.0, changes=2), Thresh.paper(10**8, 64, 1000, 8.0)
    tuned = HeavyThresh.tuned(10**7, 64, 10**4, 9.0, 6, changes=2, beta=0.3, spare=2, min_group=5 * 10**6, n_groups=2)
    yield tuned, tuned.error_bound, HeavyThresh.tuned(10**7, 64, 10**4, 9.0, 6, changes=2, deviation=0.01)
    yield heavy.report_plus(np.array([-3.0, -1.0, 0.0, 0.5, 1.0, 3.0])), heavy.voting.report_one(np.linspace(0, 1, 5))
    yield heavy.draw_plus(np.repeat([-3.0, -1.0, 0.0, 0.5, 1.0, 3.0], 9), rng), heavy.voting.draw_reports(np.ones(9), rng)
    yield choosing.choose(10**5, 16, 100, 1.0, changes=1), choosing.choose(10**5, 16, 100, 1.0, changes=0, methods=("once",))
    yield choosing.choose(10**6, 16, 100, 1.0, changes=1, beta=0.3).predicted, detection.penalty(9)
    yield (
        [choosing.noise(error) for error in (0.0, 0.1, 3.0)],
        outcome(choosing.choose, 9, 16, 1, 0.1, changes=0, methods=()),
    )
    yield outcome(choosing.choose, 9, 16, 1, 0.1, changes=0, methods=("crews", "tuned"))
    many = choosing.choose(300, 8, 5, 1.0, changes=1)
    for online, method in product((False, True), ("once", "detected", None)):
        stream = BitStream.make([300], [[0.2] * 4 + [0.8] * 4], 5)
        yield replace(many, online=online).simulate(stream, rng, method)
    for changes, online in product((2, 4), (False, True)):
        yield choosing.choose(10**5, 16, 100, 1.0, changes=changes, online=online).predicted
    yield choosing.choose(10**5, 16, 100, 1.0, changes=40, methods=("once", "detected")).predicted
    nobody = choosing.choose(3, 8, 5, 1.0, changes=0, methods=("once", "detected"))
    single = replace(nobody, settings={name: once.Once(3, 8, 5, 1.0) for name in nobody.settings})
    for method in ("once", "detected", "once", "detected"):
        yield single.simulate(BitStream.make([3], [[0.2] * 8], 5), rng, method)
    with_others = np.tile([2, 1, 1], (26, 1))
    for row in ([5, -1, 0], [1, 1, 1], [2, 1, 2]):
        table = with_others.copy()
        table[17] = row
        yield sizes_named(heavy_protocol.step, heavy, heavy_protocol.start(heavy), table, rng, rng)
    few = once.Once(3, 12, 9, 1.0)  # epochs in which no lot falls
    short = BitStream.make([2, 1], [[0.2] * 12, [0.7] * 12], 9)
    yield few.estimates(once.run(few, short, **apart(rng, "bits", "private"))), few.estimates(once.simulate(few, short, rng))
    yield outcome(once.Once, 3, 12, 9, 1.0, 13), once.Once(3, 12, 9, 1.0, 12).standard_error


def changed_late(rng: np.random.Generator) -> Iterator[Any]:
    """Means that change within epochs, user by user; and a server that asks others."""
    means = bit_stream().means
    late = BitStream.make([40, 20], means, 9, [0, 3, 0, 0, 5, 0, 0, 0, 0, 0, 0, 8], np.round(1 - means, 2))
    yield late.group_means, late.truth, [late.counts(epoch, rng) for epoch in (1, 2, 12)]
    for vote, margin, cap in ((1.5, None, 3), (6.0, 0.3, 2), (0.05, 0.01, 8)):
        settings = Thresh(60, 12, 9, 200.0, vote, 2.0, cap, 3, unit=0.02, margin=margin)
        yield thresh_protocol.run(settings, late, **apart(rng, "bits", "private"))
        traced = thresh_simulation.simulate(settings, late, rng)
        yield traced.public, traced.yes, traced.max_votes
        state = thresh_protocol.start(settings)
        for epoch in range(1, 13):
            counts = late.counts(epoch, rng)
            state, release = thresh_protocol.step(settings, state, counts, rng, lambda last: 0.25 + last.estimates_left)
            yield release, state.used, state.reference, release.live
    for sizes in ([], [0, 4], [3]):
        yield outcome(BitStream.make, sizes, np.full((1, 2), 0.5), 9), outcome(WordStream.make, sizes, [[1.0]], [[0]], 4)
    for more in (
        ([0, 9], [[0.1, 0.1]]),
        ([0, -1], [[0.1, 0.1]]),
        ([0, 8], None),
        ([0, 8.0], [[0.1, 0.1]]),
        ([0, 8], [[0.1, 1.1]]),
    ):
        yield outcome(BitStream.make, [3], [[0.5, 0.5]], 9, *more)


def ties(rng: np.random.Generator) -> Iterator[Any]:
    """As many yes votes as the cut, and distances at a threshold."""
    users, flip = 8, Thresh(8, 8, 4, 99.0, 0.5, 1.0, 4, 3, unit=0.05).vote_randomizer.flip
    for votes in range(4, 8):
        margin = votes / users - flip
        if flip + margin != votes / users:
            continue
        settings = Thresh(users, 8, 40, 99.0, 0.5, 1.0, 4, 3, unit=0.05, margin=margin, reach=2)
        bits, words = (
            BitStream.make([8], [[0.2, 0.8] * 4], 40),
            WordStream.make([8], [[1.0, 0.0], [0.0, 1.0]], [[0, 1] * 4], 40),
        )
        for _ in range(3):
            yield thresh_protocol.run(settings, bits, **apart(rng, "bits", "private"))
            yield thresh_simulation.simulate(settings, bits, rng).public
            yield [release.updated for release in heavy_protocol.run(HeavyThresh(settings, 2), words, *rng.spawn(3))]
            yield [release.updated for release in heavy_simulation.simulate(HeavyThresh(settings, 2), words, rng).public]
    for unit, epoch in product((0.0625, 0.125, 0.05), range(1, 9)):  # thresholds that are counts, and not
        settings = Thresh(17, 8, 16, 99.0, 0.5, 1.0, 1, 3, unit=unit, reach=2)
        counts, used = np.arange(17), np.arange(17) % 3
        yield settings.cut(epoch), settings.votes_yes(epoch, counts, np.full(17, 8), used)
        table, heavy = np.stack([counts, 16 - counts], axis=1), HeavyThresh(settings, 2)
        yield heavy.distances(table, table[::-1]), heavy.votes_yes(epoch, table, table[::-1], used)
        yield heavy.votes_yes(epoch, table, None, used)


def counted(rng: np.random.Generator) -> Iterator[Any]:
    """The law of a count, and counts of many users at once, with ranges that are empty, touch and overlap."""
    for bits, mean in ((1, 0.5), (9, 0.0), (9, 1.0), (9, 0.1), (400, 0.97), (3000, 0.001), (10**5, 0.5)):
        law = CountLaw.binomial(bits, mean)
        yield law.low, len(law.mass), law.values[[0, -1]], law.mass[:: max(1, len(law.mass) // 40)]
        late = CountLaw.epoch(bits + 300, mean, 300, 0.97)
        yield late.low, len(late.mass), late.mass[:: max(1, len(late.mass) // 40)], CountLaw.epoch(bits, mean).low
        count = np.array([-1.0, 0.0, 1.0, bits * mean, bits - 1.0, bits, bits + 1.0])
        for tail in (at_least, at_most):
            yield tail(bits, np.array([mean]), count), tail(bits, np.array([0.3]), count)
    for bits, rows, size in product((9, 2000), (1, 3, 40), (1, 7, 10**5)):
        law = CountLaw.binomial(bits, 0.4)
        last = len(law.mass)
        low = np.sort(rng.integers(0, last // 2 + 1, rows))
        high = np.sort(np.minimum(last, low + rng.integers(1, last // 2 + 1, rows)))
        low = np.minimum(low, high - 1)
        users = rng.integers(0, size + 1, (rows, 2)) * (rng.random((rows, 1)) < 0.8)
        inside, outside = (
            law.draw_inside(users, low, high, rng),
            law.draw_outside(users * (low > 0)[:, None], low, high, rng),
        )
        weights = np.arange(last) % 97
        yield inside.sum(axis=0), weights @ inside, outside.sum(axis=0), weights @ outside
        yield np.flatnonzero(inside.any(axis=1))[:1], np.flatnonzero(outside.any(axis=1))[:1]

    law, apart_by = CountLaw.binomial(2000, 0.4), rng.integers(0, 999, (40, 2))
    for width in (1, 5, 10, 25):  # ranges with gaps, that touch, that overlap
        low = 60 + 10 * np.arange(40)
        for drawn in (law.draw_inside(apart_by, low, low + width, rng), law.draw_outside(apart_by, low, low + width, rng)):
            yield drawn.sum(axis=0), np.arange(len(drawn)) % 97 @ drawn


def alike(rng: np.random.Generator) -> Iterator[Any]:
    """Many words, or long epochs: groups that vote as one."""
    which, far = [[0, 0, 1, 1, 0, 1, 1, 0], [0] * 8], [[0.98, 0.02, 0.0], [0.0, 0.02, 0.98]]
    for start, exhaustion, length, cap, phi in product(
        ("forced", "sentinel"), ("freeze", "printed"), (13_000, 10**6), (1, 4), (None, HashSigns(3, 6, 5))
    ):
        words = WordStream.make([30, 6], far, which, length)
        voting = Thresh(
            36, 8, length, 100.0, 2.0, 1.0, cap, 2, 0.05, start=start, exhaustion=exhaustion, margin=0.3, reach=2
        )
        traced = outcome(heavy_simulation.simulate, HeavyThresh(voting, 3, phi), words, rng)
        if isinstance(traced, str):
            yield traced
            continue
        yield traced.public, traced.yes, traced.votes_cast, np.log(max(traced.distance, 1e-300))
    for gap in (0.0, 1e-4, 1e-2):  # how near a threshold a group may come
        near = WordStream.make([9], [[0.5, 0.3, 0.2], [0.5 + 0.05 - gap, 0.25 + gap, 0.2]], [[0, 1, 1, 0]], 10**7)
        voting = Thresh(9, 4, 10**7, 100.0, 2.0, 1.0, 4, 2, 0.05 / 3, margin=0.3, reach=2)
        yield outcome(lambda *args: heavy_simulation.simulate(*args).yes, HeavyThresh(voting, 3), near, rng)
    for held, length in ((3, 75), (3, 76), (4, 24), (4, 25), (2, 64_000), (2, 66_000), (62, 1), (63, 1), (1, 10**9)):
        laws = np.zeros((1, 80))
        laws[0, :held] = 1 / held
        stream = WordStream.make([5], laws / laws.sum(), [[0, 0]], length)
        settings = HeavyThresh(Thresh(5, 2, length, 9.0, 1.0, 1.0, 1, 2, 0.05, reach=2), 80)
        known = Known.make(settings, stream, 0)
        yield (
            "many"
            if known is None
            else (known.laws[0][1][:60], len(known.laws[0][1]), known.patterns.shape, known.pattern_of)
        )
        for size, law in product((0, 1, 35, 37, 1000, 10**6), (None, 0)):
            yield Hashed(settings, stream).reports(size, law, rng)[:9]
    stream = word_stream()
    hashed = Hashed(HeavyThresh(Thresh(26, 8, 4, 9.0, 1.0, 1.0, 1, 2, 0.05, reach=2), 3), stream)
    yield [hashed[law] for law in (0, 2, 1)], hashed.largest_move(0, 2), hashed.largest_move(2, 0), hashed.largest_move(1, 1)
    yield [heavy_simulation.reported_sums(hashed, epoch, rng) for epoch in (1, 8)]
    equal = WordStream.make([20, 20], [[0.6, 0.3, 0.1]], [[0] * 8] * 2, 4)  # groups of one size and law
    yield heavy_simulation.reported_sums(Hashed(hashed.settings, equal), 1, rng)


def scenes() -> dict[str, Scene]:
    every = (edges_of_settings, untold, changed_late, ties, counted, alike)
    return {f"evolving_{scene.__name__}": scene for scene in every}
