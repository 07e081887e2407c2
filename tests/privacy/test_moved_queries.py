"""What normal noise costs a user whose queries are counted: adversaries that are exact, and one by dynamic programming."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

from evolvingdp.sparse_vector import gaussian
from evolvingdp.sparse_vector.above_threshold import AboveThreshold
from evolvingdp.sparse_vector.moved_queries import _corners, closed_scale, delta_of_moved, most, smallest_moved_scale

SIZES = [(0.6, 1, 1), (2.0, 1, 3), (2.0, 2, 2), (4.0, 2, 4), (5.0, 3, 3)]  # scale, k, m


def curve(scale, points=41):
    """Chances of a yes without and with the user, at thresholds from far below the sum to far above."""
    z = np.linspace(-3.0, 8.0, points)
    return ndtr(-z), ndtr(1 / scale - z)


def best_adversary(epsilon, scale, reports, moved):
    """What the best of all adversaries gets that ask at these thresholds, either input first, adaptively: from below, but
    for lines between the points of a fine grid. State: the likelihood ratio, and what is left of both inputs' yeses and
    queries."""
    ratio = np.exp(np.linspace(-3 * epsilon - 4 / scale, 3 * epsilon + 4 / scale, 1201))  # of the second world to the first
    without, inside = curve(scale, 111)
    final = np.maximum(1 - math.exp(epsilon) * ratio, 0.0)
    value = {}
    for left in sorted(product(range(reports + 1), range(moved + 1), range(reports + 1), range(moved + 1)), key=sum):
        best = final
        for world in (0, 1):
            yeses, queries = left[2 * world : 2 * world + 2]
            if not yeses or not queries:
                continue
            no, yes = list(left), list(left)
            no[2 * world + 1] = yes[2 * world + 1] = queries - 1
            yes[2 * world] = yeses - 1
            for pair in zip(without.tolist(), inside.tolist(), strict=True):
                here, there = pair if world else pair[::-1]
                loud = here * np.interp(ratio * there / here, ratio, value[tuple(yes)])
                quiet = (1 - here) * np.interp(ratio * (1 - there) / (1 - here), ratio, value[tuple(no)])
                best = np.maximum(best, loud + quiet)
        value[left] = best
    return float(np.interp(1.0, ratio, value[reports, moved, reports, moved]))


@pytest.mark.parametrize(("scale", "reports", "moved"), SIZES)
def test_the_best_adversary_by_dynamic_programming_stays_below_the_bound_and_comes_close(scale, reports, moved):
    epsilon = 1.5 / scale
    best = best_adversary(epsilon, scale, reports, moved)
    bound = delta_of_moved(epsilon, scale, reports, moved, 0.05)
    assert 0.75 * bound < best <= bound * (1 + 1e-3)
    assert best > delta_of_moved(epsilon, 1.2 * scale, reports, moved, 0.05)  # noise for a sixth less is broken
    # one input's yeses and queries are not enough, nor is a user who is deleted one query later
    assert best > alone(epsilon, scale, reports, moved)
    assert best_adversary(epsilon, scale, reports, moved + (reports > 1)) >= best


@pytest.mark.parametrize(("size", "most"), [((1, 1), 0.005), ((2, 2), 0.02)])
def test_of_a_query_or_two_exact_accounting_can_take_off_next_to_nothing(size, most):
    """An explicit adversary already breaks a scale so little below the closed one."""
    scale = closed_scale(1.0, 1e-6, *size)
    assert best_adversary(1.0, scale, *size) <= 1e-6 * (1 + 1e-3) < best_adversary(1.0, (1 - most) * scale, *size)


def alone(epsilon, scale, reports, moved):
    """The bound if only one of the two inputs were counted."""
    step = 0.05 / scale
    value = most(scale, reports, moved, step, 3 * epsilon + 20 * step)
    return float(math.exp(epsilon) * value[len(value) // 2 - round(epsilon / step)])


@pytest.mark.parametrize("scale", [0.5, 3.0, 40.0])
def test_one_query_costs_what_its_best_threshold_does(scale):
    """From above, by 8 %: the polygon around the curve; and at no threshold less than the adversary gets."""
    step = 0.02 / scale
    value = most(scale, 1, 1, step, 4 / scale)
    for epsilon in (0.2 / scale, 0.7 / scale, 1.5 / scale):
        places = round(epsilon / step)
        epsilon = places * step

        def gained(z):
            return -max(ndtr(1 / scale - z) - math.exp(epsilon) * ndtr(-z), 0.0)  # noqa: B023

        best = -minimize_scalar(gained, bounds=(-5, 8), method="bounded", options={"xatol": 1e-6}).fun
        assert best <= math.exp(epsilon) * value[len(value) // 2 - places] <= 1.08 * best


@pytest.mark.parametrize("scale", [0.3, 1.0, 30.0, 1e4])
def test_the_corners_lie_around_all_thresholds(scale):
    """Every line through two neighbours of the polygon's boundary has the curve below it."""
    said, _, heard = _corners(scale)
    (x, y), order = said, np.argsort(said[0])
    outer = np.append(0.0, x[order]), np.append(heard, y[order])
    q, p = curve(scale, 4001)
    assert np.all(np.interp(q, *outer) >= p * (1 - 1e-9))
    assert np.all(np.diff(outer[1]) >= -1e-12)


@pytest.mark.parametrize(("reports", "moved"), [(1, 5), (3, 30), (8, 59)])
def test_the_scale_that_is_found_keeps_its_promise_and_is_below_the_closed_one(reports, moved):
    for epsilon, delta in ((1.0, 1e-6), (0.2, 1e-3)):
        scale = smallest_moved_scale(epsilon, delta, reports, moved)
        assert (
            delta_of_moved(epsilon, scale, reports, moved) <= delta < delta_of_moved(epsilon, 0.99 * scale, reports, moved)
        )
        assert delta_of_moved(epsilon, scale, reports, moved, 0.1) <= delta  # a finer grid takes off
        assert (
            scale
            <= closed_scale(epsilon, delta, reports, moved)
            < gaussian.smallest_gaussian_scale(epsilon, delta, 2 * reports, 2 * moved)
        )


def test_prices_by_way_cover_every_position():
    """One step of the supermartingale for queries that move up, and down; each is at most the price of either."""
    for (order, scale), way, times in product(((5.0, 30.0), (20.0, 60.0)), (0, 1), (0.0, 0.1, 0.5, 1.0, 20.0)):
        theta = times * order / scale**2
        answers = gaussian._answers(order, scale, way)
        eta = gaussian._price(answers, theta)
        assert eta <= gaussian._price(gaussian._answers(order, scale, None), theta)
        for z in scale * (np.linspace(-3, 5, 41) + 0.013):
            yes, other = ndtr([-z / scale, (1 - z) / scale])[:: 1 if way == 0 else -1]
            mean = yes * (other / yes) ** order * math.exp(-theta) + (1 - yes) * ((1 - other) / (1 - yes)) ** order
            assert mean <= math.exp(eta) * (1 + 1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.2, 1e-3), (1.0, 1e-6), (4.0, 1e-3)])
def test_one_stable_threshold_hides_a_lone_user_from_who_asks_for_noes_and_then_for_yeses(epsilon, delta):
    """The elements of the one world, those of the other, then `noes` others that one user less meets, and `reports` that
    one more does: seen are all noes and then yeses, or a yes about a lone element. Integrated over the threshold's noise."""
    lost = []
    for reports, steps in product((1, 3), (1, 50)):
        made = AboveThreshold.stable_one(epsilon, delta, reports, 2 * steps)
        t, u = made.threshold, (np.arange(40_000) + 0.5) / 40_000
        shift = -made.shift.scale * np.log(u)
        stay = (1 - made.noise.sf(t - 1 + shift)) ** steps
        lone = 1 - stay.mean()
        for noes, low, high in product((0, 1, 10**3, 10**6), (0.0, 0.5 * t, 0.8 * t, t), (0.0, 0.5 * t, t, t + 1)):

            def seen(down, up, noes=noes, low=low, high=high, shift=shift, stay=stay, t=t, made=made, reports=reports):
                quiet = (1 - made.noise.sf(t - low - down + shift)) ** noes
                return float(np.mean(stay * quiet * made.noise.sf(t - high - up + shift) ** reports))

            lost.append((lone + seen(0, 1) - math.exp(epsilon) * seen(1, 0)) / delta)
    assert 0.3 < max(lost) <= 1 + 1e-6
