"""Entries of the ledger for answers about a threshold: AboveThreshold, ThresholdMonitor, and histograms in every step."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from evolvingdp.audit.exact import queries
from evolvingdp.audit.exact.draws import law_of
from evolvingdp.audit.exact.laws import composed_epsilon, gaussian_epsilon
from evolvingdp.audit.ledger import threshold_monitor
from evolvingdp.audit.ledger.entry import COMPOSED, EXACT, SENSITIVITY, Entry
from evolvingdp.audit.ledger.threshold_monitor import DELTA, EPSILON, LARGE, TWELVE, entry
from evolvingdp.sparse_vector import baselines, gaussian
from evolvingdp.sparse_vector.above_threshold import AboveThreshold, each_epsilon
from evolvingdp.sparse_vector.find_step import FindStep
from evolvingdp.sparse_vector.histograms import HISTOGRAMS, SHOWN, Histogram, HistogramEveryStep, histogram


def entries() -> Iterator[Entry]:
    yield from _above_threshold()
    yield from threshold_monitor.entries()
    yield from _histograms()
    yield from _find_steps()
    yield from _rivals()


def _above_threshold() -> Iterator[Entry]:

    def made(epsilon: float, composition: str, reports: int, delta: float = DELTA) -> AboveThreshold:
        return AboveThreshold.calibrated(epsilon, delta, reports, 0.0, composition=composition)

    def row(id: str, name: str, epsilon: float, measure: Any, delta: float = 0.0) -> Entry:
        covers = (AboveThreshold, baselines.repeated_threshold)
        return entry(
            f"above_threshold_{id}", f"AboveThreshold, {name}", covers, EXACT, epsilon, measure, delta,
            "every query moves by at most 1",
        )  # fmt: skip

    yield row(
        "once", "until the first yes", EPSILON, lambda: queries.threshold_loss(made(EPSILON, "basic", 1), 7),
    )  # fmt: skip
    turns = (1, -1, -1)
    for composition, delta in (
        ("basic", 0.0),
        ("advanced", LARGE),
        ("optimal", LARGE),
    ):
        yield row(
            composition, f"twice, {composition} composition", TWELVE,
            lambda composition=composition, delta=delta: queries.threshold_loss(
                made(TWELVE, composition, 2, delta or DELTA), len(turns), delta, turns
            ),
            delta,
        )  # fmt: skip
    yield row(
        "single", "one threshold for two reports", TWELVE, lambda: queries.threshold_loss(made(TWELVE, "single", 2), 5),
    )  # fmt: skip
    yield row(
        "many", "30,000 pieces, optimal composition", EPSILON,
        lambda: composed_epsilon(each_epsilon(EPSILON, DELTA, 30_000, "optimal"), 30_000, DELTA),
        DELTA,
    )  # fmt: skip
    yield row(
        "renyi", "without threshold noise", EPSILON, lambda: queries.halting_loss(made(EPSILON, "renyi", 2, LARGE), 8, LARGE),
        LARGE,
    )  # fmt: skip


def _histograms() -> Iterator[Entry]:
    steps, covers = 5, (Histogram, HistogramEveryStep, histogram, baselines.simulate_histogram)

    def pieces(kind: str, counts: bool = False) -> float:
        made = histogram(EPSILON, DELTA, steps, 10, kind=kind)
        every = HistogramEveryStep(made, steps, 10)
        if counts and not queries.refused(every, [np.zeros(2, dtype=np.int64)] * (steps + 1), "count"):
            return math.inf
        one, alone = queries.one_count(every) if counts else queries.one_step(made)
        normal = made.law == "gaussian"
        left = DELTA - (2 if normal else 1) * steps * alone
        if left <= 0 or one == math.inf:
            return math.inf
        return gaussian_epsilon(steps * one, left) if normal else composed_epsilon(one, 2 * steps, left)

    def online(kind: str) -> float:
        method = HistogramEveryStep.calibrated(EPSILON, LARGE, 2, 3, kind=kind)
        users = [np.zeros(2, dtype=np.int64)] * 3
        if not queries.refused(method, users):
            return math.inf
        return queries.reported_loss(method, LARGE)

    for kind in HISTOGRAMS:
        name = f"histogram_{kind}".replace(" ", "_")
        yield entry(
            name, f"histogram in every step, {kind}", covers, COMPOSED, EPSILON, partial(pieces, kind),
            DELTA,
        )  # fmt: skip
    for kind in SHOWN:
        yield entry(
            f"histogram_{kind}_counts".replace(" ", "_"), f"histogram in every step, {kind}, with weights", covers, COMPOSED,
            EPSILON, partial(pieces, kind, True), DELTA,
        )  # fmt: skip
    for kind in HISTOGRAMS:
        yield entry(
            f"histogram_{kind}_online".replace(" ", "_"), f"histogram in every step, {kind}, all reports", covers, EXACT,
            EPSILON, partial(online, kind), LARGE,
        )  # fmt: skip


def _find_steps() -> Iterator[Entry]:
    covers, _path = (FindStep, baselines.simulate_find_step), "sparse_vector/find_step.py"

    def loss(epsilon: float, reports: int, composition: str, kind: str) -> float:
        method = FindStep.calibrated(epsilon, LARGE, reports, 0.0, 3, composition=composition, kind=kind)
        # the threshold of the search where that of the histogram is, so that both are in doubt
        method = replace(method, search=replace(method.search, threshold=method.shown.threshold))
        return queries.reported_loss(method, LARGE)

    for composition, kind, epsilon, reports in (
        ("optimal", "stable", TWELVE, 1),
        ("renyi", "stable gaussian", EPSILON, 2),
    ):
        yield entry(
            f"find_step_{composition}", f"find the step, then histogram, {composition}, all answers", covers, EXACT, epsilon,
            partial(loss, epsilon, reports, composition, kind), LARGE,
        )  # fmt: skip


def _rivals() -> Iterator[Entry]:
    """Exponential and normal noise, and both parts of finding a step accounted together."""
    moved, _path = "every query moves by at most 1", "sparse_vector/above_threshold.py"
    covers = (AboveThreshold, baselines.repeated_threshold, gaussian.smallest_gaussian_scale)

    def exponential() -> float:
        made = AboveThreshold.calibrated(TWELVE, DELTA, 2, 0.0, composition="single", noise="exponential", split=0.25)
        return queries.threshold_loss(made, 4)

    yield entry(
        "above_threshold_exponential", "AboveThreshold, exponential noise", covers, EXACT, TWELVE, exponential,
        neighbours=moved,
    )  # fmt: skip

    def normal() -> float:
        made = AboveThreshold.calibrated(EPSILON, LARGE, 2, 0.0, composition="gaussian", moved=8)
        return queries.halting_loss(made, 8, LARGE)

    yield entry(
        "above_threshold_gaussian", "AboveThreshold, Gaussian noise", covers, EXACT, EPSILON, normal,
        LARGE, moved,
    )  # fmt: skip

    def stable() -> float:
        """What is left of delta when the chance to see a user alone in 4 queries is paid for, at what noise costs."""
        made = AboveThreshold.stable_gaussian(EPSILON, LARGE, 2, 4)
        seen = law_of(lambda rng: any(queries.answers(made, [1] * 4, rng)))[True]
        left = LARGE - 4 * seen
        return queries.halting_loss(replace(made, stable=False, threshold=0.0), 4, left) if left > 0 else math.inf

    yield entry(
        "above_threshold_stable", "AboveThreshold, Gaussian noise, silent where nobody is", (AboveThreshold,), EXACT, EPSILON,
        stable,
        LARGE, moved,
    )  # fmt: skip
    yield entry(
        "above_threshold_asked", "AboveThreshold, all answers at once", (baselines.ask,), SENSITIVITY, EPSILON,
        lambda: queries.asked_loss(AboveThreshold.calibrated(EPSILON, DELTA, 1, 0.0, composition="basic"), 4),
        neighbours=moved,
    )  # fmt: skip

    def joint(noise: str, reports: int, horizon: int, ratio: float = 1.0) -> float:
        method = FindStep.joint(EPSILON, LARGE, reports, 0.0, 3, horizon, noise=noise, ratio=ratio)
        return queries.reported_loss(replace(method, search=replace(method.search, threshold=method.shown.threshold)), LARGE)

    for noise in ("gaussian", "laplace"):
        yield entry(
            f"find_step_joint_{noise}", f"find the step, together, {noise} search, two settings", (FindStep, FindStep.joint), EXACT,
            2 * EPSILON, lambda noise=noise: joint(noise, 2, 7) + joint(noise, 1, 2, 0.7),
            LARGE,
        )  # fmt: skip
