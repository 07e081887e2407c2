"""What sparse vector mechanisms pay for, and values that they refuse before any draw."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad

from evolvingdp.core.noise import Gaussian, Laplace
from evolvingdp.core.seeds import stream
from evolvingdp.sparse_vector.above_threshold import AboveThreshold, some_yes
from evolvingdp.sparse_vector.histograms import Histogram

HELD = [0, 1, 1]
GAUSSIAN = AboveThreshold.calibrated(1.0, 1e-2, 3, 4.0, kind="gaussian", moved=4)


def drawn(rng, name):
    return rng.random() != stream(0, name).random()


def test_a_step_of_elements_is_its_queries_and_pays_for_two_that_a_user_moves():
    plain = AboveThreshold.calibrated(50.0, 1e-6, 3, 1.5)
    state, twin = plain.start(stream(0, "start")), plain.start(stream(0, "start"))
    one, other = stream(0, "noise"), stream(0, "noise")
    state, above = plain.step_elements(state, [0, 0, 2, 2, 1], 3, one)
    told = []
    for weight in (2, 1, 2):
        twin, release = plain.step(twin, weight, other)
        told.append(release)
    assert above.tolist() == np.flatnonzero(told).tolist()
    assert state == twin
    state, rng = GAUSSIAN.start(stream(0, "start")), stream(0, "noise")
    for _ in range(2):
        state, _ = replace(GAUSSIAN).step_elements(state, HELD, 3, rng)
    with pytest.raises(ValueError, match="moved must be larger to go on: 4 moved queries are paid for"):
        GAUSSIAN.step(state, 1.0, rng)
    single = AboveThreshold.stable_one(1.0, 1e-6, 2, 5)  # where a query may be of either kind, so that it pays for both
    state = single.start(rng)
    for step in (single.step_elements, lambda state, *_: single.step(state, 1, rng)):
        state, _ = step(state, [0, 0, 2], 3, rng)
    with pytest.raises(ValueError, match="moved must be larger to go on: 5 moved queries are paid for"):
        single.step(state, 1.0, rng)


@pytest.mark.parametrize("threshold", [4.001, 70_000.0])
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.int8, np.uint64])
def test_a_value_of_any_type_meets_the_threshold_that_was_set(threshold, kind):
    """float16 has no 4.001, and 70,000 would be infinite."""
    method = AboveThreshold(threshold, 10**6, Laplace(3000.0))
    wide, narrow = stream(0, "noise"), stream(0, "noise")
    states = [method.start(stream(0, "start"))] * 2
    for _ in range(300):
        states[0], plain = method.step(states[0], 4.0, wide)
        states[1], same = method.step(states[1], kind(4), narrow)
        assert same == plain
    tight = AboveThreshold(threshold, 2, Laplace(1e-7))
    assert not tight.step(tight.start(narrow), kind(4), narrow)[1]


@pytest.mark.parametrize("value", [2**53 + 2, -(2.0**60), 10**400, float("nan"), np.ones(1), "1"])
def test_values_that_floats_do_not_tell_apart_are_refused_before_any_draw(value):
    method, rng = AboveThreshold.calibrated(1.0, 1e-6, 3, 10.0), stream(0, "untouched")
    state = method.start(stream(0, "start"))
    with pytest.raises((TypeError, ValueError), match="value must "):
        method.step(state, value, rng)
    assert not drawn(rng, "untouched")


def test_a_domain_that_does_not_fit_is_refused_before_any_draw_whoever_holds_what():
    wide = Histogram(Gaussian(1.0), 0.0, 2, 2**60)
    for held in ([0], [5, 6, 7]):
        rng = stream(0, "untouched")
        with pytest.raises(ValueError, match=r"a weight for each element needs .* take a stable kind"):
            wide.step(wide.start(len(held)), held, rng)
        assert not drawn(rng, "untouched")


@pytest.mark.parametrize("split", [0.01, 0.1, 0.25, 1 / 3, 0.4, 0.9])
def test_the_chance_to_cross_is_that_of_both_noises_at_any_distance(split):
    """At equal and at very different scales, and far away, where a power of e overflows."""
    method = AboveThreshold.calibrated(1.0, 1e-6, 1, 0.0, split=split)
    r = method.shift.scale

    def reached(shift, z):
        return np.exp(-abs(shift) / r) / (2 * r) * float(method.noise.sf(z + shift))

    for z in (-40.0, -3.0, 0.0, 0.7, 12.0, 100.0):
        ends = sorted({-60 * r - 400, -abs(z), 0.0, abs(z), 60 * r + 400})
        parts = [quad(reached, *pair, args=(z,), epsabs=0, limit=400)[0] for pair in pairwise(ends)]
        assert method.crossing(z) == pytest.approx(sum(parts), rel=1e-6)
    assert 0 <= method.crossing(2500.0) < 1e-11
    assert 0.5 < method.crossing(-2500.0) <= 1.0
    assert 0 <= some_yes(-5000.0, method.noise.scale, r, False) < 1
    assert 0 <= some_yes(-5000.0, r / 50, r, False) < 1
