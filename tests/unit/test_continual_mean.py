"""Hand-worked values, laws and refusals of the continual means."""

from __future__ import annotations

import math
import re
import tracemalloc

import numpy as np
import pytest
from chosen import Chosen

from evolvingdp.book.checkout import params_of
from evolvingdp.continual_mean import (
    algorithms,
    blocks,
    choosing,
    prefix_sums,
    private_median,
    streams,
    theory,
    windows,
)
from evolvingdp.continual_mean.binary_mechanism import BinaryMechanism, best_tree
from evolvingdp.continual_mean.blocks import Blocks
from evolvingdp.continual_mean.prefix_sums import Buffered, Tree
from evolvingdp.continual_mean.settings import most_samples
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core.checks import ParameterError
from evolvingdp.core.noise import DiscreteLaplace, Laplace, Tape
from evolvingdp.core.seeds import stream
from literal_continual_mean import run as run_literally


def blocks_of(settings, ranks):
    """The level of the block that each rank of a user's samples fills, or none."""
    ranks = np.asarray(ranks)
    filled = blocks._blocks(settings, np.arange(1, len(ranks) + 1), ranks, np.ones(len(ranks), dtype=int))
    return dict(zip(ranks[filled.step - 1].tolist(), filled.level.tolist(), strict=True))


def test_blocks_hold_1_1_2_4_samples_and_users_finish_them_at_powers_of_two():
    settings = algorithms.full(10, 20, 1.0)
    assert [each.size for each in settings.levels] == [1, 1, 2, 4, 8]
    assert blocks_of(settings, range(1, 21)) == {1: 0, 2: 1, 4: 2, 8: 3, 16: 4}


@pytest.mark.parametrize("order", streams.ORDERS)
def test_blocks_hold_at_least_half_of_all_samples_at_any_time(order):
    """Claim C.1: a sample waits for no more samples of its user than have been released before."""
    settings = algorithms.multiple_trees(40, 100, 1.0, 0.5)
    users = streams.arrivals(order, 40, 100, 2000, stream(0, "half", order))
    released = settings.release(users, np.zeros(2000, dtype=int), stream(0, "noise"))
    assert (released.samples >= np.arange(1, 2001) / 2).all()


def test_delta_l_of_algorithm_6_by_hand():
    settings = algorithms.full(50_000, 4096, 2.0, beta=0.05)
    k = 16 / (2.0 / 24) * math.log(2**4 / (0.05 / 36))
    by_hand = math.sqrt(64 * math.log(2 * 50_000 * 12 / (0.05 / 3))) + math.sqrt(2**8 * math.log(2 * k / (0.05 / 36)))
    assert settings.levels[8].half == pytest.approx(by_hand)
    assert settings.noises[8].scale == pytest.approx(2 * by_hand * 16 / (2.0 / 26))  # 16 levels, epsilon / 2(L+1)


def test_noise_scales_of_algorithms_2_to_5_by_hand():
    n, m, epsilon, beta = 1000, 64, 0.5, 0.05
    log = math.log(2 * n * 6 / beta)
    assert algorithms.naive(n, m, epsilon, horizon=5000).noise.scale == pytest.approx(m * 13 / epsilon)
    cases = {
        algorithms.wishful(n, m, epsilon, 0.5): 2 * (math.sqrt(32 * math.log(2 * n / beta)) + 8) * 10 / epsilon,
        algorithms.single_tree(n, m, epsilon, 0.5): 2 * (math.sqrt(32 * log) + 8) * 7 * 13 / epsilon,
    }
    for settings, scale in cases.items():
        assert settings.noises[0].scale == pytest.approx(scale)
    settings = algorithms.multiple_trees(n, m, epsilon, 0.5)
    assert settings.noises[5].scale == pytest.approx(2 * (math.sqrt(8 * log) + 4) * 10 / (epsilon / 7))


class _Units(Tape):
    """A tape with one draw of 1, and 0 before and after: noise is linear in draws, so that it tells their weights."""

    def __init__(self, place):
        super().__init__(Laplace(1.0), None)
        self._block = (np.arange(4096) == place).astype(float)


UNITS = [
    *(Tree(60, branching, balanced) for branching in (2, 3, 4, 7) for balanced in (False, True)),
    Tree(60, 61),
    *(Buffered(60, decay) for decay in (1.0, 0.9, 0.2)),
]  # fmt: skip


@pytest.mark.parametrize("part", [8, 1024])
@pytest.mark.parametrize("sums", UNITS, ids=str)
def test_variances_are_those_of_the_weights_that_draws_have_in_the_noise(sums, part, monkeypatch):
    """B, a draw a column, from the noise that is released, in parts or at once."""
    monkeypatch.setattr(prefix_sums, "FIRST", part)
    monkeypatch.setattr(prefix_sums, "LONGEST", 2 * part)
    weights = np.array([sums.all(60, _Units(place)) for place in range(400)]).T
    assert np.abs(weights[:, 300:]).max() < 1e-12  # no draw is later
    np.testing.assert_allclose(sums.variances(60), (weights**2).sum(axis=1), rtol=1e-9)


@pytest.mark.parametrize("branching", [2, 3, 4, 7, 19])
def test_a_balanced_tree_is_as_high_as_its_longest_prefix_needs(branching):
    below = (branching - 1) // 2
    for digits in (1, 2, 3):
        longest = sum(branching // 2 * branching**level for level in range(digits))
        heights = [Tree(length, branching, True).height for length in (longest, longest + 1)]
        assert heights == [digits, digits + 1]
        assert Tree(longest, branching, True).relative_variance(longest) == digits * (branching // 2)
        one = longest - branching // 2 + branching - below  # the last digit is the most negative one
        assert Tree(10**6, branching, True).relative_variance(one) >= below


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("branching", [2, 3, 4, 10, 1000])
def test_variances_of_all_prefixes_are_those_of_each(branching, balanced):
    for capacity in (1, 2, 5, 27, 100, 1234):
        tree, counts = Tree(capacity, branching, balanced), {1, 1 + capacity // 3, capacity}
        for count in counts:
            np.testing.assert_array_equal(tree.variances(count), [tree.relative_variance(k) for k in range(1, count + 1)])


def test_the_best_tree_is_the_one_with_the_least_exact_error():
    """Exact root mean squares at epsilon 1; on long streams negative digits, on short ones one level of blocks."""
    for horizon, error in ((5000, 17.0), (10**6, 33.8)):
        best = best_tree(horizon)
        assert best.balanced
        assert math.sqrt(2 * best.variances(horizon).mean()) * best.l1 == pytest.approx(error, abs=0.1)
    for horizon in (1, 7, 50, 500):
        lengths, best = np.arange(1, horizon + 1), best_tree(horizon)
        errors = [
            np.mean(Tree(horizon, base, balanced).relative_variance(lengths)) * Tree(horizon, base, balanced).l1 ** 2
            for base in range(2, 33)
            for balanced in (False, True)
        ]
        assert np.mean(best.relative_variance(lengths)) * best.l1**2 == pytest.approx(min(errors))


def test_bins_cover_the_unit_interval():
    for level in range(1, 15):
        middles = private_median.bins(level)
        assert len(middles) == max(1, math.ceil(2 ** (level / 2) / 2 - 1e-9))
        assert middles.min() > 0
        assert middles.max() < 1


def test_private_median_finds_the_bin_of_clear_data():
    rng = stream(0, "median")
    means = np.full(400, 0.31)
    drawn = np.array([private_median.draw(means, 1.0, 8, rng) for _ in range(50)])
    assert np.abs(drawn - 0.31).max() <= 2 * 2**-4 / 2 + 1e-12


@pytest.mark.parametrize("order", streams.ORDERS)
def test_arrivals_respect_the_cap_and_have_the_length(order):
    users = streams.arrivals(order, 50, 8, 399, stream(0, order))
    assert len(users) == 399
    assert np.bincount(users, minlength=50).max() <= 8
    assert users.max() < 50


def test_orders_are_what_they_say():
    rng = stream(0, "orders")
    assert streams.arrivals("contiguous", 3, 2, 6, rng).tolist() == [0, 0, 1, 1, 2, 2]
    assert streams.arrivals("round_robin", 3, 2, 6, rng).tolist() == [0, 1, 2, 0, 1, 2]
    assert abs(np.bincount(streams.arrivals("dominant", 100, 10_000, 10_000, rng))[0] - 5000) <= 6 * math.sqrt(2500)
    first = streams.arrivals("dominant", 100, 40, 4000, rng)  # every user uses up the cap: the dominant one does so first
    assert (np.bincount(first) == 40).all()
    assert np.flatnonzero(first == 0)[-1] < 200
    assert streams.arrivals("dominant", 1, 9, 9, rng).tolist() == [0] * 9
    zipf = np.bincount(streams.arrivals("zipf", 100, 10_000, 10_000, rng))
    assert zipf[0] == pytest.approx(10_000 / np.sum(1 / np.arange(1, 101)), rel=0.1)


def test_the_release_before_any_element_is_the_prior():
    settings = algorithms.wishful(10, 4, 1.0, 0.25)
    released = settings.release(np.zeros(4, dtype=int), np.ones(4, dtype=int), stream(0, "noise"))
    assert released.estimate[:3].tolist() == [0.25] * 3
    assert released.estimate[3] != 0.25
    assert np.isinf(released.standard_error[:3]).all()
    assert set(algorithms.full(3, 8, 1.0).release([0], [1], stream(0, "noise")).bias) == {1.0}  # all of the range


def test_clipping_keeps_estimates_in_the_range():
    settings = choosing.users_alike(50, 8, 0.05, low=-2.0, high=5.0, resolution=1, batch=1)
    users = streams.arrivals("random", 50, 8, 400, stream(0, "users"))
    samples = np.where(stream(0, "x").random(400) < 0.5, -2.0, 5.0)
    estimate = settings.release(users, samples, stream(0, "noise")).estimate
    assert estimate.min() >= -2
    assert estimate.max() <= 5
    assert estimate.min() == -2  # at this epsilon it is needed


@pytest.mark.parametrize("order", ["random", "zipf"])
def test_what_is_recommended_has_nearly_the_cap_with_the_least_stated_error(order):
    """From what whole streams state: where all users are looked at, of caps 3 % apart none is better by a 500th."""
    users = streams.arrivals(order, 2000, 512, 40_000, stream(0, "caps", order))
    settings = choosing.recommended(2000, 512, 2.0, arrivals=users, horizon=40_000)

    def late(cap):
        released = settings.but(samples_per_user=cap).release(users, np.zeros(40_000, dtype=int), stream(0, "noise"))
        return np.sqrt(np.mean(released.standard_error[20_000:] ** 2 + released.bias[20_000:] ** 2))

    others = {late(round(settings.samples_per_user * 1.03**power)) for power in range(-25, 26)}
    assert late(settings.samples_per_user) < 1.002 * min(others)


def stated_late(settings, users):
    released = settings.release(users, np.zeros(len(users), dtype=int), stream(0, "noise"))
    late = slice(len(users) // 2, None)
    return math.sqrt(np.mean(released.standard_error[late] ** 2 + released.bias[late] ** 2))


STATED = {  # late, in each of `streams.ORDERS`, by the search over all caps and reaches that this one replaced
    (200, 1000, 0.5, 0.0): (0.36911, 0.06386, 0.06471, 0.17874, 0.08271),
    (200, 1000, 2.0, 0.0): (0.13299, 0.02519, 0.02650, 0.09342, 0.04601),
    (200, 1000, 2.0, 1e-6): (0.13299, 0.01388, 0.01697, 0.09342, 0.03933),
    (20, 5000, 2.0, 1e-6): (0.38869, 0.11734, 0.11734, 0.20614, 0.20634),
}


@pytest.mark.parametrize("sizes", STATED)
def test_no_error_is_stated_larger_by_a_fiftieth_than_a_search_over_all_caps_and_reaches_stated(sizes):
    """Where noise was averaged over fewer batches than there are, one was larger by a twelfth."""
    n_users, most, epsilon, delta = sizes
    for order, before in zip(streams.ORDERS, STATED[sizes], strict=True):
        users = streams.arrivals(order, n_users, most, 20_000, np.random.default_rng(1))
        chosen = choosing.recommended(n_users, most, epsilon, delta, arrivals=users, horizon=20_000)
        assert stated_late(chosen, users) < 1.02 * before


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_no_cap_is_above_what_nobody_shall_exceed(delta):
    """Also where arrivals of the past have users who sent more; what these sent beyond it is dropped."""
    users = streams.arrivals("zipf", 1000, 5000, 50_000, stream(0, "a past of more"))
    settings = choosing.recommended(1000, 20, 1.0, delta, arrivals=users, horizon=50_000)
    assert settings.samples_per_user <= 20
    others = [round(settings.samples_per_user * by) or 1 for by in (0.5, 0.8)] if not settings.delta else []
    assert all(
        stated_late(settings, users) < 1.01 * stated_late(settings.but(samples_per_user=cap), users) for cap in others
    )


def test_a_short_stream_takes_little_memory_however_long_the_horizon():
    settings = UserMean(10**4, 100, 1.0, 1e-6, reach=5.0, excess="drop")
    tracemalloc.start()
    try:
        for stream_of in ([0, 1, 0], [2] * 300):
            settings.release(stream_of, np.ones(len(stream_of), dtype=int), stream(0, "short"))
        settings.step(settings.start(stream(0, "short")), 0, 1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2**24  # with what is imported; a row of each step of the horizon takes 64 MB


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_arrivals_that_are_known_decide_what_is_kept(delta):
    users = np.tile(np.arange(100), 7)
    settings = choosing.recommended(100, 1000, 1.0, delta, arrivals=users, horizon=len(users))
    assert delta or settings.samples_per_user == 7  # nobody sends more
    release = settings.release(users, np.zeros(700, dtype=int), stream(0, "noise"))
    assert release.dropped == 0
    assert release.bias[settings.batch - 1 :: settings.batch].max() == 0  # between, samples wait for their batch
    refusing = choosing.recommended(100, 1000, 1.0, delta, arrivals=users, excess="error")
    assert (refusing.samples_per_user, refusing.excess, refusing.reach) == (1000, "error", None)
    with pytest.raises(TypeError, match="arrivals must be integers, one a step, got float64"):
        choosing.recommended(100, 1000, 1.0, delta, arrivals=[0.5])


def test_users_who_weigh_much_are_recommended_a_cap_also_where_delta_is_allowed():
    """One after the other, each sends all at once: in l2 nothing is gained, and what is pure has less error."""
    users = np.repeat(np.arange(40), 200)
    assert choosing.recommended(40, 200, 2.0, 1e-6, arrivals=users, horizon=8000).delta == 0
    assert choosing.recommended(40, 200, 2.0, 1e-6, arrivals=users, horizon=8000, decay=0.9).decay == 0.9
    assert choosing.recommended(400, 20, 2.0, 1e-6, arrivals=np.tile(np.arange(400), 20), horizon=8000).delta == 1e-6


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_what_is_best_early_is_not_what_is_best_late(delta):
    """Chosen for a fiftieth of a stream a mean states less error there; chosen for all of it, in the second half."""
    users = streams.arrivals("random", 2000, 512, 40_000, stream(0, "early and late"))
    chosen = {
        part: choosing.recommended(2000, 512, 2.0, delta, arrivals=users[: int(part * 40_000)], horizon=40_000)
        for part in (0.02, 1)
    }
    assert chosen[0.02].norm < chosen[1].norm if delta else chosen[0.02].samples_per_user < chosen[1].samples_per_user
    stated = {}
    for part, settings in chosen.items():
        released = settings.release(users, np.zeros(40_000, dtype=int), stream(0, "noise"))
        square = released.standard_error**2 + released.bias**2
        stated["early", part], stated["late", part] = np.mean(square[400:800]), np.mean(square[20_000:])
    assert stated["early", 0.02] < stated["early", 1]
    assert stated["late", 1] < stated["late", 0.02]


@pytest.mark.parametrize(
    ("n_users", "most", "horizon"), [(1, 1, None), (1, 5, 3), (3, 1, None), (2, 100, 7), (1, 1000, None)]
)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_few_users_of_few_samples_are_recommended_what_releases(n_users, most, horizon, delta):
    settings = choosing.recommended(n_users, most, 1.0, delta, horizon=horizon)
    users = np.resize(np.arange(n_users), settings.max_steps)
    released = settings.release(users, np.ones(len(users), dtype=int), stream(0, "few"))
    assert np.isfinite(released.estimate).all()
    assert np.isfinite(released.standard_error).tolist() == (released.samples > 0).tolist()  # of the first batch none is


def test_bounds_are_far_above_the_known_standard_error_and_refuse_what_they_do_not_cover():
    with pytest.raises(ValueError, match="settings must have Laplace noise, and be Algorithm 2, 4, 5 or 6"):
        theory.error_bound(algorithms.wishful(10, 8, 1.0, 0.5), [1], [1], 0.05)
    for settings in (
        algorithms.naive(100, 64, 1.0),
        algorithms.full(100, 64, 1.0),
        algorithms.multiple_trees(100, 64, 1.0, 0.5),
    ):
        users = streams.arrivals("round_robin", 100, 64, 6400, stream(0, "users"))
        released = settings.release(users, np.zeros(6400, dtype=int), stream(0, "noise"))
        steps = np.array([100, 1000, 6400])
        bound = theory.error_bound(settings, steps, most_samples(users)[steps - 1], 0.05)
        assert (bound > 3 * released.standard_error[steps - 1]).all()


@pytest.mark.parametrize("largest", [1, 64])
def test_the_error_bound_is_the_displayed_formula(largest):
    settings = algorithms.full(100, 64, 2.0)
    step, beta = 5000, 0.05
    levels = range(1 if largest == 1 else 7)
    scales = [settings.noises[level].scale for level in levels]
    worst = 6  # binary digits 1 of 63 and of 95, more than of any other number up to 100
    variance = sum(2 * scale**2 * worst for scale in scales)
    by_hand = math.sqrt(math.log(80) / step) + 2 / step * math.log(4 * math.e / beta) * math.sqrt(variance)
    assert theory.error_bound(settings, [step], [largest], beta)[0] == pytest.approx(by_hand, rel=1e-12)


BAD = [
    ({"delta": 1e-6, "integer": True}, "integer must go with delta = 0"),
    ({"low": 1.0, "high": 0.0}, "low must be below high"),
    ({"n_users": 2**33}, r"n_users must be below 2\^31"),
    ({"low": -1e308, "high": 1e308}, "low must be below high, their distance finite"),
    ({"samples_per_user": 10**30}, "samples_per_user must be at most 115292150460684697 for 10 users, got 10000"),
    ({"epsilon": 1e-200}, "epsilon must be larger: .* needs noise above 1e150"),
    ({"resolution": 2**58}, "resolution must be at most 14411518807585587 for 10 users of 8 samples"),
    ({"resolution": 2**50, "integer": True}, "epsilon must be larger, or integer=False"),
]
BAD_MEANS = [
    *BAD,
    ({"decay": 0.3}, "decay and reach must go with delta > 0"),
    ({"reach": 2.0}, "decay and reach must go with delta > 0"),
    ({"branching": 2, "delta": 1e-6}, "branching must be 0 with delta > 0"),
]
BAD_BLOCKS = [
    *BAD[1:],
    ({"kind": "wishful"}, 'prior_mean must be given for "wishful"'),
    ({"prior_mean": 0.5}, 'prior_mean must be left out for "full"'),
    ({"kind": "wishful", "prior_mean": 2.0}, r"prior_mean must lie in \[0.0, 1.0\], got 2.0"),
    ({"delta": 1e-6}, "delta must be 0, as blocks have Laplace noise, got 1e-06"),
]


USERS = {"n_users": 10, "samples_per_user": 8}
FILTER = "sums must be a tree, but for Gaussian noise with delta > 0"  # integers would not hide the parity of halves
BAD_SUMS = [
    ({"epsilon": 1e-320}, "epsilon must be larger: .* of 4 needs noise above 1e150"),
    ({"horizon": 2**20, "epsilon": 1e-11, "integer": True}, "or integer=False: integer noise of scale"),
    ({"sums": Tree(4)}, "sums must have capacity 8 or more, got 4"),
    ({"sums": Tree(8, 19, True), "delta": 1e-6}, "sums must have Laplace noise: a balanced tree"),
    ({"sums": Buffered(8)}, FILTER),
    *(({"sums": Buffered(8), "delta": delta, "integer": True}, FILTER) for delta in (0.0, 1e-6)),
]


@pytest.mark.parametrize(
    ("make", "changes", "message"),
    [
        *((UserMean, USERS | bad, said) for bad, said in BAD_MEANS),
        *((Blocks, USERS | bad, said) for bad, said in BAD_BLOCKS),
        *((BinaryMechanism, {"horizon": 8} | bad, said) for bad, said in BAD_SUMS),
    ],
)
def test_settings_that_cannot_work_are_refused(make, changes, message):
    with pytest.raises(ValueError, match=message):
        make(**{"epsilon": 1.0} | changes)


def test_settings_take_the_numbers_of_numpy():
    plain = algorithms.full(5, 8, 1.0, horizon=30)
    given = {"n_users": np.int16(5), "samples_per_user": np.int64(8), "horizon": np.uint8(30), "resolution": np.int32(1)}
    for made in (plain, UserMean(5, 8, 1.0, horizon=30)):
        assert made.but(**given) == made
        assert all(type(getattr(made.but(**given), name)) is int for name in given)  # n * m would wrap in 16 bits
    assert Tree(np.int8(100), np.int8(5)).height == 3
    assert Buffered(np.uint8(200)).capacity + 100 == 300
    assert BinaryMechanism(np.int8(100), 1.0).noise.scale == 7


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_samples_of_any_float_stay_on_the_grid(kind):
    settings = choosing.users_alike(10, 8, 1.0, low=0.25, high=0.75, resolution=2**20)
    assert settings.encode(np.array([0.25, 0.5, 0.75], dtype=kind)).tolist() == [0, 2**19, 2**20]
    awkward = choosing.users_alike(10, 8, 1.0, low=0.1, high=0.3, resolution=2**30, integer=False)
    assert awkward.encode(np.array([0.3], dtype=np.float32).clip(0.1, 0.3)).max() <= 2**30
    with pytest.raises(ValueError, match=r"samples must lie in \[0.1, 0.3\], got nan at position 0"):
        awkward.encode(np.array([math.nan], dtype=kind))


@pytest.mark.parametrize(("size", "most"), [((300, 50, 2.0), 20), ((10**6, 500, 1.0), 12), ((3000, 2, 1e-4), 20)])
@pytest.mark.parametrize("more", [{"delta": 1e-9}, {"integer": True}])
def test_values_of_a_range_are_rounded_to_a_grid_that_leaves_room_for_sums_and_noise(size, most, more):
    """83.5 in [40, 160], unless one asks for its ends alone. Seen to fail with one step, and with 2^20 for all."""
    settings = UserMean(*size, low=40.0, high=160.0, **more)
    steps = settings.encode([40.0, 83.5, 160.0])
    assert (steps[0], steps[2]) == (0, settings.resolution) == (0, 2**most)
    assert abs(40 + steps[1] * settings.unit - 83.5) <= settings.unit / 2
    assert settings.but(resolution=0) == settings
    assert UserMean(*size, **more).resolution == 1
    with pytest.raises(ValueError, match=r"samples must be 40 or 160 where resolution is 1, got 83\.5 at position 0"):
        settings.but(resolution=1).encode([83.5])
    assert settings.but(resolution=1).encode([40, 160, 40]).tolist() == [0, 1, 0]


def test_users_whom_settings_do_not_know_are_refused_also_where_samples_are_dropped_and_empty_streams_are_streams():
    settings = choosing.users_alike(10, 8, 1.0, excess="drop")
    for far in (2**63 + 1, 2**40, 10):
        with pytest.raises(ValueError, match=f"users must be below n_users = 10, got {far} at position 1"):
            settings.release(np.array([0, far], dtype=np.uint64), [1, 1], stream(0, "noise"))
    assert len(settings.release([], [], stream(0, "noise")).estimate) == 0


def test_buffered_noise_is_nearly_as_good_as_the_square_root():
    for horizon in (10, 1000, 10**6):
        root, buffered = np.cumprod(np.append(1, 1 - 0.5 / np.arange(1, horizon))), Buffered(horizon)
        assert 1 <= buffered.l2(1) * math.sqrt(buffered.relative_variance(horizon)) / (root @ root) < 1.005


def test_integer_noise_keeps_sums_whole_and_costs_little():
    whole, real = (BinaryMechanism(8, 1.0, delta=1e-6, integer=integer).noise for integer in (True, False))
    assert 1 < whole.scale / real.scale < 1.08
    users = UserMean(5, 4, 1.0, integer=True)
    for sums in (Tree(8), Tree(8, 5, True), Tree(8, 9)):
        released = BinaryMechanism(8, 1.0, integer=True, sums=sums).release([1, 0, 1], stream(0, "noise"))
        assert (released == np.rint(released)).all()
    assert isinstance(windows.Days(users, 8, 1).noise, DiscreteLaplace)
    estimate = users.release([0, 1, 0], [1, 0, 1], stream(0, "noise")).estimate
    rounded = 3 * 2**-50  # six roundings, the last of them of three times the estimate
    np.testing.assert_allclose(estimate * [1, 2, 3], np.rint(estimate * [1, 2, 3]), rtol=2**-50, atol=rounded)


def test_days_drop_what_is_beyond_a_day_s_cap_and_say_so():
    days = windows.Days(UserMean(3, 3, 1e9, low=-1.0, high=3.0), 3, 2)
    kept = [
        windows.START,
        *days.release([0, 0, 0, 1, 0, 0, 2], [3, 3, -1, -1, 3, 3, -1], [0, 0, 0, 0, 2, 2, 2], stream(0, "days")),
    ]
    means = [days.between(*pair) for pair in ((kept[0], kept[1]), (kept[2], kept[3]), (kept[0], kept[3]))]
    assert [(mean.samples, mean.dropped) for mean in means] == [(3, 1), (2, 1), (5, 2)]
    assert [mean.estimate for mean in means] == pytest.approx([5 / 3, 1, 7 / 5], abs=1e-6)
    assert [mean.bias for mean in means] == pytest.approx([1, 4 / 3, 8 / 7])
    assert math.isinf(days.standard_error(kept[1], kept[2]))  # an empty day
    with pytest.raises(ValueError, match="later must be after earlier, got 4 and 4 steps"):
        days.between(kept[1], kept[2])
    with pytest.raises(TypeError, match="days must be integers that never fall"):
        days.release([0, 1], [3, 3], [1, 0], stream(0, "days"))


@pytest.mark.parametrize("in_days", [True, False])
def test_samples_beyond_a_user_s_cap_take_nobody_else_s_place_in_the_horizon(in_days):
    days = windows.Days(UserMean(2, 2, 1e9, excess="drop"), 3, 1)
    users, when = [0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 1, 2] if in_days else [0, 0, 0, 0, 0, 2]
    used = [snapshot.used for snapshot in days.release(users, [1] * 6, when, stream(0, "days"))]
    assert used == ([1, 2, 3] if in_days else [2, 2, 3])
    few = windows.Days(UserMean(4, 1, 1e9, horizon=2, excess="drop"), 1, 1)
    assert few.release([3, 2, 1, 0], [1, 1, 0, 0], [0] * 4, stream(0, "days"))[-1].used == 2, "the horizon ends"
    assert few.release([3, 2, 1, 0], [1, 1, 0, 0], [0] * 4, stream(0, "days"))[-1].total == pytest.approx(2), "of the first"


@pytest.mark.parametrize(("most", "columns"), [(1, [1]), (10, [10]), (100, [100]), (200, [100, 100])])
def test_the_norm_that_a_batch_costs_is_that_of_what_a_user_has(most, columns):
    """A user with fewer samples than a batch has was charged a whole batch."""
    made = UserMean(1000, most, 1.0, delta=1e-6, batch=100)
    assert made.norm == pytest.approx(columns[0] * made.sums.l2(len(columns)), rel=1e-6)


def test_the_error_of_a_day_of_its_own_by_hand():
    """365 days of 1000 samples, users of 30 samples in all, one a day: Laplace noise for 30 samples, and no tree."""
    days = windows.Days(UserMean(12_167, 30, 1.0, horizon=365_000), 365, 1)
    for width in (1, 300):
        ends = [windows.Snapshot(1000 * day, 1000 * day, 0.0, day) for day in (300 - width, 300)]
        assert days.standard_error(*ends) == pytest.approx(math.sqrt(2 * width) * 30 / (1000 * width))


def test_users_of_any_number_count_as_themselves():
    users = np.array([2**40, -1, 2**40, 2**40 + 2**32, -1, 2**40])
    assert most_samples(users).tolist() == [1, 1, 2, 2, 2, 3]
    assert most_samples([]).tolist() == []


NO_USERS = (1.0, None, "a", True, np.float64(1))


@pytest.mark.parametrize(
    ("user", "sample", "error", "message"),
    [
        (0, 0.5, ValueError, "sample must be 0 or 1 where resolution is 1"),
        (-1, 1, ValueError, "user must be >= 0, got -1"),
        (10, 1, ValueError, "user must be below n_users = 10, got 10"),
        (1, 1, ValueError, "user 1 has contributed samples_per_user = 2 samples already"),
        *((user, 1, TypeError, f"user must be an integer >= 0, got {re.escape(repr(user))}") for user in NO_USERS),
    ],
)
def test_a_step_that_is_refused_leaves_the_state_as_it_was(user, sample, error, message):
    """The next one releases what it would have without."""
    settings = UserMean(10, 2, 1.0, batch=2)
    state = settings.start(stream(0, "noise"))
    for _ in range(2):
        state, _ = settings.step(state, 1, 1)
    after = settings.step(state, 2, 1)[1]
    with pytest.raises(error, match=message):
        settings.step(state, user, sample)
    assert settings.step(state, 2, 1)[1] == after


def test_dropped_samples_are_counted_and_count_as_the_middle_of_the_range():
    settings = UserMean(10, 2, 1.0, excess="drop", horizon=6)
    state = settings.start(stream(0, "noise"))
    releases = []
    for user in (1, 1, 1, 1, 2, 3, 4):
        state, release = settings.step(state, user, 1)
        releases.append(release)
    assert [release.dropped for release in releases] == [0, 0, 1, 2, 2, 2, 3]
    assert [release.samples for release in releases] == [1, 2, 2, 2, 3, 4, 4]
    assert releases[-1].estimate - 0.5 == pytest.approx((releases[-2].estimate - 0.5) * 6 / 7)  # it is beyond the horizon


def test_arrivals_and_others_refuse_what_cannot_be():
    rng = stream(0, "bad")
    with pytest.raises(
        ValueError, match="order must be one of contiguous, round_robin, random, zipf, dominant, got 'sorted'"
    ):
        streams.arrivals("sorted", 2, 2, 4, rng)
    with pytest.raises(ValueError, match=r"horizon must be at most n_users \* samples_per_user = 4, got 5"):
        streams.arrivals("random", 2, 2, 5, rng)
    with pytest.raises(ValueError, match=r"mean must lie in \[0, 1\], got nan"):
        streams.bits(math.nan, 4, rng)
    with pytest.raises(ValueError, match="printed must be among sum, total, inactive, set, got sums"):
        next(run_literally(algorithms.full(2, 2, 1.0), [], lambda tree: float, [], ["sums"]))
    with pytest.raises(ValueError, match="scale must be at most"):
        DiscreteLaplace(2.0**47)


def test_noise_at_every_step_pays_for_all_steps_and_refuses_others():
    """Shares of epsilon: what a user moves at each step over its scale, summed over all steps, is epsilon."""
    settings, users, rng = algorithms.naive(3, 20, 0.7, horizon=50), np.arange(50) % 3, Chosen([np.ones(50)])
    scales = algorithms.per_step(settings, users, np.zeros(50), rng)  # of noise whose draws are 1
    assert np.sum(most_samples(users) / np.arange(1, 51) / scales) == pytest.approx(0.7)
    clipped = algorithms.per_step(settings.but(clip=True), users, np.zeros(50), stream(0, "noise"))
    assert 0 <= clipped.min() <= clipped.max() <= 1
    rng = Chosen([np.ones(50)])
    np.testing.assert_allclose(algorithms.per_step(settings.but(dimensions=2), users, np.zeros(50), rng), 2 * scales)
    for change in ({"delta": 1e-6, "branching": 0}, {"integer": True}, {"excess": "drop"}):
        with pytest.raises(ValueError, match='settings must have delta 0, integer False and excess "error"'):
            algorithms.per_step(settings.but(**change), users, np.zeros(50), rng)
    with pytest.raises(ValueError, match="users must have at most horizon = 50 entries, got 51"):
        algorithms.per_step(settings, np.arange(51) % 3, np.zeros(51), stream(0, "noise"))


@pytest.mark.parametrize(
    ("notebook", "given", "message"),
    [
        ("past_the_paper", {"epsilon": 1e-12}, "epsilon must be >= 1e-06, got 1e-12"),
        ("past_the_paper", {"epsilon": 1e-6}, "epsilon must be larger, or users, .*, so that integer noise fits in 64 bits"),
        ("past_the_paper", {"full_epsilon": 1e-6, "full_users": 10**5}, "full_epsilon must be larger, or users, samples"),
        ("user_mean", {"epsilon": 1e-300}, "epsilon must be >= 1e-06, got 1e-300"),
        ("binary_tree", {"epsilon": 1e-300}, "epsilon must be >= 1e-06, got 1e-300"),
    ],
)
def test_parameters_that_would_fail_in_the_middle_of_a_run_are_refused(notebook, given, message):
    with pytest.raises(ParameterError, match=message):
        params_of(f"continual_mean/{notebook}").make("quick", given)
