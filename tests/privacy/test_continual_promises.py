"""Promises of the continual means that were broken once: exact sums, settings that are used whole, states of their own."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolvingdp.continual_mean import (
    algorithms,
    binary_mechanism,
    choosing,
    private_median,
    user_mean,
    windows,
)
from evolvingdp.continual_mean.binary_mechanism import BinaryMechanism
from evolvingdp.continual_mean.prefix_sums import Tree
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core.exact import Grid
from evolvingdp.core.seeds import stream


class Silent(np.random.Generator):
    """A generator whose Laplace and normal draws are 0: what is released is the sum, as the mechanism rounds it."""

    def __init__(self):
        super().__init__(np.random.PCG64(0))

    def laplace(self, loc=0.0, scale=1.0, size=None):
        return loc if size is None else np.full(size, loc)

    def normal(self, loc=0.0, scale=1.0, size=None):
        return loc if size is None else np.full(size, loc)


def test_sums_beyond_what_is_exact_are_refused_by_the_element_alone():
    for mechanism in (BinaryMechanism(4, 1.0), BinaryMechanism(4, 1.0, integer=True)):
        for large in (np.array([2.0**60] * 4), np.array([2**62] * 4), np.array([2**63] * 4, dtype=np.uint64), [1e300]):
            with pytest.raises(ValueError, match=r"elements must lie within \+-.*, so that 4 have an exact sum"):
                mechanism.release(large, stream(0, "noise"))
    mechanism = BinaryMechanism(4, 1.0, integer=True)
    state, most = mechanism.start(stream(0, "noise")), int(mechanism.grid.largest)
    for _ in range(4):  # as large as can be: what others sent refuses none
        state, _ = mechanism.step(state, most)
    with pytest.raises(ValueError, match="element must lie within") as refused:
        mechanism.step(state, most + 10**6)
    assert str(4 * most)[:9] not in str(refused.value)  # nor is the sum told


@given(
    sensitivity=st.floats(1e-9, 1e9),
    count=st.integers(1, 10**6),
    place=st.floats(-1, 1),
    apart=st.floats(0, 1),
)
def test_two_elements_at_most_a_sensitivity_apart_stay_so_on_the_grid(sensitivity, count, place, apart):
    grid = Grid(sensitivity, count)
    reach = max(grid.largest - sensitivity, 0.0)
    one = place * reach
    two = one + apart * sensitivity
    if not (abs(one) <= grid.largest and abs(two) <= grid.largest and two - one <= sensitivity):
        return
    steps = grid.steps(np.array([one, two][:count])).tolist()
    if count > 1:
        assert 0 <= (steps[1] - steps[0]) * grid.step <= grid.moved <= sensitivity * (1 + 2**-18)
    assert grid.steps_of(one) == steps[0]
    assert abs(steps[0]) * count <= 2**53


@pytest.mark.parametrize("horizon", [8, 2000])
def test_integer_noise_meets_no_float(horizon):
    """From 2^53 on a float rounds: outputs of neighbours would be even and odd."""
    mechanism = BinaryMechanism(horizon, 1e-9, integer=True, sums=Tree(horizon, horizon + 1))
    elements = np.full(horizon, int(mechanism.grid.largest))
    released = mechanism.release(elements, stream(0, "noise"))
    assert released.dtype == np.int64
    assert {int(value) % 2 for value in released} == {0, 1}
    state = mechanism.start(stream(0, "noise"))
    for element, told in zip(elements.tolist(), released.tolist(), strict=True):
        state, release = mechanism.step(state, element)
        assert release == told


def test_days_give_each_coordinate_its_share_of_the_budget():
    """The exact delta at epsilon of d coordinates together: the squares of mu add up."""
    whole = UserMean(5, 4, 1.0, 1e-6, resolution=16)
    alone = windows.Days(whole, 10, 2).noise
    for dimensions in (2, 9, 100):
        one = windows.Days(whole.but(dimensions=dimensions), 10, 2).noise
        assert one.scale == pytest.approx(alone.scale * math.sqrt(dimensions))
    pure = windows.Days(UserMean(5, 4, 1.0, dimensions=3), 10, 2).noise
    assert pure == windows.Days(UserMean(5, 4, 1 / 3), 10, 2).noise


@pytest.mark.parametrize(("cap", "per_day", "n_days"), [(7, 2, 5), (7, 3, 4), (7, 3, 2), (2, 5, 4), (9, 4, 3)])
def test_days_charge_the_worst_user_and_no_more(cap, per_day, n_days):
    """Every way in which a user's samples can fall on the days, enumerated, by the days' l1 and l2."""
    loads = [np.array(load) for load in itertools.product(range(per_day + 1), repeat=n_days) if sum(load) <= cap]
    for order, delta in ((1, 0.0), (2, 1e-6)):
        settings = UserMean(3, cap, 1.0, delta)
        worst = max(float(np.linalg.norm(load, order)) for load in loads)
        assert windows.Days(settings, n_days, per_day).noise.scale * settings.budget == pytest.approx(worst)


def test_days_refuse_settings_that_they_do_not_use():
    with pytest.raises(TypeError, match="settings must be a UserMean, which projects and weighs no samples"):
        windows.Days(algorithms.full(3, 8, 1.0), 3, 2)
    for change in ({"batch": 2}, {"alike": True}):
        with pytest.raises(ValueError, match="settings must have batch 1, no reach and alike False"):
            windows.Days(UserMean(3, 3, 1.0, **change), 3, 2)


def test_a_step_changes_nothing_and_a_state_that_goes_on_twice_repeats_its_noise():
    """Whoever goes on twice from a state, with different samples, shows their difference without noise."""
    for settings in (algorithms.naive(2, 2000, 1.0), UserMean(2, 2000, 1.0, 1e-6, reach=300.0, excess="drop")):
        state = settings.start(stream(0, "noise"))
        for _ in range(3):
            later, told = settings.step(state, 0, 1.0)
            for _ in range(1500):  # beyond what is worked out at once
                later, _ = settings.step(later, 1, 1.0)
            assert settings.step(state, 0, 1.0)[1] == told
            other = settings.step(state, 0, 0.0)[1].estimate
            assert told.estimate - other == pytest.approx(1 / (state.step + 1))
            state = settings.step(state, 1, 0.0)[0]
    for stated in (user_mean, windows, binary_mechanism):
        assert "repeats its" in " ".join(stated.__doc__.split())


def test_a_private_median_takes_means_of_arrays_alone():
    for means in (np.zeros((2, 3)), np.zeros(0), np.array([0.5, math.nan]), np.array([0.5, 1.5])):
        with pytest.raises(ValueError, match="means must be one-dimensional"):
            private_median.draw(means, 1.0, 4, stream(0, "median"))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint64])
def test_users_of_any_integer_type_are_the_same_users(dtype):
    settings = choosing.recommended(1000, 8, 1.0)
    users = np.array([3, 100, 3, 7, 100])
    released = [settings.release(each, [1, 0, 1, 1, 0], stream(0, "x")) for each in (users, users.astype(dtype))]
    np.testing.assert_array_equal(released[0].estimate, released[1].estimate)


WORST = {
    "pure": UserMean(6, 5, 1.0, horizon=40, batch=3, excess="drop"),
    "with delta": UserMean(6, 9, 1.0, 1e-6, horizon=40, batch=4, decay=0.9, reach=3.0, excess="drop"),
}


@pytest.mark.parametrize("kind", WORST)
def test_the_bias_that_is_stated_holds_for_any_values_and_is_attained_by_what_is_left_out(kind):
    """Without noise: all that is kept is 0, all that is dropped or waits is 1, which no public number tells."""
    settings, rng = WORST[kind], stream(0, "worst", kind)
    for _ in range(20):
        users = rng.integers(0, 6, 40)
        release = settings.release(users, np.zeros(40, dtype=int), Silent())
        kept = settings.keeps(users)
        for step in range(settings.batch, 41):
            used = kept & (np.arange(40) < step // settings.batch * settings.batch)
            worst = settings.release(users, (~used).astype(int), Silent())
            off = abs(worst.estimate[step - 1] - np.mean(~used[:step]))
            assert release.samples[step - 1] == used.sum()
            assert off == pytest.approx(release.bias[step - 1], abs=1e-5)
