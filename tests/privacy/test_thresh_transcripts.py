"""A user's whole THRESH transcript, in the worst case over inputs and over what the others make the server do.

The enumeration is `audit.transcripts`.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest

from evolvingdp.audit.transcripts import thresh_loss as worst_loss
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
        {"vote_cap": 1, "estimate_cap": 1, "vote_epsilon": 0.7, "start": "sentinel"},
        {"vote_cap": 0, "estimate_cap": 2},
    ],
)
def test_the_worst_transcript_costs_exactly_what_the_caps_say(caps):
    settings = tiny(**caps)
    attained = 2 * settings.vote_cap * settings.vote_epsilon + settings.estimate_cap * settings.estimate_epsilon
    if settings.start == "sentinel":  # the first vote is the same for all inputs
        attained -= 2 * settings.vote_epsilon
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
