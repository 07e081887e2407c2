"""THRESH: the two paths have one law, enumerated for two users, by Kolmogorov-Smirnov for many; theory's errors hold."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from evolving_reference import decision_score, draw_thresh, many_counts, score_pvalue
from scipy.stats import binom, ks_2samp

from evolvingdp.core import accounting
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import baselines, streams
from evolvingdp.evolving.count_law import CountLaw
from evolvingdp.evolving.thresh import Thresh
from evolvingdp.evolving.thresh_simulation import simulate
from support import ALPHA, fits, pvalue

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
    """The law of `shown` for one group of two users, by enumeration of counts, votes and reports."""
    length, n = settings.epoch_length, settings.n_users
    laws = [binom.pmf(np.arange(length + 1), length, mean) for mean in means]
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
            chance = math.prod(laws[epoch - 1][count] for count in now)
            if epoch == 1:
                wanted, spent = {True: 1.0}, used
            else:
                yes = votes_yes(epoch, now, reference, used)
                spent = tuple(old + new for old, new in zip(used, yes, strict=True))
                wanted = decided(yes)
            for decision, probability in wanted.items():
                if not decision or (left == 0 and settings.exhaustion == "freeze"):
                    frozen = decision or stale  # nothing is fresh again once estimates have run out
                    kept = tuple(sorted(zip(reference, spent, strict=True)))  # which user is which does not matter
                    law[-1 - frozen, kept, left, frozen] += chance * probability
                    continue
                kept = tuple(sorted(zip(now, spent, strict=True)))
                for ones, part in reported(now if left else (0,) * n).items():
                    law[ones, kept, max(0, left - 1), stale] += chance * probability * part
        return [(each, state, chance) for (each, *state), chance in law.items()]

    states = {(((-length, 0),) * n, settings.estimate_cap, False, ()): 1.0}
    for epoch in range(1, len(means) + 1):
        grown: Counter = Counter()
        for (*state, past), mass in states.items():
            for each, after, chance in following(epoch, *state):
                grown[(*after, (*past, each))] += mass * chance
        states = grown
    result: Counter = Counter()
    for (*_, past), mass in states.items():
        result[past] += mass
    return result


def test_nobody_votes_beyond_the_cap():
    settings = replace(MIDDLE, vote_cap=2, estimate_cap=1, vote_epsilon=0.1, margin=0.5)
    data = streams.BitStream.make([400], streams.steps(16, 0.2, {3: 0.9}), 30)
    for few in (1e9, -1.0, 10.0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("evolvingdp.evolving.thresh_simulation._FEW", few)
            trace = simulate(settings, data, stream(0, "cap", str(few)))
        assert max(trace.max_votes) == 2
        assert sum(trace.yes) <= 2 * 400


@pytest.mark.parametrize("composition", ["basic", "optimal"])
def test_recomputed_means_have_the_stated_error_and_follow_changes(composition):
    data = streams.BitStream.make([4000, 6000], [[0.5, 0.7] * 8, [0.4, 0.65] * 8], 100)
    one = baselines.epsilon_of_report(2.0, 16, composition)
    expected = {"basic": 2.0 / 16, "optimal": accounting.optimal(2.0, 1e-6, 16)}[composition]
    assert one == pytest.approx(expected)
    runs = [baselines.recompute(data, 2.0, stream(0, "recompute", run), composition=composition) for run in range(400)]
    errors = np.array(runs) - data.truth
    assert abs(errors.mean()) < 4.9 * errors.std() / math.sqrt(errors.size)
    ratio = errors.std() / baselines.standard_error(10_000, one)
    assert abs(ratio - 1) < 4.9 / math.sqrt(2 * errors.size) + 0.01


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("choices", "draws"),
    [({"unit": 0.07}, 9900), ({"exhaustion": "printed", "estimate_cap": 1}, 4100)],
    ids=["freeze", "printed"],
)
def test_two_users_have_the_enumerated_law(path, choices, draws, monkeypatch):
    """`draws` of the simulation are what the score needs to miss the wrong law once in a million times: 93 over the
    squared distance of its means, .0094 and .0228. Half of them vote cell by cell. Line by line, users are cheap."""
    settings, means = replace(TINY, **choices), (0.1, 0.1, 0.9, 0.6)
    data = streams.BitStream.make([2], means, 3)
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


MIDDLE = Thresh(400, 16, 30, 50.0, 0.8, 1.0, vote_cap=3, estimate_cap=3, unit=0.05, beta=0.05)
STREAMS = {
    "steps": streams.BitStream.make([400], streams.steps(16, 0.3, {4: 0.6, 9: 0.35}), 30),
    "drift in two groups": streams.BitStream.make(
        [150, 250], np.array([streams.drift(16, 0.2, 0.8), streams.drift(16, 0.5, 0.4)]), 30
    ),
    "one epoch apart": streams.BitStream.make([400], np.where(np.arange(16) == 5, 0.68, 0.5), 30),
}


def statistics(estimate, updated, cast):
    """Per run: the last estimate, the number of updates, the epoch of the second update, the yes votes cast, and, as one
    number, which epochs have updates."""
    second = np.where(updated.sum(axis=1) > 1, (updated.cumsum(axis=1) == 2).argmax(axis=1), 99)
    return np.column_stack([estimate, updated.sum(axis=1), second, cast, updated @ 2 ** np.arange(updated.shape[1])])


@cache
def of_users(name):
    """6,000 runs line by line of the users of a stream."""
    rng, parts = stream(0, "middle", "users", name), []
    for _ in range(10):
        runs = draw_thresh(MIDDLE, many_counts(STREAMS[name], 600, rng), rng)
        estimates = [MIDDLE.estimate(ones) for ones in runs.reported[:, -1]]
        parts.append(statistics(estimates, runs.updated, runs.used.sum(axis=1)))
    return np.concatenate(parts)


def of_simulation(name, seed_name, runs):
    """Statistics, and of the epochs with votes the truthful ones and what was wanted."""
    rng = stream(0, "middle", "simulation", seed_name)
    traces = [simulate(MIDDLE, STREAMS[name], rng) for _ in range(runs)]
    yes, updated, frozen = (np.array([getattr(trace, each) for trace in traces]) for each in ("yes", "updated", "frozen"))
    rows = statistics([trace.estimate[-1] for trace in traces], updated, yes.sum(axis=1))
    return rows, yes[:, 1:], (updated | frozen)[:, 1:]


def pvalues(ours, theirs):
    """Of each column, and of the patterns of updates."""
    smooth = [ks_2samp(ours[:, column], theirs[:, column], method="asymp").pvalue for column in range(4)]
    return [*smooth, pvalue(*(Counter(rows[:, 4].astype(int).tolist()) for rows in (ours, theirs)))]


@pytest.mark.parametrize(("name", "runs"), [*zip(STREAMS, (700, 950, 1400), strict=True)])
def test_the_two_paths_have_one_law(name, runs):
    """Given the truthful votes, the decisions of so many runs miss an epsilon that is 10% less once in a million times."""
    ours, yes, wanted = of_simulation(name, name, runs)
    assert min(pvalues(ours, of_users(name))) > ALPHA / 5
    wrong = replace(MIDDLE, vote_epsilon=0.9 * MIDDLE.vote_epsilon, estimate_epsilon=0.9 * MIDDLE.estimate_epsilon)
    assert abs(decision_score(MIDDLE, wrong, yes, wanted)) < 4.9
    assert abs(decision_score(wrong, MIDDLE, yes, wanted)) > 4.9


@pytest.mark.parametrize("few", [-1.0, 20.0])
def test_few_users_outside_the_common_range_are_drawn_as_all_others(few, monkeypatch):
    """The same law whether every cell votes by itself, or only where more than `few` do not vote alike."""
    monkeypatch.setattr("evolvingdp.evolving.thresh_simulation._FEW", few)
    ours, *_ = of_simulation("steps", str(few), 450)
    assert min(pvalues(ours, of_users("steps"))) > ALPHA / 5


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
