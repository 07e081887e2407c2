"""What Bassily et al. (2020) print, shown to fail; ids as in book/errata.md."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom, norm, poisson

from evolvingdp.core import hadamard
from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters import theory
from evolvingdp.heavy_hitters.bitstogram import Bitstogram
from evolvingdp.heavy_hitters.count_sketch import FreqOracle
from evolvingdp.heavy_hitters.rappor import Rappor


def test_E_HH_1_a_report_redrawn_per_question_costs_epsilon_per_question():
    flip, questions = SignFlip(2.0), 100
    same, other = flip.probabilities(1)[1], flip.probabilities(-1)[1]
    assert questions * math.log(same / other) == pytest.approx(200)  # all answers +1, as printed
    three = [math.prod(flip.probabilities(bit)[y] for y in (1, 1, 1)) for bit in (1, -1)]  # enumerated for 3
    assert math.log(three[0] / three[1]) == pytest.approx(6)
    oracle = FreqOracle(MultiplyShift.draw(3, 8, stream(0, "hashes")), 2.0)
    keys = np.arange(4, dtype=np.uint64)
    sketch = oracle.collect(keys, stream(0, "slots"), stream(0, "noise"))
    assert np.array_equal(oracle.estimate(sketch, keys), oracle.estimate(sketch, keys))  # ours: asking again draws nothing


def test_E_HH_2_one_half_plus_epsilon_half_exceeds_epsilon():
    epsilon = 0.5
    printed = math.log((0.5 + epsilon / 2) / (0.5 - epsilon / 2))
    assert printed == pytest.approx(1.0986, abs=1e-4)
    assert printed > epsilon
    law = SignFlip(epsilon).probabilities(1)
    assert math.log(law[1] / law[-1]) == pytest.approx(epsilon)


def test_E_HH_3_a_width_that_is_no_power_of_two_has_correlated_columns():
    printed = np.arange(3)
    matrix = hadamard.signs(printed[:, None], printed[None, :]).astype(int)
    assert (matrix.T @ matrix)[0, 1] == 1  # given the hashes: 1/3 of another word's count, instead of 0
    for width in (3, 100, 3162):  # and over the random signs, the collisions' variance is larger by 1.2
        index = np.arange(width)
        products = hadamard.signs(index[:, None], index[None, :]).astype(float)
        inflated = np.square(products.T @ products).sum() / width**3
        assert 1.15 < inflated < 1.25
    used = np.arange(4)
    matrix = hadamard.signs(used[:, None], used[None, :]).astype(int)
    assert np.array_equal(matrix.T @ matrix, 4 * np.eye(4))
    with pytest.raises(ValueError, match="power of two"):
        FreqOracle(MultiplyShift.draw(1, 3, stream(0, "hashes")), 1.0)


def test_E_HH_4_the_printed_upper_poisson_tail_is_false():
    tail = poisson.sf(199, 100)  # Pr[X >= 200]
    assert tail == pytest.approx(9e-19, rel=0.1)
    assert tail > math.exp(-100 / 2)  # printed: 2e-22
    for mean, alpha in itertools.product((1, 10, 100), (0.1, 0.5, 1.0)):
        assert poisson.sf(math.ceil(mean * (1 + alpha)) - 1, mean) <= math.exp(-(alpha**2) * mean / 3)
    allowed = 0.01  # by the proof of Lemma 6.8 for twice a mean of 10
    assert math.exp(-10 / 2) < allowed < math.exp(-10 / 3)
    assert poisson.sf(20, 10) == pytest.approx(0.0016, abs=5e-5)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0])
def test_E_HH_5_four_over_epsilon_is_one_standard_deviation(epsilon):
    deviation = SignFlip(epsilon / 2).debias  # a_epsilon of Algorithm 2, per square root of a user
    inside = 1 - 2 * norm.sf(4 / epsilon / deviation)
    assert 0.66 < inside < 0.69
    assert inside < 0.99


def test_E_HH_6_the_fractions_of_good_rows_multiply_to_less():
    first = 22 / 25 * 9 / 10
    second = 22 / 25 * first
    assert first == pytest.approx(0.792)
    assert first < 4 / 5
    assert second == pytest.approx(0.697, abs=1e-3)
    assert second < 7 / 10
    noise_inside = 1 - 2 * norm.sf(4 / SignFlip(0.5).debias)  # E-HH-5: what the printed constant gives at epsilon = 1
    assert first * noise_inside == pytest.approx(0.53, abs=0.01)


def _apart(oracle, words, word):
    row = np.zeros(1, dtype=int)
    return oracle.hashes.cells(row, words) != oracle.hashes.cells(row, word)


def test_E_HH_7_shared_indices_correlate_pruning_and_final_estimates():
    """A word that nobody holds, two levels, row estimates over many runs: printed (same slots) and ours (fresh)."""
    epsilon, levels, runs, n_users = 8.0, 2, 3000, 400
    oracle = FreqOracle(MultiplyShift.draw(1, 16, stream(0, "hashes")), epsilon / 2)
    fresh = FreqOracle(MultiplyShift.draw(1, 16, stream(0, "other hashes")), epsilon / 2)
    keys, others = np.full(n_users, 1, dtype=np.uint64), stream(0, "words").integers(2, 2**32, size=50, dtype=np.uint64)
    asked = others[_apart(oracle, others, keys[:1]) & _apart(fresh, others, keys[:1])][:1]  # no collision with the word held
    public, private = stream(0, "slots"), stream(0, "noise")
    pruning, printed, ours = np.empty((3, runs))
    for run in range(runs):
        at_leaf = public.integers(0, levels, size=n_users) == 0
        slots = oracle.assign(n_users, public)

        def report(who, where, with_oracle=oracle):
            return with_oracle.report(keys[who], where, private)

        first = oracle.add(oracle.empty(), slots[at_leaf], report(at_leaf, slots[at_leaf]))
        pruning[run] = oracle.row_estimates(first, asked)[0, 0]
        again = oracle.add(oracle.empty(), slots, report(slice(None), slots))
        printed[run] = oracle.row_estimates(again, asked)[0, 0]
        other = fresh.assign(n_users, public)
        ours[run] = fresh.row_estimates(fresh.add(fresh.empty(), other, report(slice(None), other, fresh)), asked)[0, 0]
    expected = 1 / (SignFlip(epsilon / 2).debias ** 2 * math.sqrt(levels))
    deviation = 1 / math.sqrt(runs)
    assert abs(np.corrcoef(pruning, printed)[0, 1] - expected) < 4.9 * deviation
    assert abs(np.corrcoef(pruning, ours)[0, 1]) < 4.9 * deviation
    assert expected > 0.6


def test_E_HH_8_the_last_step_fails_above_epsilon_one():
    def allowed_by_the_steps(epsilon):
        return 8 + 4 * math.sqrt(2) / epsilon  # times sqrt(n gamma): Claim 5.5, and the noise with n_I <= 2 n / gamma

    def printed(epsilon):
        return theory.paper_error_bound(1, epsilon, 1)

    assert allowed_by_the_steps(1.0) < printed(1.0)
    assert allowed_by_the_steps(1.05) > printed(1.05)
    assert printed(2.0) == 7 < 8


def test_E_HH_9_each_bucket_gives_one_candidate():
    method = Bitstogram(8.0, 100.0, length=2, buckets=16, repetitions=2, rows=4, width=64)
    drawn = method.draw_hashes(stream(0, "hashes"))
    reports = drawn.simulate(method.encode(["ab", "cd"]), np.array([3000, 2000]), stream(0, "noise"))
    assert drawn.search(reports, 5000).path.candidates.tolist() == [2 * 16]  # not 2 * 16 * log2(26^2)


def test_E_HH_10_ln_3_is_no_privacy_level_of_demo_3():
    demo = Rappor()
    printed = math.log(3)
    assert demo.epsilon_of_reports(1) == pytest.approx(1.0217, abs=1e-4)
    assert demo.epsilon_of_reports(1) < printed
    assert demo.epsilon_of_reports(2) == pytest.approx(1.54 * printed, rel=0.005)
    assert demo.epsilon_permanent == pytest.approx(2 * printed)


def test_E_HH_11_the_printed_hoeffding_radius_is_left_too_often():
    n, failure = 10_000, 1e-3
    printed, used = math.sqrt(n * math.log(4 / failure)), math.sqrt(2 * n * math.log(2 / failure))

    def outside(radius):  # of a sum of n fair signs
        return 2 * binom.sf(math.floor((n + radius) / 2), n, 0.5)

    assert outside(printed) == pytest.approx(4e-3, rel=0.05)
    assert outside(printed) > failure > outside(used)

    def room(words):  # the lemma's bound over what the correct radius gives, at epsilon = 1
        return 3 * math.sqrt(math.log(4 * words)) * math.tanh(0.5) / math.sqrt(2 * math.log(2 * words))

    assert room(10**7) > 1 > room(10**8)


def test_E_HH_12_a_word_of_264_n_over_T_users_is_below_its_allowed_collisions():
    n, asked = 10**7, theory.bitstogram_constants(10**7, 1.0, 0.05)
    groups = asked["repetitions"] * asked["code_bits"]
    collisions = 32 * n**1.5 / (asked["buckets"] * groups)
    half_of_its_users = 0.5 / groups
    assert half_of_its_users * asked["found_from"] - collisions == pytest.approx(100 * n**1.5 / (asked["buckets"] * groups))
    assert half_of_its_users * 264 * n / asked["buckets"] < collisions / 700
    assert asked["code_bits"] == pytest.approx(16_247, abs=1)
    assert asked["inner_rows"] == pytest.approx(1006, abs=1)
