"""RAPPOR's decoder over many runs: its errors, intervals and p-values are what it says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters.rappor import Rappor
from evolvingdp.heavy_hitters.rappor_decoding import decode

KEYS = np.arange(1, 101, dtype=np.uint64)


def test_standard_errors_are_those_of_many_runs_and_a_tenth_less_is_noticed():
    drawn, asked = Rappor().draw_hashes(stream(0, "hashes")), KEYS[:40]
    held = np.concatenate([[30_000, 20_000, 10_000], np.full(7, 1000), np.zeros(30, int)])
    scores = []
    for run in range(60):
        decoded = decode(drawn, drawn.simulate(asked, held, stream(0, "noise", run)), asked)
        scores.append((decoded.words.unbiased - held) / decoded.words.standard_error)
    spread = np.sqrt(np.mean(np.square(scores)))
    assert abs(spread - 1) < 4.9 / math.sqrt(2 * np.size(scores))
    assert abs(spread / 0.9 - 1) > 4.9 / math.sqrt(2 * np.size(scores))


@pytest.mark.parametrize(("held", "runs"), [([2000, 2000, 2000], 500), ([1_000_000], 250)])
def test_strangers_alone_are_listed_as_rarely_as_promised(held, runs):
    """Nobody holds a candidate: any listing is false, and happens in at most a share of .05 of the runs.  The heavy
    stranger is far above the noise: whoever shares its cells looks frequent."""
    listed = 0
    for run in range(runs):
        drawn = Rappor(n_cohorts=8, n_bits=16).draw_hashes(stream(0, "hashes", run))
        counts = drawn.simulate(KEYS[: len(held)], np.array(held), stream(0, "noise", run))
        listed += bool(decode(drawn, counts, KEYS[50:80]).listed(0.05).any())
    assert listed <= 0.05 * runs + 4.9 * math.sqrt(0.05 * 0.95 * runs)
    assert listed >= 0.02 * runs  # p-values that were never small would be no p-values


def test_a_heavy_stranger_neither_adds_false_words_nor_hides_the_true_ones():
    """Half of the reports are of a word that is no candidate, 10 candidates share the rest and 50 have none."""
    held, asked, shares, found = np.array([500_000] + [50_000] * 10), np.arange(2, 62, dtype=np.uint64), [], []
    for run in range(40):
        drawn = Rappor().draw_hashes(stream(0, "hashes", run))
        counts = drawn.simulate(KEYS[:11], held, stream(0, "noise", run))
        listed = decode(drawn, counts, asked).listed(0.05)
        shares.append(listed[10:].sum() / max(1, listed.sum()))
        found.append(listed[:10].mean())
    assert np.mean(shares) <= 0.05 + 3 * np.std(shares) / math.sqrt(len(shares))
    assert np.mean(found) > 0.95


@pytest.mark.parametrize(("n_cohorts", "n_candidates"), [(8, 96), (4, 90)])
def test_intervals_cover_in_the_dense_case_too(n_cohorts, n_candidates):
    """Candidates nearly as many as equations, all held; and more of them, few held: only those who stand out are fitted."""
    settings = Rappor.one_shot(4.0, n_bits=16, n_cohorts=n_cohorts)
    asked = np.arange(1, n_candidates + 1, dtype=np.uint64)
    held = (
        np.full(n_candidates, 500) if n_candidates < 0.8 * 16 * n_cohorts else np.where(np.arange(n_candidates) < 3, 9000, 0)
    )
    covered = []
    for run in range(80):
        drawn = settings.draw_hashes(stream(0, "hashes", run))
        words = decode(drawn, drawn.simulate(asked, held, stream(0, "noise", run)), asked).words
        assert np.all((words.low < words.unbiased) & (words.unbiased < words.high))
        covered.append(np.mean((words.low <= held) & (held <= words.high)))
    assert np.mean(covered) == pytest.approx(0.95, abs=0.03)
