"""HEAVYTHRESH where users of a group see different things: enumerated for two users, by Kolmogorov-Smirnov for many."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from evolving_reference import decision_score, draw_heavy, many_counts, score_pvalue, sign_matrix
from scipy.stats import binomtest, ks_2samp, multinomial

from evolvingdp.core.seeds import stream
from evolvingdp.evolving import heavy_protocol, heavy_simulation
from evolvingdp.evolving.heavy_projection import Hadamard, HashSigns
from evolvingdp.evolving.heavy_simulation import simulate
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.streams import WordStream
from evolvingdp.evolving.thresh import Thresh
from support import ALPHA, fits

PATHS = ("users", "simulation")
TINY = Thresh(2, 3, 3, 30.0, 2.0, 2.5, vote_cap=2, estimate_cap=2, unit=0.13, beta=0.9, margin=0.1)
BINARY = WordStream.make([2], [[0.1, 0.9], [0.9, 0.1], [0.6, 0.4]], [[0, 1, 2]], 3)
TERNARY = WordStream.make([2], [[0.05, 0.9, 0.05], [0.8, 0.1, 0.1]], [[0, 1, 1]], 2)


def outcomes(updated, frozen, sums):
    """Per run, for every epoch: what was updated and wanted, and the reports' sums by word where something was updated."""
    sums = np.where(updated[:, :, None], sums, 0).reshape(len(updated), -1)
    return Counter(map(tuple, np.concatenate([np.where(updated, 2, frozen), sums], axis=1).tolist()))


def simulated(settings, data, rng, draws):
    runs = [simulate(settings, data, rng).public for _ in range(draws)]
    scale = settings.voting.n_users / settings.voting.estimate_randomizer.debias
    sums = np.nan_to_num([[release.estimate * scale for release in public] for public in runs]).round().astype(int)
    flags = (np.array([[getattr(release, name) for release in public] for public in runs]) for name in ("updated", "frozen"))
    return outcomes(*flags, sums)


@cache  # both paths have it
def exact_law(settings, name):
    """The law of `outcomes` for two users of one group, by enumeration of words, votes, coordinates and signs."""
    data = CASES[name][1]
    voting, words, length = settings.voting, data.distributions.shape[1], data.epoch_length
    histograms = [each for each in itertools.product(range(length + 1), repeat=words) if sum(each) == length]
    laws = [dict(zip(histograms, multinomial.pmf(histograms, length, law), strict=True)) for law in data.distributions]
    keep, flip = voting.vote_randomizer.keep, voting.vote_randomizer.flip

    @cache
    def decided(yes):
        law: Counter = Counter()
        for votes in itertools.product((0, 1), repeat=2):
            same = [keep if bit == truth else flip for bit, truth in zip(votes, yes, strict=True)]
            law[sum(votes) / 2 > voting.update_cut] += math.prod(same)
        return law

    @cache
    def votes_yes(epoch, now, reference, used):
        before = None if reference is None else np.array(reference)
        return tuple(settings.votes_yes(epoch, np.array(now), before, np.array(used)).tolist())

    @cache
    def sums_law(pair):
        """The law of the sums of two users' reports, by word; None: the reports hold nothing."""
        law: Counter = Counter()
        for places in itertools.product(range(settings.width), repeat=2):
            for signs in itertools.product((1, -1), repeat=2):
                chance, sums = 1.0, [0] * settings.width
                for histogram, place, sign in zip(pair or (None, None), places, signs, strict=True):
                    signed = settings.signed_sums(np.array([histogram]))[0, place] / length if histogram else 0.0
                    plus = settings.report_plus(signed)
                    chance *= (plus if sign > 0 else 1 - plus) / settings.width
                    sums[place] += sign
                law[tuple(settings.projection.by_word(np.array(sums)).astype(int).tolist())] += chance
        return law

    states = {(None, (0, 0), voting.estimate_cap, ()): 1.0}  # the last: what was wanted, or whose words were reported
    for epoch in range(1, voting.horizon + 1):
        following: Counter = Counter()
        law = laws[data.which[0, epoch - 1]]
        for (reference, used, left, past), mass in states.items():
            for now in itertools.product(histograms, repeat=2):
                chance = mass * law[now[0]] * law[now[1]]
                wanted, spent = {True: 1.0}, used
                if epoch > 1 or voting.start == "sentinel":
                    yes = votes_yes(epoch, now, reference, used)
                    spent = tuple(old + new for old, new in zip(used, yes, strict=True))
                    wanted = decided(yes)
                for decision, probability in wanted.items():
                    if not decision or (left == 0 and voting.exhaustion == "freeze"):
                        frozen = int(decision or 1 in past)  # nothing is fresh again once estimates have run out
                        following[reference, spent, left, (*past, frozen)] += chance * probability
                        continue
                    # which user is which does not matter
                    kept, sent = zip(*sorted(zip(now, spent, strict=True)), strict=True)
                    told = tuple(sorted(now)) if left else None
                    following[kept, sent, max(0, left - 1), (*past, (told,))] += chance * probability
        states = following
    result: Counter = Counter()
    ends: Counter = Counter()
    for (*_, past), mass in states.items():
        ends[past] += mass
    for past, mass in ends.items():
        flags = tuple(2 if isinstance(each, tuple) else each for each in past)
        nothing = {(0,) * words: 1.0}
        parts = [sums_law(*each) if isinstance(each, tuple) else nothing for each in past]
        for sums in itertools.product(*(part.items() for part in parts)):
            shown = tuple(value for each, _ in sums for value in each)
            result[flags + shown] += mass * math.prod(chance for _, chance in sums)
    return result


CASES = {
    "two words, sentinel": (TINY, BINARY, None, {"start": "sentinel", "unit": 0.06}),
    "two words, printed exhaustion": (TINY, BINARY, None, {"exhaustion": "printed", "estimate_cap": 1, "margin": 0.6}),
    "three words, hashed": (replace(TINY, epoch_length=2), TERNARY, HashSigns(3, 3, 0), {"unit": 0.3}),
}


# what the score needs to miss the wrong law once in a million times: 93 over the squared distance of its means
DRAWS = {"two words, sentinel": 5400, "two words, printed exhaustion": 1400, "three words, hashed": 7200}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", CASES)
def test_two_users_have_the_enumerated_law(path, name):
    voting, data, phi, choices = CASES[name]
    voting = replace(voting, **choices)
    if voting.start == "sentinel":  # sqrt(2) - 1 is below the first threshold: four coordinates for two words
        phi = HashSigns(2, 4, 3)
    settings = HeavyThresh(voting, data.distributions.shape[1], phi)
    rng, draws = stream(0, "tiny", path, name), DRAWS[name]
    if path == "users":
        draws = 60_000
        runs = draw_heavy(settings, many_counts(data, draws, rng), rng)
        observed = outcomes(runs.updated, runs.frozen, runs.reported @ sign_matrix(settings))
    else:
        observed = simulated(settings, data, rng, draws)
    law = exact_law(settings, name)
    assert sum(law.values()) == pytest.approx(1)
    error = 1.3 if voting.exhaustion == "printed" else 1.1  # where most reports are lies they tell nothing of b
    wrong = replace(voting, vote_epsilon=error * voting.vote_epsilon, estimate_epsilon=error * voting.estimate_epsilon)
    wrong_law = exact_law(replace(settings, voting=wrong), name)
    assert fits(observed, law, draws) > ALPHA / 2
    assert score_pvalue(observed, law, wrong_law) > ALPHA / 2
    assert score_pvalue(observed, wrong_law, law) < ALPHA
    assert path == "simulation" or fits(observed, wrong_law, draws) < ALPHA


def disagreeing(law, epoch_length):
    """A word's share moves by about a threshold: in each epoch some users see it and some do not."""
    other = np.roll(law, 1)
    return WordStream.make([150, 250], [law, other], [[0, 0, 0, 1, 1, 1, 0, 0], [0, 0, 0, 0, 0, 1, 1, 1]], epoch_length)


MIDDLE = Thresh(400, 8, 40, 50.0, 0.8, 1.5, vote_cap=3, estimate_cap=3, unit=0.09, beta=0.05)
STREAMS = {
    "two words": (Hadamard(2), disagreeing(np.array([0.4, 0.6]), 40)),
    "three words, hashed": (HashSigns(3, 5, 1), disagreeing(np.array([0.6, 0.3, 0.1]), 12)),
}


def statistics(estimates, updated):
    """Per run: two estimates, the number of updates, the epoch of the second update."""
    second = np.where(updated.sum(axis=1) > 1, (updated.cumsum(axis=1) == 2).argmax(axis=1), 99)
    return np.column_stack([estimates[:, :2], updated.sum(axis=1), second])


@pytest.mark.parametrize("name", STREAMS)
def test_the_two_paths_have_one_law_where_users_of_a_group_disagree(name):
    """414 runs of the simulation and 2,000 line by line tell as much as 500 and 1,000 of each; given the truthful votes, 125
    would do to see from the decisions that a vote's epsilon is a quarter less."""
    phi, data = STREAMS[name]
    settings = HeavyThresh(replace(MIDDLE, epoch_length=data.epoch_length), phi.n_words, phi)
    rng = stream(0, "middle", "simulation", name)
    traces = [simulate(settings, data, rng) for _ in range(414)]
    flags = np.array([[(release.updated, release.frozen) for release in trace.public] for trace in traces])
    ours = statistics(np.array([trace.public[-1].estimate for trace in traces]), flags[:, :, 0])
    rng = stream(0, "middle", "users", name)
    runs = draw_heavy(settings, many_counts(data, 2000, rng), rng)
    scale = settings.voting.estimate_randomizer.debias / settings.voting.n_users
    theirs = statistics(runs.reported[:, -1] @ sign_matrix(settings) * scale, runs.updated)
    for column in range(4):
        assert ks_2samp(ours[:, column], theirs[:, column], method="asymp").pvalue > ALPHA / 4
    yes, wanted = np.array([trace.yes for trace in traces])[:, 1:], flags[:, 1:].any(axis=2)
    wrong = replace(settings.voting, vote_epsilon=0.75 * MIDDLE.vote_epsilon)
    assert abs(decision_score(settings.voting, wrong, yes, wanted)) < 4.9
    assert abs(decision_score(wrong, settings.voting, yes, wanted)) > 4.9
    trace = simulate(settings, data, stream(0, "disagree", name))
    assert trace.distance == 0.0
    assert any(0 < yes < 150 for yes in trace.yes)  # some users of the smaller group, not all


def test_truthful_votes_are_those_of_the_binomial_law():
    """Two words, of which one moves: a user votes yes if its count does by half the cut."""
    voting = Thresh(10**6, 2, 100, 100.0, 0.1, 1.0, vote_cap=1, estimate_cap=1, unit=0.1)
    data = WordStream.make([10**6], [[0.5, 0.5], [0.6, 0.4]], [[0, 1]], 100)
    trace = simulate(HeavyThresh(voting, 2), data, stream(0, "votes"))
    difference = np.convolve(multinomial_counts(100, 0.6), multinomial_counts(100, 0.5)[::-1])
    moved = np.abs(np.arange(-100, 101))  # of the count of the first word; signed sums move by twice that
    chance = float(difference[2 * moved >= voting.cut(2)].sum())
    assert binomtest(trace.yes[1], 10**6, chance).pvalue > ALPHA
    assert binomtest(trace.yes[1], 10**6, 0.9 * chance).pvalue < ALPHA


def multinomial_counts(length, chance):
    return multinomial.pmf([(k, length - k) for k in range(length + 1)], length, (chance, 1 - chance))


def test_nobody_votes_beyond_the_cap_and_everybody_stays():
    _, data = STREAMS["two words"]
    settings = HeavyThresh(replace(MIDDLE, vote_cap=2, estimate_cap=1, vote_epsilon=0.1, margin=0.5), 2)
    trace = simulate(settings, data, stream(0, "cap"))
    assert max(trace.votes_cast) == 2
    assert sum(trace.yes) <= 2 * 400
    hashed = heavy_simulation.Hashed(settings, data)
    for group, cells in enumerate(heavy_simulation.voters(hashed, data.sizes, stream(0, "cells"))):
        cells.update(1, True)
        for epoch in range(2, 9):
            cells.vote(epoch, False)
            cells.update(epoch, True)
            assert cells.users.sum() == data.sizes[group]


def test_users_who_cannot_be_counted_up_are_refused_with_the_way_out_and_run_one_by_one():
    law = np.array([0.3, 0.2, 0.2, 0.1, 0.1, 0.1])
    data = disagreeing(law, 40)  # 40 words of six: 1,221,759 histograms
    settings = HeavyThresh(MIDDLE, 6)
    with pytest.raises(ValueError, match=r"words so few that they can be counted up; heavy_protocol\.run draws every"):
        simulate(settings, data, stream(0, "refused"))
    public = heavy_protocol.run(settings, data, *(stream(0, name) for name in ("words", "public", "noise")))
    assert [release.epoch for release in public] == list(range(1, 9))


def test_the_cost_does_not_grow_with_the_users():
    data = WordStream.make([10**12], [[0.4, 0.6], [0.5, 0.5]], [[0, 0, 0, 1, 1, 1, 0, 0]], 40)
    trace = simulate(HeavyThresh(replace(MIDDLE, n_users=10**12), 2), data, stream(0, "many"))
    assert 0 < trace.yes[3] < 10**12
