"""What Joseph et al. (2018) print, shown to fail; ids as in book/errata.md."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from evolvingdp.audit.exact.draws import replaced
from evolvingdp.core import hadamard
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import heavy_simulation, protocol, streams
from evolvingdp.evolving.constants import PAPER_WIDTH, paper_epsilons, paper_estimate_epsilon, unit
from evolvingdp.evolving.heavy_simulation import Hashed, reported_sums
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.streams import WordStream
from evolvingdp.evolving.thresh import VOTES_PER_CHANGE, Thresh
from evolvingdp.evolving.thresh_simulation import simulate
from support import ALPHA


def capped(horizon=5, **changes):
    base = {"vote_epsilon": 0.2, "estimate_epsilon": 0.2, "vote_cap": 1, "estimate_cap": 1} | changes
    return Thresh(2, horizon, 1, 100.0, unit=0.01, beta=0.05, margin=0.05, **base)


class Place:
    """Public randomness that deals everybody this coordinate."""

    def __init__(self, place):
        self.place = place

    def integers(self, low, high, size):
        return np.full(size, self.place)


def worst_loss(settings):
    """What a user's whole transcript loses at most, exactly, over its data and over what others make the server do.

    Both users of the shipped `step` stand for one: they hold what two worlds have it hold. The server hears the votes that
    it is to hear. Given its updates, messages are independent, and their losses add up.
    """
    heavy = isinstance(settings, HeavyThresh)
    inputs, places = (np.eye(2, dtype=int), (0, 1)) if heavy else (np.arange(2), (0,))
    lost, seen = [], {}

    def spy(law, heard):
        def draw(randomizer, values, answer):
            one, other = np.log([law(randomizer, value) for value in values])
            lost.append(np.abs(one - other).max())
            return np.full(len(values), heard(answer.wanted))

        return draw

    votes = spy(lambda flip, vote: [flip.probabilities(vote)[answer] for answer in (-1, 1)], int)
    reports = spy(lambda flip, share: [flip.report_one(share), flip.report_one(1 - share)], bool)

    def most(state):
        if state.release.epoch == settings.voting.horizon:
            return 0.0
        key = state.release.epoch, state.release.estimates_left, *map(bytes, (state.reference, state.used))
        if key not in seen:
            found = []
            for held, wanted, place in itertools.product(itertools.product((0, 1), repeat=2), (-1, 1), places):
                lost.clear()
                after, _ = protocol.step(settings, state, inputs[[*held]], Place(place), SimpleNamespace(wanted=wanted))
                found.append(math.fsum(lost) + most(after))
            seen[key] = max(found)
        return seen[key]

    with replaced((SignFlip, "randomize", votes), (SignFlip, "draw_reports", reports)):
        return most(protocol.start(settings))


def test_E_EV_1_the_printed_counters_cost_more_than_epsilon():
    """At epsilon = 1 and a = b = .2 the printed rule admits two votes and two estimates: 1.2; the caps used here cost .6."""
    epsilon, a, b = 1.0, 0.2, 0.2
    votes = next(sent for sent in itertools.count() if not sent * a <= epsilon / 4)  # compared first, then added to
    estimates = next(sent for sent in itertools.count() if not sent * b < epsilon / 4)
    assert (votes, estimates) == (2, 2)
    printed = capped(vote_cap=votes, estimate_cap=estimates)
    assert worst_loss(printed) == pytest.approx(1.2) == printed.privacy_loss
    sound = capped(vote_cap=math.floor(epsilon / (4 * a)), estimate_cap=math.floor(epsilon / (4 * b)))
    assert worst_loss(sound) == pytest.approx(0.6) == sound.privacy_loss
    assert Thresh.printed(10**5, 64, 10**6, 1.0).privacy_loss == pytest.approx(1.348, abs=1e-3)
    large = capped(vote_epsilon=0.9, estimate_epsilon=0.9)
    assert worst_loss(large) == pytest.approx(2.7)


def test_E_EV_8_algorithms_5_and_7_cap_votes_too_late_and_estimates_never():
    """HEAVYTHRESH votes and reports as THRESH does, but compares c < epsilon/4a, adds a, and never counts an estimate."""
    epsilon, a = 1.0, 0.2
    votes = next(sent for sent in itertools.count() if not sent * a < epsilon / (4 * a))
    assert votes == 7  # floor(epsilon / 4a) = 1 would be right
    losses = [worst_loss(HeavyThresh(capped(t, vote_cap=votes, estimate_cap=t), 2)) for t in (4, 5)]
    assert losses == pytest.approx([1.0, 1.4])  # nothing ever runs out
    assert worst_loss(HeavyThresh(capped(), 2)) < epsilon < losses[1]


def test_E_EV_2_a_sentinel_below_the_threshold_starts_late():
    horizon, length = 64, 100
    first = 2 * (6 + 1) * unit(10**6, horizon, length, 0.05)
    assert first > 1  # the distance of 0 to -1, and nearly that of any mean
    counts = np.array([0, 0, 0])
    settings = Thresh(3, horizon, length, 10.0, 0.1, 0.1, 4, 4, unit=unit(10**6, horizon, length, 0.05))
    assert not settings.votes_yes(1, counts, counts - length, np.zeros(3, int)).any()
    large = replace(settings, unit=1.01 / 7)  # a distance of 2, that of -1 to a mean of 1, is not above 2.02, either
    assert not large.votes_yes(1, counts + length, counts - length, np.zeros(3, int)).any()


def test_E_EV_3_the_printed_b_is_negative_where_users_are_few():
    n, horizon, length, beta = 10**4, 64, 10**6, 0.05
    root = math.sqrt(math.log(12 * horizon / beta) / (2 * n))
    assert math.log2(horizon) * unit(n, horizon, length, beta) - root < 0
    with pytest.raises(ValueError, match="for the paper's b to be positive"):
        paper_epsilons(n, horizon, length, n, 1, beta)
    assert math.log2(1) * unit(10**9, 1, 100, beta) == 0  # T = 1: negative for every n


def test_E_EV_4_one_user_votes_four_times_after_a_change():
    """The change moves every mean by 9.5 units; within Lemma 7.3's event one user sees up to two units more,
    another two units less."""
    settings = Thresh(2, 64, 10**6, 100.0, 0.1, 0.1, vote_cap=64, estimate_cap=4, unit=0.005)
    moved = 9.5 * settings.unit
    more, less = moved + 1.98 * settings.unit, moved - 1.98 * settings.unit  # each mean is off by less than one unit, twice

    def votes(distance):
        start = np.array([300_000])
        now = start + round(distance * settings.epoch_length)
        return [t for t in range(17, 65) if settings.votes_yes(t, now, start, np.zeros(1, int))[0]]

    first = votes(less)[0]
    before_all_vote = [epoch for epoch in votes(more) if epoch <= first]
    assert before_all_vote == [20, 24, 28, 32]
    assert len(before_all_vote) == VOTES_PER_CHANGE > 2


def test_no_user_votes_more_than_four_times_before_all_vote():
    """All distances and all epochs of a change: two users of a group are at most four units apart."""
    for horizon in (16, 64, 127, 256):
        settings = Thresh(2, horizon, 10**6, 1e9, 0.1, 0.1, vote_cap=10**6, estimate_cap=4, unit=0.001)
        levels = settings.levels
        needed = np.array([settings.threshold(epoch) / settings.unit for epoch in range(1, horizon + 1)])
        for more in np.arange(2.05, 2 * (levels + 4), 0.5):
            eager, lazy = more > needed, more - 4 > needed
            for change in range(2, horizon + 1):
                some, everybody = eager[change - 1 :], lazy[change - 1 :]
                last = int(np.argmax(everybody)) + 1 if everybody.any() else len(some)
                if everybody.any():
                    assert some[:last].sum() <= VOTES_PER_CHANGE


def test_E_EV_5_the_lemma_s_conclusion_survives_its_b():
    for n, horizon, length, short in ((10**6, 1024, 10**6, 1.16), (10**7, 256, 10**5, None), (10**9, 64, 10**4, None)):
        _, b = paper_epsilons(n, horizon, length, n, 1, 0.05)
        root = math.sqrt(math.log(12 * horizon / 0.05) / (2 * n))
        step = unit(n, horizon, length, 0.05)
        if short:
            assert 2 * root / ((math.log2(horizon) + 2) * step - root) == pytest.approx(short * b, rel=0.01)
        assert (1 / math.tanh(b / 2) + 1) * root < 2 * (math.log2(horizon) + 2) * step


def test_E_EV_6_an_exhausted_printed_thresh_releases_zero():
    n, horizon, length = 10**6, 256, 10**6
    means = streams.steps(horizon, 0.3, {60: 0.62, 130: 0.2, 200: 0.6})
    data = streams.BitStream.make([n], means, length)
    settings = Thresh.tuned(n, horizon, length, 1.0, changes=2, spare=0)
    few = replace(settings, vote_cap=12, epsilon=2.0)
    printed = simulate(replace(few, exhaustion="printed"), data, stream(0, "printed"))
    assert abs(printed.estimate[-1]) < 0.05
    assert not printed.frozen.any()
    used = simulate(few, data, stream(0, "used"))
    assert used.frozen[199:].any()
    assert abs(used.estimate[-1] - 0.2) < 0.05


def test_E_EV_7_line_10_fails_rarely_enough():
    horizon, n, beta, a = 64, 10_000, 0.05, 0.1
    silent = 1 / (math.exp(a) + 1)
    cut = silent + math.sqrt(math.log(10 * horizon / beta) / (2 * n))
    assert horizon * binom.sf(math.floor(n * cut), n, silent) <= beta / 10 <= beta / 6


def test_E_EV_9_a_coordinate_that_one_user_hits_breaks_lemma_9_3():
    """n = 10^4 reports on w = 20 n coordinates: a single report puts c sqrt(w) / n where the lemma allows far less."""
    n, horizon, length, beta, epsilon = 10**4, 64, 2 * 10**4, 0.05, 0.1
    width, debias = 20 * n, 1 / math.tanh(epsilon / 2)
    place = stream(0, "places").integers(0, width, size=n)
    signs = 2 * stream(0, "signs").integers(0, 2, size=n) - 1  # all words equally frequent: every expected sign is near 0
    sums = np.bincount(place, weights=signs, minlength=width)
    measured = debias * width / n * np.abs(sums).max()  # sqrt(w) |y - Phi p|, up to 1
    claimed = 2 * (math.log2(horizon) + 2) * math.sqrt(2 * math.log(16 * width * n * horizon / beta) / length)
    assert claimed < 1.1
    assert measured - 1 >= 20 * debias - 1 > 300 * claimed
    settings = HeavyThresh.tuned(10**6, 64, 10**6, 2.0, 1000, changes=2)
    data = WordStream.make([10**6], [np.full(1000, 1e-3)], [np.zeros(64, int)], 10**6)
    for run in range(20):  # the repaired bound, on words
        error = np.abs(heavy_simulation.simulate(settings, data, stream(0, "bound", run)).public[0].estimate - 1e-3).max()
        assert error <= settings.error_bound


def test_E_EV_10_an_old_estimate_is_off_by_more_than_the_proof_s_last_line():
    """A word gains as much as makes nobody vote in an odd epoch; the estimate is from before."""
    n, d, horizon, length, beta = 10**6, 1000, 1025, 10**5, 0.05
    settings = HeavyThresh.paper(n, horizon, length, 4.0, d, changes=1)
    step = settings.voting.unit
    assert step == pytest.approx(math.sqrt(2 * math.log(320 * n**2 * horizon / beta) / length))
    gain = (2 * (settings.voting.levels + 1) - 1.45) * step
    before = np.full(d, 1 / d)
    after = (1 - gain) * before + gain * (np.arange(d) == 7)
    hashed = Hashed(settings, WordStream.make([n], [before, after], [[0] * (horizon - 1) + [1]], length))
    gap = settings.voting.threshold(horizon) - hashed.largest_move(1, 0)
    assert 2 * settings.width * n * math.exp(-length * gap**2 / 4) < 10  # users who vote, expected, of 10^6: no update
    gamma = math.sqrt(math.log(16 * n * d * horizon / beta) / n)
    ends, states = (factor * (math.log2(horizon) + 2) * step + gamma for factor in (2, 4))
    errors = np.array(
        [np.abs(settings.estimates(reported_sums(hashed, 1, stream(0, "old", run))) - after).max() for run in range(400)]
    )
    assert binomtest(int((errors > ends).sum()), 400, beta, alternative="greater").pvalue < ALPHA
    assert errors.max() < min(states, settings.error_bound)
    assert math.sqrt(2 * math.log(4 * d**2 / beta) / (20 * n)) < gamma < 2 * gamma


def test_E_EV_11_a_report_costs_b_and_words_are_not_averaged():
    settings = HeavyThresh.paper(10**6, 1025, 10**5, 4.0, 1000, changes=1)
    plus = settings.report_plus(np.array([-1.0, 1.0]))
    loss = max(math.log(plus[1] / plus[0]), math.log((1 - plus[0]) / (1 - plus[1])))
    assert loss == pytest.approx(settings.voting.estimate_epsilon)
    assert loss == pytest.approx(0.0172, abs=1e-4) != settings.voting.epsilon
    half, four = np.zeros((2, 1000), dtype=int)
    half[[3, 5]], four[np.mean([3, 5]).astype(int)] = 50_000, 100_000
    assert half @ np.arange(1000) == four @ np.arange(1000)  # the same average
    assert settings.distances(half[None, :], four[None, :])[0] == 2 * 100_000  # as far apart as can be
    other = paper_estimate_epsilon(10**6, 1025, 10**5, 1000, 0.05)
    assert settings.voting.estimate_epsilon == other
    assert PAPER_WIDTH == 20


def test_E_EV_12_with_its_proof_s_n_no_b_is_positive():
    horizon, beta = 1025, 0.05
    for n in (10**4, 10**6, 10**9):
        w = 20 * n
        log_width = math.log(16 * w * horizon / beta)
        shortest = 2 * (math.log2(horizon) + 2) * math.sqrt(2 * math.log(16 * w * n * horizon / beta) / w)  # ell = 1
        assert shortest < log_width * math.sqrt(w) / n
        assert paper_estimate_epsilon(n, horizon, 10**3, 1000, beta) > 0  # n^2
    sampled = stream(0, "sampling error").multinomial(10**6, np.full(1000, 1e-3)) / 10**6 - 1e-3
    measured, printed = np.abs(hadamard.transform(np.pad(sampled, (0, 24)))).max(), np.abs(sampled).max()
    assert 20 * printed < measured < np.abs(sampled).sum()
