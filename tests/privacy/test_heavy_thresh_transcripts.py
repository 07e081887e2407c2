"""A user's whole HEAVYTHRESH transcript, in the worst case over its words and over what the others do to the server.

The enumeration is `evolving_transcripts`.
"""

from __future__ import annotations

import math

import pytest
from evolving_transcripts import heavy_loss as worst_loss

from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.thresh import Thresh


def tiny(**changes):
    base = {"vote_epsilon": 0.2, "estimate_epsilon": 0.3, "vote_cap": 1, "estimate_cap": 1} | changes
    return HeavyThresh(Thresh(10, 4, 1, 100.0, unit=0.01, beta=0.05, **base), 2)


@pytest.mark.parametrize(
    "choices",
    [
        {},
        {"estimate_cap": 2},
        {"exhaustion": "printed"},
        {"estimate_cap": 2, "vote_epsilon": 0.7},
    ],
)
def test_the_worst_transcript_costs_exactly_what_the_caps_say(choices):
    settings = tiny(**choices)
    voting = settings.voting
    attained = 2 * voting.vote_cap * voting.vote_epsilon + voting.estimate_cap * voting.estimate_epsilon
    assert worst_loss(settings) == pytest.approx(attained, rel=1e-9)
    assert worst_loss(settings) <= voting.privacy_loss * (1 + 1e-9)


def test_a_cap_off_by_one_is_caught():
    promised = tiny().voting.privacy_loss
    assert worst_loss(tiny(estimate_cap=2)) > promised * (1 + 1e-9)
    assert worst_loss(tiny(vote_cap=2)) > promised * (1 + 1e-9)
    assert math.isclose(worst_loss(tiny(vote_cap=0)), 0.3)
