"""Entries of the ledger for what came after the paper and its rivals: a value with each yes, and target charging."""

from __future__ import annotations

from collections.abc import Iterator

from scipy.optimize import brentq

from evolvingdp.audit.exact import enumerated
from evolvingdp.audit.exact.laws import pair_epsilon
from evolvingdp.audit.ledger.entry import EXACT, Entry
from evolvingdp.audit.ledger.mutant import broken
from evolvingdp.audit.ledger.threshold_monitor import EPSILON, LARGE, entry
from evolvingdp.sparse_vector.integer_noise import IntegerNoise
from evolvingdp.sparse_vector.successors.target_charging import TargetCharging
from evolvingdp.sparse_vector.successors.values import step_with_value
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving


def entries() -> Iterator[Entry]:
    yield entry(
        "threshold_monitor_value", "ThresholdMonitor with a value with each yes", (step_with_value,), EXACT, EPSILON, _shown,
        "deleted after no report", ("sparse_vector/successors/values.py", "return monitor.counted(state, values), Valued",
                                    "return state, Valued"), LARGE,
    )  # fmt: skip
    yield Entry(
        "target_charging", "sparse_vector", "target charging", (TargetCharging,), "all outputs", "as each call's", EXACT,
        EPSILON, _charged, "hits are never used up", broken(
            _charged, "sparse_vector/successors/target_charging.py", "return left - bool(target(output)), output",
            "return left, output",
        ), LARGE,
    )  # fmt: skip


def _shown() -> float:
    """All answers of two queries with their values, the user in one world's first and the other's, or in one's alone.

    The others are two above the threshold, so that a yes is likely: whoever is in it must not be in another.
    """
    monitor = ThresholdMonitorEvolving(IntegerNoise.calibrated(EPSILON, LARGE, 1), 20.0, 1)
    return max(pair_epsilon(enumerated.value_laws(monitor, 22, kinds, 40), LARGE) for kinds in ((0, 1), (1, 1)))


def _charged() -> float:
    """Of as many randomized responses as come before the second hit, each with the epsilon at which `LARGE` is left."""

    def spare(epsilon: float) -> float:
        return TargetCharging.comparisons(epsilon, 2).epsilon_of_delta(LARGE) - EPSILON

    one = TargetCharging.comparisons(float(brentq(spare, 0.01, 1.0, xtol=1e-12)), 2)
    return pair_epsilon(enumerated.charged_laws(one, 14), LARGE)
