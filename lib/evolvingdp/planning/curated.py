"""Means, counts and frequencies that a trusted curator releases: fresh noise, or running sums.

The curator sees all readings; what it releases differs from them by noise of known variance only.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from evolvingdp.continual_mean.binary_mechanism import best_tree, calibrate
from evolvingdp.continual_mean.prefix_sums import Buffered
from evolvingdp.core import accounting
from evolvingdp.core.noise import Gaussian, Laplace, Noise
from evolvingdp.planning.answer import CannotServeError, Expected, Method
from evolvingdp.planning.question import SHARES, SO_FAR, Question


def moved(question: Question, gaussian: bool = False) -> float:
    """By how much a unit changes the total of one period, or of all words together, in l1 or in l2.

    One user of a list replaces words: two totals move. A user's readings of a period count as one, as a mean of them.
    """
    return (math.sqrt(2.0) if gaussian else 2.0) if question.statistic == "frequencies" else 1.0


def needs_delta(question: Question) -> float:
    if not question.failure:
        raise CannotServeError("it needs a delta above 0", "--delta 1e-9")
    return question.failure


def _fresh(question: Question, gaussian: bool) -> Noise:
    """Of each period's total."""
    reports = question.of_a_unit
    if gaussian:
        mu = accounting.gaussian_mu(question.epsilon, needs_delta(question))
        return Gaussian(moved(question, True) * math.sqrt(reports) / mu)
    return Laplace(moved(question) / accounting.basic(question.epsilon, reports))


def _fresh_expected(question: Question, noise: Noise) -> Expected:
    error = math.sqrt(noise.variance / question.pooled) / question.users / question.a_period
    return Expected.normal(error, isinstance(noise, Laplace) and question.pooled == 1)


def _sums(question: Question, gaussian: bool) -> tuple[Any, Noise]:
    """Prefix sums over periods' totals, and the noise of a node."""
    delta = needs_delta(question) if gaussian else 0.0
    sums: Any = Buffered(question.periods) if gaussian else best_tree(question.periods)
    return sums, calibrate(sums, question.epsilon, delta, moved(question, gaussian), uses=question.of_a_unit)


def _sums_expected(question: Question, made: tuple[Any, Noise]) -> Expected:
    """At the end: trees' variances, which go up and down, are averaged over the last tenth."""
    sums, noise = made
    lengths = np.arange(math.ceil(0.9 * question.periods), question.periods + 1)
    variance = float(np.mean(sums.relative_variance(lengths))) * noise.variance
    return Expected.normal(math.sqrt(variance) / question.periods / question.users / question.a_period)


METHODS = [
    Method("fresh Laplace noise in every period", SHARES, lambda q: _fresh(q, False), _fresh_expected, "curator"),
    Method("fresh Gaussian noise in every period", SHARES, lambda q: _fresh(q, True), _fresh_expected, "curator"),
    Method("running sums, the best tree", SHARES, lambda q: _sums(q, False), _sums_expected, "curator", SO_FAR),
    Method("running sums, eight buffers", SHARES, lambda q: _sums(q, True), _sums_expected, "curator", SO_FAR),
]
