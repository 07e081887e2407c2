"""A user's whole HEAVYTHRESH transcript, in the worst case over its words and over what the others do to the server.

As for THRESH: given the public updates, what a user sends in different epochs is independent, and whether it votes and
reports truthfully is a deterministic function of its words. So the loss of two inputs is a sum over epochs of log ratios.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from evolvingdp.evolving.heavy_projection import HashSigns
from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.thresh import Thresh


def transcript(settings, words, updates):
    """Logs of the probabilities of all that can be sent in each epoch: two votes, then + and - at each coordinate."""
    voting = settings.voting
    reference, used, left, logs = None, 0, voting.estimate_cap, []
    for epoch, (word, updated) in enumerate(zip(words, updates, strict=True), start=1):
        counts = voting.epoch_length * np.eye(settings.n_words, dtype=np.int64)[[word]]
        yes = False
        if not (epoch == 1 and voting.start == "forced"):
            (yes,) = settings.votes_yes(epoch, counts, reference, np.array([used]))
        used += bool(yes)
        vote = voting.vote_randomizer.keep if yes else voting.vote_randomizer.flip
        means = settings.signed_sums(counts)[0] / voting.epoch_length
        plus = settings.report_plus(means if updated and left else np.zeros(settings.width))
        logs.append((np.log([vote, 1 - vote]), np.log([plus, 1 - plus])))
        if updated:
            reference, left = counts, max(0, left - 1)
    return logs


def worst_loss(settings):
    """The largest log likelihood ratio over all pairs of inputs with one word an epoch, all updates and all transcripts."""
    worst, horizon = 0.0, settings.voting.horizon
    first = (True,) if settings.voting.start == "forced" else (True, False)
    for updates in itertools.product(first, *[(False, True)] * (horizon - 1)):
        inputs = itertools.product(range(settings.n_words), repeat=horizon)
        laws = [transcript(settings, words, updates) for words in inputs]
        for one, other in itertools.permutations(laws, 2):
            loss = sum(float((a - c).max() + (b - d).max()) for (a, b), (c, d) in zip(one, other, strict=True))
            worst = max(worst, loss)
    return worst


def tiny(phi=None, **changes):
    base = {"vote_epsilon": 0.2, "estimate_epsilon": 0.3, "vote_cap": 1, "estimate_cap": 1} | changes
    return HeavyThresh(Thresh(10, 4, 1, 100.0, unit=0.01, beta=0.05, **base), 2, phi)


@pytest.mark.parametrize(
    ("phi", "choices"),
    [
        (None, {}),
        (HashSigns(2, 5, 0), {}),
        (None, {"estimate_cap": 2}),
        (None, {"exhaustion": "printed"}),
        (None, {"start": "sentinel"}),
        (HashSigns(2, 5, 0), {"start": "sentinel", "estimate_cap": 2}),
    ],
)
def test_the_worst_transcript_costs_exactly_what_the_caps_say(phi, choices):
    settings = tiny(phi, **choices)
    voting = settings.voting
    attained = 2 * voting.vote_cap * voting.vote_epsilon + voting.estimate_cap * voting.estimate_epsilon
    if voting.start == "sentinel":  # the first vote is the same for all inputs
        attained -= 2 * voting.vote_epsilon
    assert worst_loss(settings) == pytest.approx(attained, rel=1e-9)
    assert worst_loss(settings) <= voting.privacy_loss * (1 + 1e-9)


def test_a_cap_off_by_one_is_caught():
    promised = tiny().voting.privacy_loss
    assert worst_loss(tiny(estimate_cap=2)) > promised * (1 + 1e-9)
    assert worst_loss(tiny(start="sentinel", vote_cap=2)) == pytest.approx(promised)
    assert math.isclose(worst_loss(tiny(vote_cap=0)), 0.3)
