"""HEAVYTHRESH where users of a group see different things: enumerated for two users, and refused by the simulation."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from evolving_reference import draw_heavy, many_counts, score_pvalue, sign_matrix
from scipy.stats import multinomial

from evolvingdp.core import hadamard
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import protocol
from evolvingdp.evolving.heavy_simulation import simulate
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.streams import WordStream
from evolvingdp.evolving.thresh import Thresh
from support import ALPHA, fits

TINY = Thresh(2, 3, 3, 30.0, 2.0, 2.5, vote_cap=2, estimate_cap=2, unit=0.13, beta=0.9, margin=0.1)
BINARY = WordStream.make([2], [[0.1, 0.9], [0.9, 0.1], [0.6, 0.4]], [[0, 1, 2]], 3)


def outcomes(updated, frozen, sums):
    """Per run, for every epoch: what was updated and wanted, and the reports' sums by word where something was updated."""
    sums = np.where(updated[:, :, None], sums, 0).reshape(len(updated), -1)
    return Counter(map(tuple, np.concatenate([np.where(updated, 2, frozen), sums], axis=1).tolist()))


@cache
def exact_law(settings, name):
    """The law of `outcomes` for two users of one group, by enumeration of words, votes, coordinates and signs."""
    data = CASES[name][1]
    voting, words, length = settings.voting, data.n_words, data.epoch_length
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
        return tuple(settings.votes_yes(epoch, np.array(now), np.array(reference), np.array(used)).tolist())

    @cache
    def sums_law(pair):
        """The law of the sums of two users' reports, by word; None: the reports hold nothing."""
        law: Counter = Counter()
        for places in itertools.product(range(settings.width), repeat=2):
            for signs in itertools.product((1, -1), repeat=2):
                chance, sums = 1.0, [0] * settings.width
                for histogram, place, sign in zip(pair or (None, None), places, signs, strict=True):
                    signed = settings.signed(np.array([histogram]))[0, place] / length if histogram else 0.0
                    plus = settings.report_plus(signed)
                    chance *= (plus if sign > 0 else 1 - plus) / settings.width
                    sums[place] += sign
                law[tuple(hadamard.transform(np.array(sums))[:words].astype(int).tolist())] += chance
        return law

    states = {(None, (0, 0), voting.estimate_cap, ()): 1.0}  # the last: what was wanted, or whose words were reported
    for epoch in range(1, voting.horizon + 1):
        following: Counter = Counter()
        law = laws[data.which[0, epoch - 1]]
        for (reference, used, left, past), mass in states.items():
            for now in itertools.product(histograms, repeat=2):
                chance = mass * law[now[0]] * law[now[1]]
                wanted, spent = {True: 1.0}, used
                if epoch > 1:
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
    "two estimates": (TINY, BINARY, {"unit": 0.06}),
    "printed exhaustion": (TINY, BINARY, {"exhaustion": "printed", "estimate_cap": 1, "margin": 0.6}),
}


@pytest.mark.parametrize("name", CASES)
def test_two_users_have_the_enumerated_law(name):
    voting, data, choices = CASES[name]
    voting = replace(voting, **choices)
    settings = HeavyThresh(voting, data.n_words)
    rng, draws = stream(0, "tiny", name), 60_000
    runs = draw_heavy(settings, many_counts(data, draws, rng), rng)
    observed = outcomes(runs.updated, runs.frozen, runs.reported @ sign_matrix(settings))
    law = exact_law(settings, name)
    assert sum(law.values()) == pytest.approx(1)
    error = 1.3 if voting.exhaustion == "printed" else 1.1  # where most reports are lies they tell nothing of b
    wrong = replace(voting, vote_epsilon=error * voting.vote_epsilon, estimate_epsilon=error * voting.estimate_epsilon)
    wrong_law = exact_law(replace(settings, voting=wrong), name)
    assert fits(observed, law, draws) > ALPHA / 2
    assert score_pvalue(observed, law, wrong_law) > ALPHA / 2
    assert score_pvalue(observed, wrong_law, law) < ALPHA
    assert fits(observed, wrong_law, draws) < ALPHA


def test_users_who_disagree_are_refused_with_the_way_out_and_run_one_by_one():
    """A word's share moves by about a threshold: in each epoch some users see it and some do not."""
    law = np.array([0.3, 0.2, 0.2, 0.1, 0.1, 0.1])
    which = [[0, 0, 0, 1, 1, 1, 0, 0], [0, 0, 0, 0, 0, 1, 1, 1]]
    data = WordStream.make([150, 250], [law, np.roll(law, 1)], which, 40)
    settings = HeavyThresh(Thresh(400, 8, 40, 50.0, 0.8, 1.5, vote_cap=3, estimate_cap=3, unit=0.09, beta=0.05), 6)
    with pytest.raises(ValueError, match=r"longer epochs would decide it; protocol\.run draws every"):
        simulate(settings, data, stream(0, "refused"))
    public = protocol.run(settings, data, **{name: stream(0, name) for name in ("words", "public", "private")})
    assert [release.epoch for release in public] == list(range(1, 9))
