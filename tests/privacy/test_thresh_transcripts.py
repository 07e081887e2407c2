"""A user's whole THRESH transcript, in the worst case over inputs and over what the others make the server do.

The enumeration is `evolving_transcripts`.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from evolving_transcripts import thresh_loss as worst_loss

from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.thresh import Thresh


def tiny(horizon=5, **changes):
    base = {"vote_epsilon": 0.2, "estimate_epsilon": 0.2, "vote_cap": 1, "estimate_cap": 1} | changes
    return Thresh(10, horizon, 1, 100.0, unit=0.01, beta=0.05, **base)


@pytest.mark.parametrize(
    "caps",
    [
        {"vote_cap": 1, "estimate_cap": 1},
        {"vote_cap": 2, "estimate_cap": 1},
        {"vote_cap": 1, "estimate_cap": 2},
        {"vote_cap": 1, "estimate_cap": 1, "vote_epsilon": 0.7},
        {"vote_cap": 0, "estimate_cap": 2},
    ],
)
def test_the_worst_transcript_costs_exactly_what_the_caps_say(caps):
    settings = tiny(**caps)
    attained = 2 * settings.vote_cap * settings.vote_epsilon + settings.estimate_cap * settings.estimate_epsilon
    assert worst_loss(settings) == pytest.approx(attained, rel=1e-9)
    assert worst_loss(settings) <= settings.privacy_loss * (1 + 1e-9)


def test_E_EV_1_the_printed_counters_cost_more_than_epsilon():
    """At epsilon = 1 and a = b = .2 the printed rule admits two votes and two estimates: 1.2; the caps used here cost .6."""
    epsilon, a, b = 1.0, 0.2, 0.2
    votes = next(sent for sent in itertools.count() if not sent * a <= epsilon / 4)  # compared first, then added to
    estimates = next(sent for sent in itertools.count() if not sent * b < epsilon / 4)
    assert (votes, estimates) == (2, 2)
    printed = tiny(vote_cap=votes, estimate_cap=estimates)
    assert worst_loss(printed) == pytest.approx(1.2)
    sound = tiny(vote_cap=math.floor(epsilon / (4 * a)), estimate_cap=math.floor(epsilon / (4 * b)))
    assert worst_loss(sound) == pytest.approx(0.6)
    assert Thresh.printed(10**5, 64, 10**6, 1.0).privacy_loss == pytest.approx(1.348, abs=1e-3)
    large = replace(printed, vote_epsilon=0.9, estimate_epsilon=0.9, vote_cap=1, estimate_cap=1)
    assert worst_loss(large) == pytest.approx(2.7)


def test_a_cap_off_by_one_is_caught():
    promised = tiny().privacy_loss
    assert worst_loss(tiny(vote_cap=2)) > promised * (1 + 1e-9)
    assert worst_loss(tiny(estimate_cap=2)) > promised * (1 + 1e-9)


def test_E_EV_8_algorithms_5_and_7_cap_votes_too_late_and_estimates_never():
    """HEAVYTHRESH votes and reports as THRESH does, but compares c < epsilon/4a, adds a, and never counts an estimate."""
    epsilon, a = 1.0, 0.2
    votes = next(sent for sent in itertools.count() if not sent * a < epsilon / (4 * a))
    assert votes == 7  # floor(epsilon / 4a) = 1 would be right
    losses = [worst_loss(tiny(horizon=horizon, vote_cap=votes, estimate_cap=horizon)) for horizon in (4, 5, 6)]
    assert losses[1] == pytest.approx(1.4)
    assert losses[0] < losses[1] < losses[2]  # nothing ever runs out
    assert worst_loss(tiny(vote_cap=1, estimate_cap=1)) < epsilon < losses[1]


class Uniform:
    """A generator whose next uniforms are `units` of 2^-53, of which there are 2^53."""

    def __init__(self, units):
        self.units = units

    def random(self, shape):
        return np.full(shape, self.units * 2.0**-53)


def chance(draw, value, answer, guess):
    """The probability, in units of 2^-53, of `answer`: that of the uniforms up to a bound, which is near `guess`."""
    say = [bool(draw(np.array([value]), Uniform(units))[0]) == answer for units in range(guess + 3)]
    assert say == sorted(say, reverse=True)
    assert bool(draw(np.array([value]), Uniform(2**53 - 1))[0]) != answer
    return sum(say)


@pytest.mark.parametrize("epsilon", [30.0, 33.3, 36.0, 37.0, 40.0, 300.0])
@pytest.mark.parametrize("heavy", [False, True])
def test_what_is_drawn_from_uniforms_of_53_bits_costs_no_more_than_b(epsilon, heavy):
    """Exactly, with integers: the rare answer of the one extreme input has to be as likely as e^-b of the other's."""
    settings = replace(tiny(), epsilon=1e6, estimate_epsilon=epsilon)
    draw, low = (HeavyThresh(settings, 2).draw_plus, -1.0) if heavy else (settings.draw_reports, 0.0)
    expected = math.exp(-epsilon) / (1 + math.exp(-epsilon)) * 2**53
    for value, rare in ((1.0, False), (low, True)):
        units = chance(draw, value, rare, math.ceil(expected))
        assert expected <= units <= expected + 1
        assert math.log((2**53 - units) / units) <= epsilon


def test_reports_are_drawn_with_the_probability_that_is_stated():
    settings = tiny(estimate_epsilon=1.0)
    for share in (0.0, 0.2, 0.5, 0.7, 1.0):
        grid = (np.arange(10**5) + 0.5) / 10**5

        class Grid:
            def random(self, shape, grid=grid):
                return grid

        drawn = settings.draw_reports(np.full(10**5, share), Grid())
        assert drawn.mean() == pytest.approx(settings.report_one(share), abs=2e-5)
