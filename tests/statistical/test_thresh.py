"""THRESH: the two paths have one law, enumerated for two users of one group or of two; theory's errors hold."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from evolving_reference import draw_thresh, many_counts, score_pvalue
from scipy.stats import binom

from evolvingdp.core.seeds import stream
from evolvingdp.evolving import streams
from evolvingdp.evolving.count_law import CountLaw
from evolvingdp.evolving.thresh import Thresh
from evolvingdp.evolving.thresh_simulation import simulate
from support import ALPHA, fits

TINY = Thresh(2, 4, 3, 30.0, 2.0, 2.5, vote_cap=2, estimate_cap=2, unit=0.1, beta=0.9, margin=0.1)
PATHS = ("users", "simulation")


def shown(updated, frozen, ones):
    """What a run shows in every epoch: the ones reported, or -1, or -2 for a stale estimate, where nothing was updated."""
    return Counter(map(tuple, np.where(updated, ones, -1 - frozen).tolist()))


def simulated(settings, data, rng, draws):
    randomizer = settings.estimate_randomizer
    runs = [simulate(settings, data, rng) for _ in range(draws)]
    shares = np.array([run.estimate for run in runs]) * (randomizer.keep - randomizer.flip) + randomizer.flip
    ones = np.nan_to_num(shares * settings.n_users).round().astype(int)
    return shown(np.array([run.updated for run in runs]), np.array([run.frozen for run in runs]), ones)


@cache  # both paths have it
def exact_law(settings, means):
    """The law of `shown` for users of these means, a tuple each, by enumeration of counts, votes and reports."""
    length, n = settings.epoch_length, settings.n_users
    laws = [[binom.pmf(np.arange(length + 1), length, mean) for mean in each] for each in means]
    vote = settings.vote_randomizer

    @cache
    def votes_yes(epoch, now, reference, used):
        return tuple(settings.votes_yes(epoch, np.array(now), np.array(reference), np.array(used)).tolist())

    @cache
    def decided(yes):
        law: Counter = Counter()
        for votes in itertools.product((0, 1), repeat=n):
            same = [vote.keep if bit == truth else vote.flip for bit, truth in zip(votes, yes, strict=True)]
            law[sum(votes) / n > settings.update_cut] += math.prod(same)
        return law

    @cache
    def reported(now):
        law: Counter = Counter()
        ones = settings.report_one(np.array(now) / length).tolist()
        for bits in itertools.product((0, 1), repeat=n):
            law[sum(bits)] += math.prod(p if bit else 1 - p for bit, p in zip(bits, ones, strict=True))
        return law

    @cache  # whatever has been shown before
    def following(epoch, kinds, left, stale):
        """What the epoch shows, and the state of the users after it: (reference, votes) of each, in order."""
        reference, used = zip(*kinds, strict=True)
        law: Counter = Counter()
        for now in itertools.product(range(length + 1), repeat=n):
            chance = math.prod(law[epoch - 1][count] for law, count in zip(laws, now, strict=True))
            if epoch == 1:
                wanted, spent = {True: 1.0}, used
            else:
                yes = votes_yes(epoch, now, reference, used)
                spent = tuple(old + new for old, new in zip(used, yes, strict=True))
                wanted = decided(yes)
            for decision, probability in wanted.items():
                if not decision or (left == 0 and settings.exhaustion == "freeze"):
                    frozen = decision or stale  # nothing is fresh again once estimates have run out
                    kept = tuple(zip(reference, spent, strict=True))
                    law[-1 - frozen, kept, left, frozen] += chance * probability
                    continue
                kept = tuple(zip(now, spent, strict=True))
                for ones, part in reported(now if left else (0,) * n).items():
                    law[ones, kept, max(0, left - 1), stale] += chance * probability * part
        return [(each, state, chance) for (each, *state), chance in law.items()]

    states = {(((-length, 0),) * n, settings.estimate_cap, False, ()): 1.0}
    for epoch in range(1, settings.horizon + 1):
        grown: Counter = Counter()
        for (*state, past), mass in states.items():
            for each, after, chance in following(epoch, *state):
                grown[(*after, (*past, each))] += mass * chance
        states = grown
    result: Counter = Counter()
    for (*_, past), mass in states.items():
        result[past] += mass
    return result


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("choices", "means", "draws"),
    [
        ({"unit": 0.07}, [[0.1, 0.1, 0.9, 0.6]], 14_500),
        ({"exhaustion": "printed", "estimate_cap": 1}, [[0.1, 0.1, 0.9, 0.6]], 4100),
        ({"unit": 0.07, "vote_cap": 1, "estimate_cap": 3}, [[0.1, 0.9, 0.05, 0.9], [0.95, 0.05, 0.9, 0.05]], 4300),
    ],
    ids=["freeze", "printed", "two groups"],
)
def test_two_users_have_the_enumerated_law(path, choices, means, draws, monkeypatch):
    """`draws` of the simulation are what the score needs to miss the wrong law once in a million times: 93 over the
    squared distance of its means, .0064, .0228 and .0221. Half of them vote cell by cell. Line by line, users are cheap."""
    settings, sizes = replace(TINY, **choices), [2 // len(means)] * len(means)
    data, means = streams.BitStream.make(sizes, means, 3), tuple(map(tuple, np.repeat(means, sizes, axis=0).tolist()))
    rng = stream(0, "tiny", path, str(choices))
    if path == "users":
        draws = 100_000
        runs = draw_thresh(settings, many_counts(data, draws, rng), rng)
        observed = shown(runs.updated, runs.frozen, runs.reported)
    else:
        observed = simulated(settings, data, rng, draws // 2)
        monkeypatch.setattr("evolvingdp.evolving.thresh_simulation._FEW", -1.0)
        observed += simulated(settings, data, rng, draws // 2)
    law = exact_law(settings, means)
    assert sum(law.values()) == pytest.approx(1)
    wrong = replace(settings, vote_epsilon=1.1 * settings.vote_epsilon, estimate_epsilon=1.1 * settings.estimate_epsilon)
    wrong_law = exact_law(wrong, means)
    assert fits(observed, law, draws) > ALPHA / 2
    assert score_pvalue(observed, law, wrong_law) > ALPHA / 2
    assert score_pvalue(observed, wrong_law, law) < ALPHA
    assert path == "simulation" or fits(observed, wrong_law, draws) < ALPHA


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("width", [2, 5, 11])
def test_counts_of_users_who_may_have_some_values_only_have_the_law_of_their_sum(inside, width):
    """Three users with other ranges each, 40,000 times: the number of them at each value."""
    law = CountLaw.binomial(12, 0.4)
    low = np.array([0, 3, 4, 6])
    high = np.minimum(low + width, 13)
    users = np.repeat([[1], [0], [1], [1]], 40_000, axis=1)
    draw = law.draw_inside if inside else law.draw_outside
    drawn = draw(users, low, high, stream(0, "ranges", inside, width))
    assert np.all(drawn.sum(axis=0) == 3)
    chances = [np.where((law.values >= a) & (law.values < b), law.mass, 0.0) for a, b in zip(low, high, strict=True)]
    if not inside:
        chances = [law.mass - chance for chance in chances]
    cut = [chance / chance.sum() for chance in (chances[0], chances[2], chances[3])]
    expected: Counter = Counter()
    for (a, p), (b, q), (c, r) in itertools.product(*(list(enumerate(each)) for each in cut)):
        expected[tuple(sorted((a, b, c)))] += p * q * r
    observed = Counter(tuple(np.repeat(np.arange(13), column).tolist()) for column in drawn.T)
    possible = {key: chance for key, chance in expected.items() if chance > 0}
    assert fits(observed, possible, 40_000) > ALPHA
    tilted = {key: chance * 1.1 ** sum(key) for key, chance in possible.items()}
    total = sum(tilted.values())
    assert fits(observed, {key: chance / total for key, chance in tilted.items()}, 40_000) < ALPHA


def test_updates_have_the_stated_standard_error():
    settings = Thresh.tuned(10**5, 16, 10**6, 1.0, changes=0, spare=0)
    data = streams.BitStream.make([10**5], np.full(16, 0.5), 10**6)
    errors = [simulate(settings, data, stream(0, "error", run)).estimate[0] - 0.5 for run in range(600)]
    ratio = np.sqrt(np.mean(np.square(errors))) / settings.standard_error
    assert abs(ratio - 1) < 4.9 / math.sqrt(1200)
    assert abs(ratio / 0.8 - 1) > 4.9 / math.sqrt(1200)


def test_the_error_bound_holds_while_the_caps_last():
    settings = Thresh.tuned(10**6, 256, 10**6, 1.0, changes=3)
    means = streams.steps(256, 0.3, {60: 0.62, 130: 0.2, 200: 0.55})
    data = streams.BitStream.make([10**6], means, 10**6)
    for run in range(20):
        error = np.abs(simulate(settings, data, stream(0, "bound", run)).estimate - data.truth)
        assert error.max() <= settings.error_bound


def test_there_is_at_most_one_update_per_change_also_where_few_users_see_it():
    """Lemma 7.6: the start and three changes make four updates, the small one of them at the latest with the next."""
    settings = Thresh.tuned(10**6, 256, 10**6, 1.0, changes=3)
    means = streams.steps(256, 0.3, {60: 0.62, 130: 0.61, 200: 0.25})
    data = streams.BitStream.make([10**6], means, 10**6)
    for run in range(20):
        updated = simulate(settings, data, stream(0, "updates", run)).updated
        assert [int(part.sum()) for part in np.split(updated, [59, 129, 199])][:2] == [1, 1]
        assert 3 <= updated.sum() <= 4
        assert updated[199:].sum() == 1
