"""Entries of the ledger for what came after the paper: integer noise, StableMonitor, values, charging, and newer rivals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from scipy.optimize import brentq

from evolvingdp.audit.exact import queries
from evolvingdp.audit.exact.laws import pair_epsilon
from evolvingdp.audit.ledger.entry import ADVERSARY, BOUND, EXACT, Entry
from evolvingdp.audit.ledger.sparse_vector import _CHAPTER, _DELTA, _EPSILON, _REPLACED, _UNIT, _learned
from evolvingdp.sparse_vector import baselines, gaussian, privacy
from evolvingdp.sparse_vector.above_threshold import AboveThreshold
from evolvingdp.sparse_vector.adversary import epsilon_attained
from evolvingdp.sparse_vector.find_step import FindStep
from evolvingdp.sparse_vector.integer_noise import IntegerNoise
from evolvingdp.sparse_vector.stable_monitor import StableMonitor
from evolvingdp.sparse_vector.successors.target_charging import TargetCharging
from evolvingdp.sparse_vector.successors.values import step_with_value
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving


def entries() -> Iterator[Entry]:
    yield from _integers()
    yield from _rivals()
    yield from _successors()


def _integers() -> Iterator[Entry]:
    """Integer noise: attained, and as a bound; and with what nobody holds left out."""
    made = IntegerNoise.calibrated(_EPSILON, _DELTA, 3)
    yield Entry(
        "integer_noise", _CHAPTER, "ThresholdMonitor, integer noise, attained", (IntegerNoise,), _UNIT, _REPLACED,
        ADVERSARY, _EPSILON, lambda: epsilon_attained(_DELTA, made, 3), "a scale 10 % less",
        lambda: epsilon_attained(_DELTA, IntegerNoise(0.9 * made.scale), 3), _DELTA,
    )  # fmt: skip
    covers, steps = (StableMonitor, StableMonitor.calibrated), 10**6
    method = StableMonitor.calibrated(_EPSILON, _DELTA, steps, 2**32, 3)

    def bound(limit: float) -> float:
        noise = IntegerNoise(method.monitor.noise.scale, int(limit))
        return privacy.epsilon_of_delta(_DELTA - 2 * steps * noise.revealed, noise.scale, 3)

    yield Entry(
        "stable_monitor", _CHAPTER, "StableMonitor, calibration", covers, _UNIT, _REPLACED, BOUND, _EPSILON,
        lambda: bound(method.monitor.threshold), "a threshold of one user less",
        lambda: bound(method.monitor.threshold - 1), _DELTA,
    )  # fmt: skip
    small = StableMonitor.calibrated(_EPSILON, 1e-2, 3, 3, 1)

    def learned(scale: float) -> float:
        """All reports of three steps; the others' weights lie around the threshold, or are 0."""
        limit = int(small.monitor.threshold)
        noise = IntegerNoise(scale * small.monitor.noise.scale, limit)
        broken = replace(small, monitor=replace(small.monitor, noise=noise))
        worst = 0.0
        for first, second in ((-1, -limit), (0, 0), (-1, 0), (-limit, -limit)):
            held = [0] * (limit + first) + [1] * (limit + second) + [2]
            worst = max(worst, pair_epsilon(queries.stable_laws(broken, [held] * 3), 1e-2))
        return worst

    yield Entry(
        "stable_monitor_online", _CHAPTER, "StableMonitor, all reports", covers, _UNIT, _REPLACED, EXACT, _EPSILON,
        partial(learned, 1.0), "a third of the noise", partial(learned, 1 / 3), 1e-2,
    )  # fmt: skip


def _successors() -> Iterator[Entry]:
    """A value with each yes, and charging for hits of a target."""
    delta, wide = 1e-2, 40
    noise = IntegerNoise.calibrated(_EPSILON, delta, 1)

    def shown(scale: float) -> float:
        """All answers of two queries with their values, the user in one world's first and the other's, or in one's alone."""
        monitor = ThresholdMonitorEvolving(IntegerNoise(scale), 20.0, 1)
        every = [queries.value_laws(monitor, 20 + above, kinds, wide) for above in (-1, 2) for kinds in ((0, 1), (1, 1))]
        return max(pair_epsilon(laws, delta) for laws in every)

    yield Entry(
        "threshold_monitor_value", _CHAPTER, "ThresholdMonitor with a value with each yes", (step_with_value,), _UNIT,
        _REPLACED, EXACT, _EPSILON, lambda: shown(noise.scale), "a third of the noise", lambda: shown(noise.scale / 3),
        delta,
    )  # fmt: skip

    def charged(epsilon: float) -> TargetCharging:
        return TargetCharging.comparisons(epsilon, 2)

    one = brentq(lambda epsilon: charged(epsilon).epsilon_of_delta(delta) - _EPSILON, 0.01, 1.0, xtol=1e-12)

    def hits(count: int) -> float:
        return pair_epsilon(queries.charged_laws(replace(charged(float(one)), hits=count), 14), delta)

    yield Entry(
        "target_charging", _CHAPTER, "target charging", (TargetCharging,), "all outputs", "as each call's", EXACT, _EPSILON,
        lambda: hits(2), "halts after 6 hits instead of 2", lambda: hits(6), delta,
    )  # fmt: skip


def _rivals() -> Iterator[Entry]:
    """Exponential and normal noise, and both parts of finding a step accounted together."""
    moved = "every query moves by at most 1"
    covers = (AboveThreshold, baselines.repeated_threshold, gaussian.smallest_gaussian_scale)
    made = AboveThreshold.calibrated(_EPSILON, _DELTA, 2, 0.0, composition="single", noise="exponential", split=0.25)
    yield Entry(
        "above_threshold_exponential", _CHAPTER, "AboveThreshold, exponential noise", covers, _UNIT, moved, EXACT, _EPSILON,
        lambda: queries.above_threshold_loss(made, 5, 3001), "halts after 3 reports instead of 2",
        lambda: queries.above_threshold_loss(replace(made, reports=3), 6, 3001),
    )  # fmt: skip
    count, delta = 10, 1e-2
    normal = AboveThreshold.calibrated(_EPSILON, delta, 2, 0.0, composition="gaussian", moved=count)

    def halting(method: AboveThreshold) -> float:
        return max(
            pair_epsilon(queries.halting_laws(method, kinds), delta) for kinds in ([1] * count, [1, -1] * (count // 2))
        )

    yield Entry(
        "above_threshold_gaussian", _CHAPTER, "AboveThreshold, Gaussian noise", covers, _UNIT, moved, EXACT, _EPSILON,
        lambda: halting(normal), "a third of the noise",
        lambda: halting(replace(normal, query_scale=normal.query_scale / 3)), delta,
    )  # fmt: skip
    for noise in ("gaussian", "laplace"):
        both = FindStep.joint(_EPSILON, _DELTA, 2, 0.0, 3, 2, noise=noise)
        both = replace(both, search=replace(both.search, threshold=both.shown.threshold))
        less = replace(
            both, search=replace(both.search, query_scale=both.search.query_scale / 8),
            shown=replace(both.shown, scale=both.shown.scale / 8),
        )  # fmt: skip
        yield Entry(
            f"find_step_joint_{noise}", _CHAPTER, f"find the step, accounted together, {noise} search",
            (FindStep, FindStep.joint), _UNIT, _REPLACED, EXACT, _EPSILON, partial(_learned, both, _DELTA),
            "an eighth of the noise", partial(_learned, less, _DELTA), _DELTA,
        )  # fmt: skip
