"""RAPPOR: the sampler has the stated law, and two paths have one law, memory included."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare, ks_2samp

from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters.rappor import Rappor
from evolvingdp.notebooks.heavy_hitters import streams
from support import ALPHA, fits

SETTINGS = {"n_bits": 4, "n_cohorts": 2}


def two_reports(drawn, n_clients):
    """Bit 0 in both reports of clients whose word sets it."""
    key = next(key for key in range(100) if drawn.hashes.cells(np.array([0]), np.array([key], np.uint64))[0] == 0)
    keys = np.full((n_clients, 2), key, dtype=np.uint64)
    shown = (drawn.report(keys, np.zeros(n_clients, int), stream(0, "noise")) & np.uint64(1)).astype(int)
    return Counter(map(tuple, shown.tolist()))


def test_two_reports_of_a_bit_have_the_law_that_the_privacy_test_enumerates():
    n_clients = 40_000
    observed = two_reports(Rappor(**SETTINGS).draw_hashes(stream(0, "hashes")), n_clients)

    def law(settings):
        return {(a, b): math.exp(settings.log_bit_probability(1, a + b, 2)) for a in (0, 1) for b in (0, 1)}

    assert fits(observed, law(Rappor(**SETTINGS)), n_clients) > ALPHA
    assert fits(observed, law(Rappor(**SETTINGS, permanent_noise=0.55)), n_clients) < ALPHA
    assert fits(observed, law(Rappor(**SETTINGS, one_from_one=0.77)), n_clients) < ALPHA
    redrawn = {(a, b): Rappor().report_one(1) ** (a + b) * (1 - Rappor().report_one(1)) ** (2 - a - b) for a, b in observed}
    assert fits(observed, redrawn, n_clients) < ALPHA  # a permanent response that is redrawn


def test_the_two_paths_have_one_law():
    n_clients, n_reports, runs = 3000, 4, 500  # from 310 on 10 % are missed with probability 1e-6

    def sums(path, wrong=1.0):
        settings = Rappor(**SETTINGS, permanent_noise=0.3 * wrong)
        drawn = settings.draw_hashes(stream(0, "hashes"))
        rng = stream(0, path, str(wrong), "noise")
        cohorts = np.arange(n_clients) % 2
        values = streams.demo_3(n_clients, n_reports, stream(0, "data"), n_values=5)
        repeated = streams.repeated_values(values, cohorts, 2)
        ones = []
        for _ in range(runs):
            counts = drawn.collect(values, cohorts, rng) if path == "collect" else drawn.simulate_pairs(*repeated, rng)
            assert counts.n_reports.tolist() == [n_clients * n_reports / 2] * 2
            ones.append(counts.ones.ravel())
        return np.array(ones)

    ours, theirs = sums("collect"), sums("simulate")
    for bit in range(8):
        assert ks_2samp(ours[:, bit], theirs[:, bit]).pvalue > ALPHA / 8
    wrong = sums("simulate", wrong=1.1)
    assert min(ks_2samp(ours[:, bit], wrong[:, bit]).pvalue for bit in range(8)) < ALPHA / 8
    for sample in (ours, theirs):  # different bits are independent given the values
        correlation = np.corrcoef(sample.T) - np.eye(8)
        assert np.abs(correlation).max() < 5.5 / np.sqrt(runs)


def test_clients_with_one_word_keep_it_in_the_simulation():
    """Reports of one word share a permanent response: the count's variance is larger than that of independent reports."""
    settings = Rappor(n_bits=4, n_cohorts=1, one_from_zero=0.05, one_from_one=0.95)
    drawn = settings.draw_hashes(stream(0, "hashes"))
    n_clients, n_reports, runs = 200, 10, 3000
    key = np.array([3], dtype=np.uint64)
    rng = stream(0, "noise")
    ones = np.array([drawn.simulate(key, np.array([n_clients]), rng, n_reports=n_reports).ones[0] for _ in range(runs)])
    own = settings.report_one(0)  # of a bit that the word does not set
    bit = int(np.argmin(ones.mean(axis=0)))
    permanent, gap = settings.permanent_noise / 2, 0.9
    expected = n_clients * (n_reports * own * (1 - own) + n_reports * (n_reports - 1) * gap**2 * permanent * (1 - permanent))
    assert np.var(ones[:, bit], ddof=1) == pytest.approx(expected, rel=4.9 * np.sqrt(2 / runs))
    assert expected > 5 * n_clients * n_reports * own * (1 - own)


def test_demo_3_s_values_fall_exponentially():
    values = streams.demo_3(1000, 100, stream(0, "data"))
    observed = np.bincount(values.ravel().astype(int), minlength=101)[1:]

    def law(rate):
        mass = np.exp(-rate * np.arange(1, 101) / 100)
        return mass / mass.sum() * observed.sum()

    assert chisquare(observed, law(5)).pvalue > ALPHA
    assert chisquare(observed, law(5.5)).pvalue < ALPHA
