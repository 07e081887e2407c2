"""RAPPOR: filters, memory, counting, and a decoder that finds what is there and admits what it does not know."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, norm

from evolvingdp.core.hashing import scramble
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters.rappor import Rappor
from evolvingdp.heavy_hitters.rappor_decoding import _adjusted, _tail, decode
from evolvingdp.notebooks.heavy_hitters import streams
from support import ALPHA

KEYS = np.arange(1, 101, dtype=np.uint64)


def protocol(**settings):
    return Rappor(**settings).draw_hashes(stream(0, "hashes"))


@given(st.lists(st.integers(0, 2**64 - 1), min_size=2, unique=True))
def test_scrambled_keys_stay_different(keys):
    assert len(set(scramble(np.array(keys, dtype=np.uint64)).tolist())) == len(keys)


def test_scrambled_neighbours_collide_as_if_independent():
    """Keys 1, 2, ..., 100 in 32 cells: collisions of key 1 in 2,000 functions are spread like independent ones."""
    hashes = protocol(n_cohorts=2000).hashes
    rows = np.arange(2000)[:, None]

    def spread(hashes):
        cells = hashes.cells(rows, KEYS[None, :])
        return np.var((cells[:, 1:] == cells[:, :1]).sum(axis=1))

    independent = 99 * (1 / 32) * (31 / 32)
    assert spread(hashes) == pytest.approx(independent, rel=0.25)
    assert spread(replace(hashes, scrambled=False)) > 2 * independent


def test_demo_3_costs_what_its_documentation_says():
    settings = Rappor()
    assert settings.epsilon_of_reports(1) == pytest.approx(2 * math.log(5 / 3))
    assert settings.epsilon_permanent == pytest.approx(2 * math.log(3))
    losses = [settings.epsilon_of_reports(n) for n in (1, 2, 5, 10, 100)]
    assert losses == sorted(losses)
    assert losses[-1] == pytest.approx(settings.epsilon_permanent, rel=1e-9)


@given(st.floats(0.1, 5))
def test_one_shot_costs_what_it_is_asked_to(epsilon):
    settings = Rappor.one_shot(epsilon)
    assert settings.epsilon_of_reports(1) == pytest.approx(epsilon)
    assert settings.epsilon_permanent == math.inf


def test_a_change_of_word_is_not_protected():
    """Enumerated over two reports of 4 bits: the pair of one word against the pair of two words, for every output."""
    settings = Rappor(n_bits=4)

    def log_law(history, reports):
        logs = 0.0
        for bit in range(4):
            sent = [report >> bit & 1 for report in reports]
            if history[0] == history[1]:
                logs += settings.log_bit_probability(history[0] >> bit & 1, sum(sent), 2)
            else:
                logs += sum(
                    settings.log_bit_probability(word >> bit & 1, own, 1) for word, own in zip(history, sent, strict=True)
                )
        return logs

    pairs = [(1, 1), (1, 2), (2, 2), (2, 4)]
    outputs = [(a, b) for a in range(16) for b in range(16)]
    for first in pairs:
        for second in pairs:
            worst = max(log_law(first, output) - log_law(second, output) for output in outputs)
            assert settings.loss_of_histories(first, second) == pytest.approx(worst)
    assert Rappor().loss_of_histories([1], [2]) == pytest.approx(Rappor().epsilon_of_reports(1))
    assert Rappor().loss_of_histories([1] * 3, [2] * 3) == pytest.approx(Rappor().epsilon_of_reports(3))
    assert Rappor().loss_of_histories([1, 1], [1, 2]) > 4 * Rappor().epsilon_permanent


def test_many_reports_do_not_underflow():
    assert Rappor().epsilon_of_reports(100_000) == pytest.approx(2 * math.log(3))


def test_cohorts_are_uniform():
    cohorts = protocol().assign(64_000, stream(0, "cohorts"))
    assert chisquare(np.bincount(cohorts, minlength=64)).pvalue > ALPHA


def test_a_client_s_permanent_response_to_a_word_is_one_for_all_its_reports():
    drawn = protocol(n_cohorts=1, one_from_zero=1e-12, one_from_one=1 - 1e-12)
    held = np.tile(np.array([7, 8, 7, 7], dtype=np.uint64), (50, 1))
    first, other, again, last = drawn.report(held, np.zeros(50, dtype=int), stream(0, "noise")).T
    assert len(np.unique(first)) > 40  # the permanent noise is each client's own
    assert np.array_equal(first, again)
    assert np.array_equal(first, last)
    assert not np.array_equal(first, other)


def test_counts_are_those_of_the_reported_bits_and_merge():
    drawn = protocol(n_bits=4, n_cohorts=2)
    reports = np.array([0b0001, 0b1001, 0b1111], dtype=np.uint64)
    counts = drawn.add(drawn.empty(), np.array([0, 1, 1]), reports)
    assert counts.ones.tolist() == [[1, 0, 0, 0], [2, 1, 1, 2]]
    assert counts.n_reports.tolist() == [1, 2]
    parts = drawn.add(drawn.empty(), np.array([0]), reports[:1]) + drawn.add(drawn.empty(), np.array([1, 1]), reports[1:])
    assert np.array_equal(parts.ones, counts.ones)
    assert np.array_equal(parts.n_reports, counts.n_reports)
    with pytest.raises(ValueError, match="one shape to be merged"):
        counts + protocol(n_bits=8, n_cohorts=2).empty()


def test_repeated_values_are_counted_as_by_hand():
    values = np.array([[5, 5, 9], [9, 9, 9], [5, 2, 2]], dtype=np.uint64)
    keys, pairs, multiplicity = streams.repeated_values(values, np.array([0, 1, 1]), 2)
    assert keys.tolist() == [2, 5, 9]
    assert multiplicity.tolist() == [1, 2, 3]
    assert pairs[:, 0].tolist() == [[0, 0, 0], [0, 1, 0], [1, 0, 0]]
    assert pairs[:, 1].tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1]]


class TestDecoding:
    HELD = np.array([50_000, 30_000, 20_000])

    @pytest.mark.parametrize("n_candidates", [10, 90])
    def test_frequent_words_are_found_within_their_errors(self, n_candidates):
        """With 90 candidates and 64 equations only those are fitted that stand out, with 10 all."""
        drawn = Rappor.one_shot(6.0, n_bits=16, n_cohorts=4).draw_hashes(stream(n_candidates, "hashes"))
        decoded = decode(drawn, drawn.simulate(KEYS[:3], self.HELD, stream(0, "noise")), KEYS[:n_candidates])
        if n_candidates == 10:
            assert np.all(decoded.listed()[:3])
            assert decoded.listed().sum() <= 5
        else:
            assert decoded.words.p_value.isna().all()
            with pytest.raises(ValueError, match=r"candidates must be at most 51, 0.8 of the 64 reported bits, .* got 90"):
                decoded.listed()
        off = (decoded.words.unbiased[:3] - self.HELD) / decoded.words.standard_error[:3]
        assert np.all(np.abs(off) < 5)
        assert np.all(decoded.words.estimate >= 0)

    def test_candidates_that_no_bit_tells_apart_are_not_listed(self):
        drawn = Rappor.one_shot(4.0, n_bits=2, n_cohorts=2).draw_hashes(stream(0, "hashes"))
        cells = drawn.hashes.cells(np.arange(2), KEYS[:, None])
        twins = KEYS[np.flatnonzero((cells == cells[0]).all(axis=1))[:2]]
        other = KEYS[np.flatnonzero((cells != cells[0]).any(axis=1))[:1]]
        counts = drawn.simulate(np.append(twins, other), np.array([5_000, 5_000, 5_000]), stream(0, "noise"))
        assert not decode(drawn, counts, np.append(twins, other)).listed()[:2].any()

    def test_those_who_stand_out_are_fitted_and_hardly_any_others(self):
        """Hardly any noise of all candidates is fitted, and nothing of the words is lost."""
        drawn = Rappor.one_shot(6.0, n_bits=16, n_cohorts=4).draw_hashes(stream(1, "hashes"))
        words = decode(drawn, drawn.simulate(KEYS[:3], self.HELD, stream(0, "noise")), KEYS[:90]).words
        assert np.all(words.estimate[:3] > 0.8 * self.HELD)
        assert np.count_nonzero(words.estimate) < 30

    def test_words_nobody_thought_of_widen_the_intervals(self):
        drawn = protocol()
        full = drawn.simulate(KEYS[:2], np.array([100_000, 100_000]), stream(0, "noise"))
        assert decode(drawn, full, KEYS[[1, 5]]).dispersion > 1.5
        assert decode(drawn, full, KEYS[:2]).dispersion < 1.2

    def test_a_cohort_without_reports_is_left_out(self):
        drawn = protocol(n_cohorts=2)
        pairs = np.zeros((1, 2, 1), dtype=int)
        pairs[0, 0, 0] = 10_000
        counts = drawn.simulate_pairs(KEYS[:1], pairs, np.array([1]), stream(0, "noise"))
        assert decode(drawn, counts, KEYS[:3]).words.unbiased[0] == pytest.approx(10_000, rel=0.2)

    def test_adjusted_p_values_are_those_by_hand(self):
        """Benjamini and Hochberg's by hand, times Storey's 1: three of four null by the two above .8."""
        assert _adjusted(np.array([0.01, 0.02, 0.9, 0.95])) == pytest.approx([0.04, 0.04, 0.95, 0.95])

    def test_intervals_reach_as_far_on_both_sides_as_95_percent_ask(self):
        drawn = protocol()
        found = decode(drawn, drawn.simulate(KEYS[:1], np.array([1000]), stream(0, "noise")), KEYS[:3]).words
        for end in (found.high - found.unbiased, found.unbiased - found.low):
            assert (end / found.standard_error).to_numpy() == pytest.approx(np.full(3, norm.isf(0.025)), rel=1e-3)

    def test_bad_questions_are_refused(self):
        drawn = protocol()
        counts = drawn.simulate(KEYS[:1], np.array([10]), stream(0, "noise"))
        with pytest.raises(ValueError, match="each key once and at least one, got 0"):
            decode(drawn, counts, KEYS[:0])
        with pytest.raises(ValueError, match="each key once"):
            decode(drawn, counts, KEYS[[0, 0]])
        with pytest.raises(ValueError, match="counts must hold reports, got none"):
            decode(drawn, drawn.empty(), KEYS)
        with pytest.raises(ValueError, match=r"false_discovery_rate must lie in \(0, 1\), got 1"):
            decode(drawn, counts, KEYS).listed(1)


class TestScoresOfANull:
    def test_tails_are_those_of_all_hash_functions(self):
        """Of many cohorts, whose tails no law of two moments has: skewed values, as where a stranger is frequent."""
        rng = stream(0, "values")
        values = np.where(rng.random((16, 8)) < 0.15, 3.0, rng.normal(scale=0.3, size=(16, 8)))
        law = np.take_along_axis(values, rng.integers(0, 8, size=(16, 400_000)), 1).sum(axis=0)
        for chance in (0.1, 0.01, 0.001):
            score = np.quantile(law, 1 - chance)
            assert _tail(values[None], np.array([score]))[0] == pytest.approx(chance, rel=0.35)
        assert norm.sf((score - law.mean()) / law.std()) < 0.6 * chance

    def test_a_wide_fit_may_choose_nobody(self):
        drawn = protocol(n_bits=4, n_cohorts=2)
        counts = drawn.simulate(KEYS[:1], np.array([3]), stream(0, "noise"))
        assert not decode(drawn, counts, KEYS[10:30]).words.estimate.any()

    def test_values_that_are_all_alike_say_nothing(self):
        assert _tail(np.zeros((2, 2, 4)), np.array([0.0, 1.0])).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"n_bits": 33}, "n_bits must be a power of two, got 33; 32 or 64 would work"),
        ({"n_bits": 128}, r"n_bits must lie in \[2, 64\], got 128"),
        ({"one_from_zero": 0.8}, "0 < one_from_zero < one_from_one < 1, got 0.8 and 0.75"),
    ],
)
def test_settings_that_cannot_work_are_refused(choices, message):
    with pytest.raises(ValueError, match=message):
        Rappor(**choices)


def test_counts_and_keys_must_fit_together():
    with pytest.raises(ValueError, match=r"keys must be \(clients, reports\), 2 clients, got \(2,\)"):
        protocol().collect(KEYS[:2], np.zeros(2, int), stream(0, "noise"))
    with pytest.raises(ValueError, match="counts must be those of this protocol"):
        decode(protocol(), protocol(n_bits=8).simulate(KEYS[:1], np.array([5]), stream(0, "noise")), KEYS)
    with pytest.raises(ValueError, match="epsilon must be at most 50"):
        Rappor.one_shot(80.0)
    with pytest.raises(ValueError, match="first and second must have one length"):
        Rappor().loss_of_histories([1], [1, 2])
    with pytest.raises(ValueError, match="counts must have one entry per key, got 1 for 2 keys"):
        protocol().simulate(KEYS[:2], np.array([5]), stream(0, "noise"))
