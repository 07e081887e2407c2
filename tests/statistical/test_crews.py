"""Roles by lot: users and simulation have one law, and updates the stated error."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest, ks_2samp

from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import streams
from evolvingdp.evolving.rivals import crews
from evolvingdp.evolving.rivals.crews import Crews
from evolvingdp.evolving.thresh import Thresh
from support import ALPHA

VOTING = Thresh(30, 8, 30, 8.0, 1.0, 0.0, vote_cap=4, estimate_cap=3, unit=0.05, margin=0.2)
SETTINGS = Crews(210, 8.0, VOTING, changes=1, cell=40, spare_cell=20)
DATA = streams.BitStream.make([80, 130], np.array([streams.steps(8, 0.3, {4: 0.7}), streams.steps(8, 0.5, {6: 0.2})]), 30)


def releases(path, settings, data, run):
    if path == "simulation":
        return crews.simulate(settings, data, stream(0, "crews", path, run))
    return crews.run(settings, data, **{name: stream(0, name, run) for name in ("words", "public", "private")})


def statistics(path, settings, runs):
    """Per run: the first and the last estimate, the epochs of the second and of the last update, how many there were."""
    rows = []
    for run in range(runs):
        public = releases(path, settings, DATA, run)
        updated = [release.epoch for release in public if release.updated]
        second = updated[1] if len(updated) > 1 else 99
        rows.append((public[0].estimate, public[-1].estimate, second, updated[-1], len(updated)))
    return np.array(rows)


def test_the_two_paths_have_one_law():
    users, simulated = statistics("users", SETTINGS, 900), statistics("simulation", SETTINGS, 400)
    for column in range(5):
        assert ks_2samp(users[:, column], simulated[:, column], method="asymp").pvalue > ALPHA / 5
    wrong = replace(SETTINGS, voting=replace(VOTING, margin=0.24))  # a vote more is asked for
    other, both = statistics("users", wrong, 1300), np.concatenate([users, simulated])
    assert min(ks_2samp(both[:, column], other[:, column], method="asymp").pvalue for column in range(5)) < ALPHA


@pytest.mark.parametrize("path", ["users", "simulation"])
def test_reported_ones_are_binomial_with_the_epsilon_of_a_report(path):
    """A thousand reporters of the first update, of users with two means: 1 with a probability linear in the mean of all."""
    voting, runs = replace(VOTING, epsilon=1.0, vote_epsilon=1 / 8), 100
    settings = Crews(2110, 1.0, voting, changes=1, cell=1000, spare_cell=20)
    data = streams.BitStream.make([844, 1266], np.repeat([[0.65], [0.9]], 8, axis=1), 30)  # a mean of .8
    estimates = [releases(path, settings, data, run)[0].estimate for run in range(runs)]
    flip, spread = SignFlip(1.0).flip, SignFlip(1.0).keep - SignFlip(1.0).flip
    ones = round(sum(estimate * spread + flip for estimate in estimates) * 1000)
    assert binomtest(ones, 1000 * runs, SignFlip(1.0).report_one(0.8)).pvalue > ALPHA
    assert binomtest(ones, 1000 * runs, SignFlip(1.1).report_one(0.8)).pvalue < ALPHA


def test_planned_and_spare_updates_have_the_stated_standard_error():
    settings = Crews.plan(80_000, 16, 10**6, 1.0, changes=1, beta=1e-6)  # so that no noise makes an update
    data = streams.BitStream.make([80_000], streams.steps(16, 0.5, {5: 0.7, 9: 0.5}), 10**6)
    errors = []
    for run in range(300):
        public = crews.simulate(settings, data, stream(0, "error", run))
        errors.append([public[epoch].estimate - data.truth[epoch] for epoch in (0, 8)])
    ratios = np.sqrt(np.mean(np.square(errors), axis=0)) / [settings.standard_error(0), settings.standard_error(2)]
    assert np.abs(ratios - 1).max() < 4.9 / math.sqrt(2 * 300)
    assert np.abs(ratios / 0.8 - 1).min() > 4.9 / math.sqrt(2 * 300) * 0.8


def test_the_error_bound_holds_and_each_change_is_found():
    settings = Crews.plan(10**6, 64, 10**6, 1.0, changes=2, min_group=4 * 10**5, n_groups=2)
    means = np.array([streams.steps(64, 0.3, {20: 0.6}), streams.steps(64, 0.5, {41: 0.2})])
    data = streams.BitStream.make([400_000, 600_000], means, 10**6)
    for run in range(10):
        public = crews.simulate(settings, data, stream(0, "bound", run))
        assert [release.epoch for release in public if release.updated] == [1, 20, 41]
        assert np.abs([release.estimate for release in public] - data.truth).max() <= settings.error_bound


def test_words_have_one_law_on_both_paths():
    laws = [[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]]
    data = streams.WordStream.make([120, 90], laws, [[0, 0, 0, 1, 1, 1], [0] * 6], 2000)
    settings = Crews.plan(10**6, 6, 1000, 6.0, 3, changes=1, spare=0)
    voting = replace(settings.voting.voting, n_users=30, epoch_length=2000, unit=0.35, margin=0.2)
    settings = replace(settings, n_users=210, voting=replace(settings.voting, voting=voting), cell=70, spare_cell=70)
    rows = {}
    for path, runs in (("users", 300), ("simulation", 300)):
        rows[path] = []
        for run in range(runs):
            if path == "users":
                names = ("words", "public", "private")
                public = crews.run(settings, data, **{name: stream(0, "law", name, run) for name in names})
            else:
                public = crews.simulate(settings, data, stream(0, "law", run))
            updated = [release.epoch for release in public if release.updated]
            rows[path].append((*public[0].estimate, public[-1].estimate[0], updated[-1], len(updated)))
    users, simulated = (np.array(table) for table in rows.values())
    for column in range(6):
        assert ks_2samp(users[:, column], simulated[:, column], method="asymp").pvalue > ALPHA / 6
    for table in (users, simulated):
        errors = (table[:, 0] - data.truth[0, 0]) / settings.standard_error(0, data.truth[0, 0])
        assert abs(errors.mean()) < 4.9 / math.sqrt(300)
        assert abs(errors.std() - 1) < 4.9 / math.sqrt(600)
        assert abs(errors.std() * 1.4 - 1) > 4.9 / math.sqrt(600)
