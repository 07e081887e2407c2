"""What George et al. (2022) print, shown to fail; ids as in book/errata.md."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evolvingdp.continual_mean import algorithms, blocks, private_median, streams, theory
from evolvingdp.continual_mean.binary_mechanism import printed_sums
from evolvingdp.continual_mean.prefix_sums import Tree
from evolvingdp.continual_mean.settings import most_samples
from evolvingdp.core import accounting
from evolvingdp.core.noise import Laplace, Tape
from evolvingdp.core.seeds import stream
from literal_continual_mean import run as run_literally


def silent(tree):
    return lambda: 0.0


def nodes_of(element, count):
    """How many of the partial sums 1, ..., count hold `element`; the k-th sums the last k & -k elements."""
    return sum(k - (k & -k) < element <= k for k in range(1, count + 1))


def test_E_CM_1_a_digit_zero_adds_the_last_partial_sum_again():
    nodes = [k & -k for k in range(1, 9)]  # a stream of ones, no noise
    assert printed_sums(nodes).tolist() == [1, 4, 3, 12, 9, 8, 7, 32]
    exact = Tree(8).all(8, Tape(Ones(), stream(0, "ones")))
    assert exact.tolist() == [bin(k).count("1") for k in range(1, 9)]  # one node per digit 1


class Ones:
    variance = 1.0

    def draw(self, size, rng):
        return np.ones(size)


def estimates(settings, users, samples, printed):
    rngs = stream(0, "medians").spawn(settings.n_trees)
    pairs = zip(users.tolist(), samples.tolist(), strict=True)
    return list(run_literally(settings, pairs, silent, rngs, printed))


def test_E_CM_2_a_block_counts_twice_the_samples_it_holds():
    settings = algorithms.multiple_trees(40, 64, 1.0, 0.3)
    users, samples = streams.arrivals("round_robin", 40, 64, 2560, stream(0, "two")), streams.bits(0.3, 2560, stream(0, "x"))
    (printed, _), (repaired, _) = (estimates(settings, users, samples, p)[-1] for p in (["total"], []))
    assert repaired == pytest.approx(samples.mean(), abs=0.002)
    assert printed == pytest.approx(repaired * 64 / 127)  # 1 + 2 + ... + 64 counted for 64 samples


def test_E_CM_3_a_level_that_stays_inactive_draws_its_median_at_every_step():
    settings = algorithms.full(40, 16, 3000.0)
    users, samples = streams.arrivals("round_robin", 40, 16, 640, stream(0, "rr")), streams.bits(0.3, 640, stream(0, "x"))
    printed, repaired = (estimates(settings, users, samples, p)[-1] for p in (["inactive"], []))
    assert set(repaired[1].values()) == {1}
    assert min(printed[1].values()) > 100  # epsilon / 2L each: the budget is spent hundreds of times
    assert repaired[0] == pytest.approx(0.3, abs=0.05)
    assert printed[0] < 0.05  # the total grows at every step, the sum does not


def test_E_CM_4_outputs_tell_who_arrived_so_neighbours_must_share_the_arrivals():
    """A withheld sample repeats the last output exactly, any other changes it almost surely: disjoint outputs."""
    settings = algorithms.full(4, 8, 1.0)
    samples = np.zeros(4, dtype=int)
    for seed in range(20):
        same = settings.release(np.array([0, 0, 0, 1]), samples[:4], stream(seed, "noise")).estimate
        moved = settings.release(np.array([0, 0, 1, 0]), samples[:4], stream(seed, "noise")).estimate
        assert same[2] == same[1]  # user 0's third sample waits
        assert moved[2] != moved[1]  # user 1's first does not


@pytest.mark.parametrize("count", [4, 6, 12, 100])
def test_E_CM_5_a_tree_has_whole_levels_of_base_two(count):
    most = max(nodes_of(element, count) for element in range(1, count + 1))
    assert most == Tree(count).height == math.floor(math.log2(count)) + 1
    assert math.log2(1 + count) < most  # Algorithm 4's noise: the loss is larger than epsilon by this ratio
    natural = 1 + math.log(10**6)
    assert Tree(10**6).height / natural == pytest.approx(1.35, abs=0.005)  # and by this one, in Algorithm 2, if log is ln


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_E_CM_6_the_printed_sensitivity_exceeds_the_range_of_the_blocks(epsilon):
    settings = algorithms.full(50_000, 4096, epsilon)
    exceeding = [level for level, one in enumerate(settings.levels) if one.moved > one.size]
    assert set(range(10)) <= set(exceeding)
    assert not settings.levels[0].projects
    assert not settings.levels[1].projects  # Pi_0 and Pi_1 are not defined: there is no prior below level 2


def test_E_CM_7_the_ceiling_of_log_m_makes_a_level_that_nobody_reaches():
    settings = algorithms.full(1000, 1000, 1.0)
    assert math.ceil(math.log2(1000)) == 10
    assert 2**10 > 1000  # no user has that many samples
    assert settings.top_level == 9
    rank = np.arange(1, 1001)
    assert blocks._blocks(settings, rank, rank, np.ones(1000, dtype=int)).level.max() == 9


def test_E_CM_8_the_printed_condition_does_not_fill_the_last_array():
    epsilon, level, beta = 0.1, 4, 0.05
    printed = 16 / epsilon * math.log(2 ** (level / 2) / beta)
    assert printed != int(printed)
    size = 2 ** (level - 1)
    samples = math.ceil(size * printed)  # the printed condition holds
    assert samples // size < math.ceil(printed) == private_median.n_arrays(epsilon, level, beta)


def test_E_CM_9_the_median_of_level_two_is_a_constant():
    rng = stream(0, "two")
    for means in (np.zeros(50), np.ones(50)):
        assert {private_median.draw(means, 1.0, 2, rng) for _ in range(20)} == {0.5}


def test_E_CM_10_a_stream_is_no_set_and_one_is_a_power_of_two():
    settings = algorithms.multiple_trees(40, 4, 1.0, 0.3)
    users, samples = streams.arrivals("round_robin", 40, 4, 160, stream(0, "rr")), streams.bits(0.3, 160, stream(0, "x"))
    (printed, _), (repaired, _) = (estimates(settings, users, samples, p)[-1] for p in (["set"], []))
    assert repaired == pytest.approx(samples.mean())
    assert printed < 0.05  # of 40 equal elements one is left
    one = np.array([1])
    assert blocks._blocks(settings, one, one, one).level.tolist() == [0]  # log 1 = 0 is whole, or first samples are lost


def test_E_CM_11_the_window_of_algorithm_3_is_no_user_where_users_take_turns():
    n, m = 10_000, 4096
    settings = algorithms.wishful(n, m, 1.0, 0.5)
    mine = np.arange(0, n * m, n)  # the steps of user 0; windows are m consecutive steps
    windows = mine // m
    assert len(set(windows.tolist())) == m  # every sample falls into another window, and may move it by 1
    assert m / settings.levels[0].moved == pytest.approx(9.0, abs=0.1)
    moved = np.zeros(n)
    moved[windows] = 1
    change = sum(moved[end - (end & -end) : end].sum() for end in range(1, n + 1))  # of all node sums
    assert change / settings.noises[0].scale == pytest.approx(4.63, abs=0.02)


def test_E_CM_12_a_user_beyond_the_cap_is_refused():
    settings = algorithms.naive(4, 8, 1.0)
    users = np.repeat([0, 1], 16)
    with pytest.raises(ValueError, match="at most samples_per_user = 8 times, user 0"):
        settings.release(users, np.zeros(32, dtype=int), stream(0, "noise"))
    noise = settings.noise.scale
    change = sum(sum(users[k - (k & -k) : k] == 0) for k in range(1, 33))  # of all node sums, if nothing is refused
    assert change / noise > settings.epsilon


def test_E_CM_13_one_sample_a_user_is_a_setting_too():
    assert math.log2(1) == 0  # the printed logarithm is that of 2 n * 0 / delta, the printed share epsilon / 2 * 0
    settings = algorithms.full(100, 1, 1.0)
    assert settings.top_level == 0
    assert all(math.isfinite(one.half) for one in settings.levels)
    released = settings.release(np.arange(100), np.ones(100, dtype=int), stream(0, "noise"))
    assert np.isfinite(released.estimate).all()


def test_E_CM_14_the_second_sufficient_condition_lacks_a_factor_two():
    settings = algorithms.full(10_000, 1024, 1.0)
    printed = 16 / 1.0 * 10 * math.log(3 * 10 * math.sqrt(1024) / 0.05)
    assert math.ceil(printed) == 1579
    counts = np.zeros(10_000)
    counts[: math.ceil(printed)] = 512
    counts[0] = 1024
    assert not theory.diverse(settings, counts)
    counts[1:3157] = 512
    assert theory.diverse(settings, counts)


def test_E_CM_15_the_tail_of_laplace_sums_is_not_gaussian():
    delta = 1e-6
    assert math.exp(-math.sqrt(math.log(1 / delta))) == pytest.approx(0.024, abs=0.0005)  # one draw, c = 1
    small = 1e-300  # for any c there is a delta: here c = 10
    assert -10 * math.sqrt(math.log(1 / small)) > math.log(small)
    draws = Laplace(1.0).draw(4_000_000, stream(0, "tail")).reshape(-1, 4).sum(axis=1)
    for beta in (0.1, 1e-3):
        assert np.mean(np.abs(draws) >= theory.laplace_sum_tail(math.sqrt(8), beta)) <= beta
    betas = np.geomspace(1e-300, 0.5, 50)  # of the order that the proofs have, sqrt(sum b^2) ln(1 / delta), and above it
    ratios = [float(theory.laplace_sum_tail(1.0, beta)) / (math.sqrt(1 / 2) * math.log(1 / beta)) for beta in betas]
    assert 1 < min(ratios) <= max(ratios) < 5


def test_E_CM_16_the_printed_composition_lacks_terms():
    d, one, delta = 100, 0.1, 1e-6
    printed = one * math.sqrt(d * math.log(1 / delta))
    true = one * math.sqrt(2 * d * math.log(1 / delta)) + d * one * math.expm1(one)
    assert (printed, true) == (pytest.approx(3.72, abs=0.005), pytest.approx(6.31, abs=0.005))
    assert accounting.delta_of_reports(one, printed, d) > 10 * delta  # exact, for randomised response
    assert accounting.delta_of_reports(one, true, d) < delta


def test_E_CM_17_rescaling_does_not_make_the_baseline_s_noise_fall():
    users = np.arange(1000) % 10
    settings, zeros = algorithms.naive(10, 100, 1.0), np.zeros(1000)
    runs = [algorithms.per_step(settings, users, zeros, stream(seed, "baseline")) for seed in range(2000)]
    even, most, steps = np.std(runs, axis=0), most_samples(users), np.arange(1, 1001)
    np.testing.assert_allclose(even, math.sqrt(2) * most * 1000 / steps, rtol=0.2)
    assert even[0] > 900  # not M_t / epsilon = 1
    harmonic = np.sum(1 / steps)  # the least constant c such that scales c M_t / epsilon at all steps cost epsilon
    assert np.sum(most / steps / (harmonic * most)) == pytest.approx(1)
    assert harmonic > 7


def test_E_CM_18_the_condition_for_d_dimensions_grows_with_the_cap_and_samples_need_a_range():
    d, caps = 4, np.array([2.0**10, 2.0**14, 2.0**18])
    one = algorithms.full(10_000, 2**20, 1.0 / math.sqrt(d))  # of d coordinates, as Section 4 shares epsilon
    needed = np.array([cap / 2 * theory.arrays_needed(one, cap) for cap in caps])
    printed = np.sqrt(d * caps)
    np.testing.assert_allclose(needed, [6.92e6, 1.25e8, 2.24e9], rtol=0.005)
    assert (needed[1:] / needed[:-1] > 16).all()
    assert (printed[1:] / printed[:-1] == 4).all()
    counts = np.zeros(10_000)
    counts[0], counts[1:1000] = 2**18, 2**17  # a hundred thousand times the printed number: not diverse
    assert np.minimum(counts, 2**17).sum() > 1e5 * printed[2]
    assert not theory.diverse(one, counts)

    losses = [size * one.sums.l1 / one.noises[0].scale for size in (1.0, 1e3, 1e6)]
    assert losses[0] < one.epsilon  # samples in [0, 1]
    assert losses[2] > 1000 * one.epsilon  # samples a million apart, not projected
    with pytest.raises(ValueError, match=r"samples must lie in \[0, 1\], got 1000000.0"):
        one.release([0], [1e6], stream(0, "noise"))
