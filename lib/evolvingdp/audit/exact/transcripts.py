"""A user's whole THRESH or HEAVYTHRESH transcript, in the worst case over inputs and over what the server may do.

Given the public updates, what a user sends in different epochs is independent, and whether it votes and reports truthfully
is a deterministic function of its data. So the loss of two inputs is a sum over epochs of log ratios, computed with the
library's own rules and randomizers: no sampling, no bound.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from evolvingdp.evolving.heavy_thresh import HeavyThresh
from evolvingdp.evolving.thresh import Thresh

Array = NDArray[np.float64]


def thresh_bits(settings: Thresh, counts: Sequence[int], updates: Sequence[bool]) -> list[tuple[float, float]]:
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
        laws.append((vote.keep if yes else vote.flip, float(settings.report_one(share))))
        if updated:
            reference, left = count, max(0, left - 1)
    return laws


def thresh_loss(settings: Thresh) -> float:
    """The largest log likelihood ratio over all pairs of inputs, all updates and all transcripts."""
    worst = 0.0
    for updates in _updates(settings):
        inputs = itertools.product(range(settings.epoch_length + 1), repeat=settings.horizon)
        bits = np.array([thresh_bits(settings, counts, updates) for counts in inputs])
        worst = max(worst, _worst(np.log([bits, 1 - bits]).transpose(1, 2, 3, 0)))
    return worst


def _worst(logs: Array) -> float:
    """Over pairs of inputs; `logs` of the probabilities of what may be sent, (inputs, epochs, reports, outcomes)."""
    return max(float((one - logs).max(axis=-1).sum(axis=(1, 2)).max()) for one in logs)


def heavy_logs(settings: HeavyThresh, words: Sequence[int], updates: Sequence[bool]) -> list[list[Array]]:
    """Logs of the probabilities of all that can be sent in each epoch: two votes, then + and - at each coordinate, which is
    public; votes stand there as often as coordinates."""
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
        logs.append([np.log(np.repeat([vote, 1 - vote], settings.width)), np.log(np.concatenate([plus, 1 - plus]))])
        if updated:
            reference, left = counts, max(0, left - 1)
    return logs


def heavy_loss(settings: HeavyThresh) -> float:
    """The largest log likelihood ratio over all pairs of inputs with one word an epoch, all updates and all transcripts."""
    worst = 0.0
    for updates in _updates(settings.voting):
        inputs = itertools.product(range(settings.n_words), repeat=settings.voting.horizon)
        worst = max(worst, _worst(np.array([heavy_logs(settings, words, updates) for words in inputs])))
    return worst


def _updates(settings: Thresh) -> Iterator[tuple[bool, ...]]:
    """All sequences of updates that the server may announce."""
    first = (True,) if settings.start == "forced" else (True, False)
    return itertools.product(first, *[(False, True)] * (settings.horizon - 1))
