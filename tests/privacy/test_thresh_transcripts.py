"""A user's whole THRESH transcript, in the worst case over inputs and over what the others make the server do.

Given the public updates, what a user sends in different epochs is independent, and whether it votes and reports truthfully
is a deterministic function of its data. So the loss of two inputs is a sum over epochs of log ratios of single bits,
computed here with the library's own rules and randomizers.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from evolvingdp.evolving.thresh import Thresh


def transcript(settings, counts, updates):
    """The laws of the bits that a user with `counts` sends: (P(vote = 1), P(report = 1)) of every epoch."""
    reference, used, left, laws = -settings.epoch_length, 0, settings.estimate_cap, []
    vote = settings.vote_randomizer
    for epoch, (count, updated) in enumerate(zip(counts, updates, strict=True), start=1):
        yes = False
        if not (epoch == 1 and settings.start == "forced"):
            (yes,) = settings.votes_yes(epoch, np.array([count]), np.array([reference]), np.array([used]))
        used += bool(yes)
        sends = updated and left > 0
        share = count / settings.epoch_length if sends else 0.0
        laws.append((vote.keep if yes else vote.flip, settings.report_one(share)))
        if updated:
            reference, left = count, max(0, left - 1)
    return laws


def worst_loss(settings):
    """The largest log likelihood ratio over all pairs of inputs, all updates and all transcripts."""
    worst = 0.0
    first = (True,) if settings.start == "forced" else (True, False)
    for updates in itertools.product(first, *[(False, True)] * (settings.horizon - 1)):
        inputs = itertools.product(range(settings.epoch_length + 1), repeat=settings.horizon)
        logs = []
        for counts in inputs:
            laws = transcript(settings, counts, updates)
            logs.append([[math.log(p), math.log1p(-p)] for pair in laws for p in pair])
        table = np.array(logs)  # (inputs, bits sent, outcomes)
        for one in table:
            worst = max(worst, float((one[None] - table).max(axis=2).sum(axis=1).max()))
    return worst


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
