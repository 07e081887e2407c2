"""Scenes of THRESH and HEAVYTHRESH, their simulations, and what they refuse."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from evolvingdp.audit.recorded.scene import Scene, outcome
from evolvingdp.evolving import (
    baselines,
    constants,
    heavy_protocol,
    heavy_simulation,
    streams,
    thresh_protocol,
    thresh_simulation,
)
from evolvingdp.evolving.heavy_projection import Hadamard, HashSigns
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.rivals import crew_thresh, once, once_words
from evolvingdp.evolving.rivals.crew_thresh import CrewThresh
from evolvingdp.evolving.rivals.threshold_stream import ThresholdStream
from evolvingdp.evolving.streams import BitStream, WordStream
from evolvingdp.evolving.thresh import Thresh


def _voting(horizon: int = 12, length: int = 9, **changes: Any) -> Thresh:
    base = {"vote_epsilon": 1.5, "estimate_epsilon": 2.0, "vote_cap": 3, "estimate_cap": 3, "unit": 0.02} | changes
    return Thresh(60, horizon, length, 100.0, **base)


def bit_stream(length: int = 9) -> BitStream:
    means = [[0.1] * 4 + [0.9] * 3 + [0.3] * 5, [0.5] * 6 + [0.05] * 6]
    return BitStream.make([40, 20], means, length)


def apart(rng: np.random.Generator, *names: str) -> dict[str, Any]:
    """A generator of its own for each kind of randomness, so that it shows which one is read."""
    return dict(zip(names, rng.spawn(len(names)), strict=True))


_OPTIONS: list[dict[str, Any]] = [
    {"start": start, "exhaustion": exhaustion, "margin": margin}
    for start, exhaustion, margin in product(("forced", "sentinel"), ("freeze", "printed"), (None, 0.05))
]


def thresh_online(rng: np.random.Generator) -> Iterator[Any]:
    for options in _OPTIONS:
        settings = _voting(**options)
        yield list(thresh_protocol.run(settings, bit_stream(), **apart(rng, "bits", "private")))
        state = thresh_protocol.start(settings)
        for epoch in range(12):
            state, release = thresh_protocol.step(settings, state, bit_stream().counts(epoch + 1, rng), rng)
            yield state.used, state.reference, state.release, release.live
        yield outcome(thresh_protocol.step, settings, state, bit_stream().counts(1, rng), rng)


def thresh_simulated(rng: np.random.Generator) -> Iterator[Any]:
    late = BitStream.make([40, 20], bit_stream().means, 9, [0, 3, 0, 0, 5, 0, 0, 0, 0, 0, 0, 2], 1 - bit_stream().means)
    large = BitStream.make([500_000, 200_000], [[0.2] * 20 + [0.7] * 20, [0.4] * 40], 400)
    for options in _OPTIONS:
        for stream in (bit_stream(), late):
            yield thresh_simulation.simulate(_voting(**options), stream, rng).public
    wide = Thresh.tuned(700_000, 40, 400, 4.0, changes=2, min_group=200_000, n_groups=2)
    traced = thresh_simulation.simulate(wide, large, rng)
    yield traced.public, traced.yes, traced.max_votes, traced.frozen


def thresh_settings(_: np.random.Generator) -> Iterator[Any]:
    ways = (Thresh.paper, Thresh.printed, Thresh.tuned)
    for make, users, horizon, epsilon in product(ways, (10**5, 10**7, 10**9), (1, 64, 1000), (0.5, 2.0, 8.0)):
        more = {"changes": 3} if make == Thresh.tuned else {}
        for extra in ({}, {"min_group": users // 2, "n_groups": 2}, {"start": "sentinel"}, {"beta": 0.3}):
            settings = outcome(make, users, horizon, 1000, epsilon, **more, **extra)
            yield settings
            if isinstance(settings, Thresh):
                yield settings.privacy_loss, settings.vote_randomizer, settings.estimate_randomizer, settings.update_cut
                yield [settings.threshold(epoch) for epoch in (1, 2, 3, 48)], settings.error_bound, settings.standard_error
                yield replace(settings, unit=settings.unit * 0.99).error_bound, replace(settings, margin=0.01).error_bound
                yield [settings.cut(epoch) for epoch in (1, 2, 3, 48)], [settings.votes_left(epoch) for epoch in (1, 7)]
                yield (
                    settings.voting_epochs(5),
                    settings.heard,
                    settings.heard_group(2),
                    settings.estimate(77),
                    settings.changes,
                )
                yield settings.estimate_error, settings.report_one(0.3)
    for extra in ({"changes": 2}, {"changes": 2, "spare": 2}, {"changes": 40}):
        yield outcome(Thresh.paper, 10**8, 64, 1000, 3.0, **extra)
        yield outcome(Thresh.tuned, 10**8, 64, 1000, 3.0, deviation=0.03, **extra)
    for wrong in (
        {"vote_cap": -1},
        {"start": "now"},
        {"exhaustion": "x"},
        {"unit": 0.0},
        {"estimate_cap": 99},
        {"margin": 2.0},
    ):
        yield outcome(_voting, **wrong)
    yield outcome(_voting, 12, 1), outcome(replace, _voting(), epsilon=0.5), outcome(replace, _voting(), n_users=0)
    for beta, users in product((0.05, 0.5), (100, 10**6)):
        yield constants.unit(users, 10, 30, beta), constants.hashed_unit(users, 10, 30, 64, beta)
        yield constants.paper_margin(users, 10, beta), outcome(constants.paper_estimate_epsilon, users, 10, 30, 8, beta)
        yield (
            constants.paper_error_bound(users, 10, 30, beta),
            outcome(constants.smallest_vote_epsilon, users, 10, 90, 1, beta),
        )

    for users, horizon, group, groups in product((10**4, 10**8), (4, 500), (2000, 10**4), (1, 3)):
        yield outcome(constants.paper_vote_epsilon, users, horizon, group, groups, 0.05)
        yield outcome(constants.smallest_vote_epsilon, users, horizon, group, groups, 0.05)
        yield outcome(constants.paper_epsilons, users, horizon, 500, group, groups, 0.05)
    for given, groups in ((None, 2), (7, 2), (0, 1), (101, 1)):
        yield outcome(constants.smallest_group, given, 100, groups)
    yield constants.smallest_users(lambda users: users > 123, 10), constants.smallest_users(lambda users: users > 2**70, 10)
    yield outcome(constants.check_beta, 1.5), outcome(constants.check_beta, 0.0)


def word_stream(length: int = 4) -> WordStream:
    laws = [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.0, 1.0, 0.0]]
    return WordStream.make([14, 9, 3], laws, [[0] * 4 + [1] * 4, [1] * 6 + [0] * 2, [2] * 8], length)


def _heavy(**changes: Any) -> Iterator[HeavyThresh]:
    for options in _OPTIONS:
        base = {"vote_epsilon": 1.0, "estimate_epsilon": 3.0, "vote_cap": 3, "estimate_cap": 3, "unit": 0.05, "reach": 2}
        voting = Thresh(26, 8, 4, 100.0, **(base | options | changes))
        for phi in (None, HashSigns(3, 9, 5)):
            yield HeavyThresh(voting, 3, phi)


def heavy_online(rng: np.random.Generator) -> Iterator[Any]:
    for settings in _heavy():
        yield list(heavy_protocol.run(settings, word_stream(), *rng.spawn(3)))


def heavy_simulated(rng: np.random.Generator) -> Iterator[Any]:
    for settings in _heavy():
        traced = heavy_simulation.simulate(settings, word_stream(), rng)
        yield traced.public, traced.yes, traced.votes_cast, traced.distance
    long = WordStream.make([14, 9, 3], [[0.98, 0.02, 0.0], [0.0, 0.02, 0.98], [0.0, 1.0, 0.0]], word_stream().which, 2000)
    for settings in _heavy():
        voting = replace(settings.voting, epoch_length=2000)
        yield outcome(heavy_simulation.simulate, replace(settings, voting=voting), long, rng)


def _heavy_voting() -> Thresh:
    return Thresh(26, 8, 4, 100.0, 1.0, 3.0, 3, 3, unit=0.05, reach=2)


def heavy_settings(rng: np.random.Generator) -> Iterator[Any]:
    for make, words, users in product((HeavyThresh.paper, HeavyThresh.tuned), (2, 50), (10**6, 10**9)):
        more = {"changes": 2} if make == HeavyThresh.tuned else {}
        for phi in (None, HashSigns(words, 64, 0)):
            settings = outcome(make, users, 64, 10**4, 12.0, words, phi=phi, **more)
            yield settings
            if isinstance(settings, HeavyThresh):
                yield settings.width, settings.error_bound, settings.standard_error, settings.votes_left(9)
                yield settings.report_plus(0.1), settings.estimates(np.arange(settings.width))
    for projection in (Hadamard(5), HashSigns(5, 7, 3), HashSigns(5, 300, 3)):
        values = np.arange(15).reshape(3, 5) % 4
        yield (
            projection.width,
            projection.signed(values),
            projection.largest(values),
            projection.blur(0.1),
            projection.by_word(np.arange(projection.width)),
        )
        yield HashSigns.draw(5, projection.width, rng), HeavyThresh(_heavy_voting(), 5, None).signed_sums(values)
        yield projection.signs(np.arange(7)[:, None], np.arange(5))


def recomputation(rng: np.random.Generator) -> Iterator[Any]:
    for composition, split, every in product(("basic", "advanced", "optimal"), ("epsilon", "users"), (1, 5)):
        yield outcome(baselines.recompute, bit_stream(), 2.0, rng, every=every, split=split, composition=composition)
        yield outcome(baselines.epsilon_of_report, 2.0, 7, composition, 1e-3)
    for composition, settings in product(("basic", "optimal"), list(_heavy())[:2]):
        yield list(baselines.recompute_words(settings, word_stream(), rng, composition=composition))
    yield word_stream().truth, bit_stream().truth, bit_stream().group_means
    yield baselines.standard_error(1000, 0.3), streams.steps(9, 0.1, {3: 0.4}), streams.drift(5, 0.1, 0.9)
    yield outcome(streams.steps, 9, 0.1, {30: 0.4}), outcome(streams.drift, 5, -0.1, 0.9)


def restless(rng: np.random.Generator) -> Iterator[Any]:
    """A small group whose data change in every epoch: votes without an update, until they are used up."""
    still, moving = [0.2] * 12, [0.1, 0.9] * 6
    for cap, length in product((1, 3), (9, 400)):
        settings = _voting(12, length, vote_cap=cap, vote_epsilon=3.0, margin=0.3)
        stream = BitStream.make([54, 6], [still, moving], length)
        yield thresh_protocol.run(settings, stream, **apart(rng, "bits", "private"))
        traced = thresh_simulation.simulate(settings, stream, rng)
        yield traced.public, traced.yes, traced.max_votes
        words = WordStream.make(
            [24, 2, 2], [[0.99, 0.01, 0.0], [0.0, 0.01, 0.99]], [[0] * 12, [0, 1] * 6, [1, 0] * 6], length
        )
        voting = Thresh(28, 12, length, 100.0, 3.0, 2.0, cap, 3, unit=0.05, margin=0.3, reach=2)
        traced = outcome(heavy_simulation.simulate, HeavyThresh(voting, 3), words, rng)
        yield traced if isinstance(traced, str) else (traced.public, traced.yes, traced.votes_cast)
        yield list(heavy_protocol.run(HeavyThresh(voting, 3), words, *rng.spawn(3)))
        state = heavy_protocol.start(HeavyThresh(voting, 3))
        for epoch in range(1, 13):
            counts, (public, private) = words.counts(epoch, rng), rng.spawn(2)
            state, _ = heavy_protocol.step(HeavyThresh(voting, 3), state, counts, public, private)
            yield state.used, state.reference
    for cap, length in product((1, 2, 3), (2, 60_000)):
        which = [[0] * 6 + [1] * 6, [0, 1] * 6, [1, 0] * 6]
        words = WordStream.make([24, 12, 12], [[0.99, 0.01, 0.0], [0.0, 0.01, 0.99]], which, length)
        voting = Thresh(48, 12, length, 100.0, 3.0, 2.0, cap, 3, unit=0.02, margin=0.6, reach=2)
        traced = outcome(heavy_simulation.simulate, HeavyThresh(voting, 3), words, rng)
        yield traced if isinstance(traced, str) else (traced.public, traced.yes, traced.votes_cast)
    for sizes, length in (([30_000, 20_000], 1), ([9000, 50], 2), ([40_000], 3000)):
        words = WordStream.make(sizes, [[0.6, 0.4], [0.1, 0.9]], [[0, 0, 1, 1, 0]] * len(sizes), length)
        voting = Thresh(sum(sizes), 5, length, 100.0, 1.0, 1.0, 3, 4, unit=0.02, margin=0.05, reach=2)
        for phi in (None, HashSigns(2, 40, 1)):
            traced = outcome(heavy_simulation.simulate, HeavyThresh(voting, 2, phi), words, rng)
            yield traced if isinstance(traced, str) else (traced.public, traced.yes, traced.votes_cast)


def refused(rng: np.random.Generator) -> Iterator[Any]:
    """Data that no guarantee covers."""
    settings, heavy = _voting(), next(_heavy())
    for wrong in (-1, 10, 0.5):
        counts = np.append(np.zeros(59), wrong) if wrong == 0.5 else np.append(np.zeros(59, dtype=int), wrong)
        yield outcome(thresh_protocol.step, settings, thresh_protocol.start(settings), counts, rng)
        of_once = once.Once(60, 12, 9, 1.0)
        yield outcome(once.step, of_once, once.start(of_once, rng), counts, rng)
        voting = Thresh(20, 12, 9, 4.0, 0.7, 0.0, 2, 2, unit=0.02, margin=0.05)
        crews = CrewThresh(60, 4.0, voting, changes=1, cell=4, spare_cell=2)
        yield outcome(crew_thresh.step, crews, crew_thresh.start(crews, rng), counts, rng)
        yield outcome(replace, crews, epsilon=2.0), outcome(replace, crews, n_users=50), outcome(replace, crews, reports=9)
        yield outcome(CrewThresh, 60, 4.0, replace(voting, estimate_epsilon=0.5), changes=1, cell=4, spare_cell=2)
    for row in ([4, 0, 0], [5, -1, 0], [5, 0, 0], [1, 1, 1], [4.0, 0.0, 0.0], [4, 0]):
        table = np.tile(row, (26, 1))
        yield outcome(heavy_protocol.step, heavy, heavy_protocol.start(heavy), table, *rng.spawn(2))
        of_words = once_words.OnceWords(26, 8, 3, 1.0)
        yield outcome(once_words.step, of_words, once_words.start(of_words, rng), table, *rng.spawn(2))
    for sizes, means, length in (
        ([0], [[0.1]], 1),
        ([1], [[1.1]], 1),
        ([1], [[-0.1]], 1),
        ([1, 2], [[0.1]], 1),
        ([1], [[0.1]], 0),
    ):
        yield outcome(BitStream.make, sizes, means, length)
    for law, which in (([[0.5, 0.6]], [[0]]), ([[1.5, -0.5]], [[0]]), ([[0.5, 0.5]], [[1]])):
        yield outcome(WordStream.make, [1], law, which, 1)
    yield outcome(ThresholdStream.make, 5, [0.1, 1.2]), outcome(ThresholdStream.make, 0, [0.1])
    for epsilon, composition, n_reports in ((0.0, "basic", 2), (1.0, "x", 2), (1.0, "basic", 0)):
        yield outcome(baselines.epsilon_of_report, epsilon, n_reports, composition)


def scenes() -> dict[str, Scene]:
    every = (
        thresh_online,
        thresh_simulated,
        thresh_settings,
        heavy_online,
        heavy_simulated,
        heavy_settings,
        recomputation,
        restless,
        refused,
    )
    return {f"evolving_{scene.__name__}": scene for scene in every}
