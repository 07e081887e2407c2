"""THRESH: the two paths have one law, enumerated for two users, by Kolmogorov-Smirnov for many; theory's errors hold."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, binomtest, ks_2samp

from evolvingdp.core import accounting
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import baselines, streams, thresh_protocol
from evolvingdp.evolving.thresh import Thresh
from evolvingdp.evolving.thresh_simulation import simulate
from support import ALPHA, fits

TINY = Thresh(2, 4, 3, 30.0, 2.0, 2.5, vote_cap=2, estimate_cap=2, unit=0.1, beta=0.9, margin=0.1)
PATHS = ("users", "simulation")


def releases(settings, data, path, rng):
    """(updated, ones reported) of every epoch of one run; -1 ones where nothing was updated."""
    if path == "simulation":
        rows = simulate(settings, data, rng).public
    else:
        state, rows = thresh_protocol.start(settings), []
        for epoch in range(1, settings.horizon + 1):
            state, release = thresh_protocol.step(settings, state, data.counts(epoch, rng), rng)
            rows.append(release)
    randomizer = settings.estimate_randomizer
    spread = randomizer.keep - randomizer.flip
    ones = [round((row.estimate * spread + randomizer.flip) * settings.n_users) if row.updated else -1 for row in rows]
    return tuple(one if row.updated else -1 - row.frozen for row, one in zip(rows, ones, strict=True))


def exact_law(settings, means):
    """The law of `releases` for one group, by enumeration of counts, votes and reports of both users."""
    counts = [
        dict(enumerate(binom.pmf(np.arange(settings.epoch_length + 1), settings.epoch_length, mean))) for mean in means
    ]
    vote, n = settings.vote_randomizer, settings.n_users
    states = {((-settings.epoch_length,) * n, (0,) * n, settings.estimate_cap, ()): 1.0}
    for epoch in range(1, settings.horizon + 1):
        following: Counter = Counter()
        for (reference, used, left, shown), mass in states.items():
            for now in itertools.product(counts[epoch - 1], repeat=n):
                chance = mass * math.prod(counts[epoch - 1][count] for count in now)
                if epoch == 1 and settings.start == "forced":
                    wanted, spent = {True: 1.0}, used
                else:
                    yes = settings.votes_yes(epoch, np.array(now), np.array(reference), np.array(used))
                    spent = tuple(int(old + new) for old, new in zip(used, yes, strict=True))
                    wanted = Counter()
                    for votes in itertools.product((0, 1), repeat=n):
                        same = [vote.keep if bit == truth else vote.flip for bit, truth in zip(votes, yes, strict=True)]
                        wanted[sum(votes) / n > settings.update_cut] += math.prod(same)
                for decision, probability in wanted.items():
                    if not decision or (left == 0 and settings.exhaustion == "freeze"):
                        following[reference, spent, left, (*shown, -1 - decision)] += chance * probability
                        continue
                    law = settings.report_one(np.array(now) / settings.epoch_length if left else np.zeros(n))
                    for bits in itertools.product((0, 1), repeat=n):
                        sent = math.prod(p if bit else 1 - p for bit, p in zip(bits, law, strict=True))
                        following[now, spent, max(0, left - 1), (*shown, sum(bits))] += chance * probability * sent
        states = following
    law: Counter = Counter()
    for (*_, shown), mass in states.items():
        law[shown] += mass
    return law


@pytest.mark.parametrize("n_users", [2, 8])
def test_a_change_within_an_epoch_is_seen_by_few_users_too(n_users):
    """Truthful yes votes in the epoch with two parts, which no common range covers."""
    settings = Thresh(n_users, 4, 100, 100.0, 1.0, 1.0, vote_cap=4, estimate_cap=4, unit=0.05)
    late = {"late": [0, 30, 0, 0], "late_means": [0.5] * 4}
    data = streams.BitStream.make([n_users], [0.5] * 4, 100, **late)
    yes = sum(simulate(settings, data, stream(0, "late", n_users, run)).hidden[1][1] for run in range(1000))
    outside = 2 * binom.sf(settings.cut(2) - 1 + 100, 200, 0.5)  # the difference of two counts, as 100 + difference of 200
    assert binomtest(yes, 1000 * n_users, outside).pvalue > ALPHA


def test_nobody_votes_beyond_the_cap():
    settings = replace(MIDDLE, vote_cap=2, estimate_cap=1, vote_epsilon=0.1, margin=0.5)
    data = streams.BitStream.make([400], streams.steps(16, 0.2, {3: 0.9}), 30)
    for few in (1e9, -1.0, 10.0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("evolvingdp.evolving.thresh_simulation._FEW", few)
            hidden = simulate(settings, data, stream(0, "cap", str(few))).hidden
        assert max(most for *_, most in hidden) == 2
        assert sum(yes for _, yes, *_ in hidden) <= 2 * 400


@pytest.mark.parametrize("composition", ["basic", "optimal"])
def test_recomputed_means_have_the_stated_error_and_follow_changes_within_epochs(composition):
    late = {"late": [0, 50] * 8, "late_means": [0.9] * 16}
    data = streams.BitStream.make(
        [4000, 6000], [[0.5] * 16, [0.4] * 16], 100, late=late["late"], late_means=[[0.9] * 16] * 2
    )
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
    [({"start": "sentinel", "unit": 0.07}, 16_000), ({"exhaustion": "printed", "estimate_cap": 1}, 8_000)],
    ids=["sentinel, freeze", "forced, printed"],
)
def test_two_users_have_the_enumerated_law(path, choices, draws):
    settings, means = replace(TINY, **choices), [0.3, 0.3, 0.8, 0.5]
    data = streams.BitStream.make([2], means, 3)
    rng = stream(0, "tiny", path, str(choices))
    observed = Counter(releases(settings, data, path, rng) for _ in range(draws))
    law = exact_law(settings, means)
    assert sum(law.values()) == pytest.approx(1)
    assert fits(observed, law, draws) > ALPHA
    wrong = replace(settings, vote_epsilon=1.1 * settings.vote_epsilon, estimate_epsilon=1.1 * settings.estimate_epsilon)
    assert fits(observed, exact_law(wrong, means), draws) < ALPHA


MIDDLE = Thresh(400, 16, 30, 50.0, 0.8, 1.0, vote_cap=3, estimate_cap=3, unit=0.05, beta=0.05)
STREAMS = {
    "steps": streams.BitStream.make([400], streams.steps(16, 0.3, {4: 0.6, 9: 0.35}), 30),
    "drift in two groups": streams.BitStream.make(
        [150, 250], np.array([streams.drift(16, 0.2, 0.8), streams.drift(16, 0.5, 0.4)]), 30
    ),
    "change within an epoch": streams.BitStream.make(
        [400], np.full(16, 0.5), 30, late=np.where(np.arange(16) == 5, 12, 0), late_means=np.full(16, 0.95)
    ),
}


def statistics(settings, data, path, seed_name, runs):
    """Per run: the last estimate, the number of updates, the epoch of the second update, the yes votes cast."""
    rng, rows = stream(0, "middle", path, seed_name), []
    for _ in range(runs):
        if path == "simulation":
            trace = simulate(settings, data, rng)
            updated, last = np.array([release.updated for release in trace.public]), trace.public[-1].estimate
            cast = trace.hidden[-1][2] * settings.n_users
        else:
            state, updates = thresh_protocol.start(settings), []
            for epoch in range(1, settings.horizon + 1):
                state, release = thresh_protocol.step(settings, state, data.counts(epoch, rng), rng)
                updates.append(release.updated)
            updated, last, cast = np.array(updates), state.release.estimate, int(state.used.sum())
        second = np.flatnonzero(updated)[1] if updated.sum() > 1 else 99
        rows.append((last, updated.sum(), second, cast))
    return np.array(rows, dtype=float)


@pytest.mark.parametrize("name", STREAMS)
def test_the_two_paths_have_one_law(name):
    data, runs = STREAMS[name], 2500
    ours, theirs = (statistics(MIDDLE, data, path, name, runs) for path in PATHS)
    for column in range(4):
        assert ks_2samp(ours[:, column], theirs[:, column], method="asymp").pvalue > ALPHA / 4
    wrong = replace(MIDDLE, vote_epsilon=0.9 * MIDDLE.vote_epsilon, estimate_epsilon=0.9 * MIDDLE.estimate_epsilon)
    other, both = statistics(wrong, data, "simulation", name + " wrong", 2 * runs), np.concatenate([ours, theirs])
    assert min(ks_2samp(both[:, column], other[:, column], method="asymp").pvalue for column in range(4)) < ALPHA


def test_few_users_outside_the_common_range_are_drawn_as_all_others(monkeypatch):
    """The same law whether users are drawn together, or every cell by itself."""
    from evolvingdp.evolving import thresh_simulation

    data, runs = STREAMS["steps"], 800
    together = statistics(MIDDLE, data, "simulation", "together", runs)
    monkeypatch.setattr(thresh_simulation, "_FEW", -1.0)
    apart = statistics(MIDDLE, data, "simulation", "apart", runs)
    monkeypatch.setattr(thresh_simulation, "_FEW", 1e9)
    one_by_one = statistics(MIDDLE, data, "simulation", "one by one", runs)
    for column in range(4):
        assert ks_2samp(together[:, column], apart[:, column], method="asymp").pvalue > ALPHA / 4
        assert ks_2samp(together[:, column], one_by_one[:, column], method="asymp").pvalue > ALPHA / 4


def test_updates_have_the_stated_standard_error():
    settings = Thresh.tuned(10**5, 16, 10**6, 1.0, changes=0, spare=0)
    data = streams.BitStream.make([10**5], np.full(16, 0.5), 10**6)
    errors = [simulate(settings, data, stream(0, "error", run)).releases.estimate.iloc[0] - 0.5 for run in range(600)]
    ratio = np.sqrt(np.mean(np.square(errors))) / settings.standard_error
    assert abs(ratio - 1) < 4.9 / math.sqrt(1200)
    assert abs(ratio / 0.8 - 1) > 4.9 / math.sqrt(1200)


def test_the_error_bound_holds_while_the_caps_last():
    settings = Thresh.tuned(10**6, 256, 10**6, 1.0, changes=3)
    means = streams.steps(256, 0.3, {60: 0.62, 130: 0.2, 200: 0.55})
    data = streams.BitStream.make([10**6], means, 10**6)
    for run in range(20):
        error = np.abs(simulate(settings, data, stream(0, "bound", run)).releases.estimate - data.truth)
        assert error.max() <= settings.error_bound


def test_there_is_at_most_one_update_per_change_also_where_few_users_see_it():
    """Lemma 7.6: the start and three changes make four updates, the small one of them at the latest with the next."""
    settings = Thresh.tuned(10**6, 256, 10**6, 1.0, changes=3)
    means = streams.steps(256, 0.3, {60: 0.62, 130: 0.61, 200: 0.25})
    data = streams.BitStream.make([10**6], means, 10**6)
    for run in range(20):
        updated = simulate(settings, data, stream(0, "updates", run)).releases.updated.to_numpy()
        assert [int(part.sum()) for part in np.split(updated, [59, 129, 199])][:2] == [1, 1]
        assert 3 <= updated.sum() <= 4
        assert updated[199:].sum() == 1
