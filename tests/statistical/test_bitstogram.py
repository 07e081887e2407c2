"""Bitstogram: two paths, one law; bits are wrong as often as theory says."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest, ks_2samp, norm

from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters.bitstogram import Bitstogram
from support import ALPHA


@pytest.mark.parametrize("printed", [True, False])
def test_the_two_paths_have_one_law(printed):
    counts, runs = np.array([900, 500]), 1000

    def cell(path, epsilon):
        method = Bitstogram(epsilon, 10.0, length=2, buckets=8, rows=2, width=8, printed=printed)
        drawn = method.draw_hashes(stream(0, "hashes"))
        messages = method.encode(np.array(["ab", "xy"]))
        public, private = stream(0, path, str(printed), "slots"), stream(0, path, str(printed), "noise")
        values = []
        for _ in range(runs):
            if path == "collect":
                reports = drawn.collect(np.repeat(messages, counts), public, private)
            else:
                reports = drawn.simulate(messages, counts, private)
            rows = drawn.bits.row_estimates(reports.levels[0], messages[:1])
            final = drawn.final.row_estimates(reports.final, messages[:1])
            debias = drawn.bits.randomizer.debias
            values.append([rows.mean() / debias, final.mean() / debias])
        return np.array(values)

    ours, theirs, wrong = cell("collect", 2.0), cell("simulate", 2.0), cell("simulate", 2.2)
    for column in (0, 1):
        assert ks_2samp(ours[:, column], theirs[:, column]).pvalue > ALPHA
    assert min(ks_2samp(ours[:, column], wrong[:, column]).pvalue for column in (0, 1)) < ALPHA


@pytest.mark.parametrize("printed", [True, False])
def test_bits_of_a_lonely_word_are_wrong_as_often_as_theory_says(printed):
    n_users, held, runs = 400_000, 20_000, 60
    wrong, trials = 0, 0
    method = Bitstogram(2.0, 10.0, buckets=256, rows=1, width=2, printed=printed)
    messages = method.encode(np.array(["lonely", "others"]))
    for run in range(runs):
        drawn = method.draw_hashes(stream(0, "hashes", run))
        home, other = drawn.bits.hashes.buckets.cells(np.zeros(1, int), messages)
        if home == other:
            continue
        reports = drawn.simulate(messages, np.array([held, n_users - held]), stream(0, "noise", run))
        wrong += int(np.sum((drawn.certainty(reports)[home] < 0) != method.code.encode(messages[:1])[0]))
        trials += method.code.length
    argument = method.bit_error(held, n_users)
    assert binomtest(wrong, trials, norm.sf(argument)).pvalue > ALPHA
    assert binomtest(wrong, trials, norm.sf(0.85 * argument)).pvalue < ALPHA
