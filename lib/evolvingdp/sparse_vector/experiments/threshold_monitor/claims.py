"""The claims on ThresholdMonitor, and the numbers that the prose prints."""

from __future__ import annotations

import math

import pandas as pd
from scipy.optimize import brentq

from evolvingdp.experiment import Claim, Scalar, at_least, at_most, within
from evolvingdp.sparse_vector import privacy
from evolvingdp.sparse_vector.calibration import METHODS, calibrate
from evolvingdp.sparse_vector.experiments.threshold_monitor.charging import charging_delta
from evolvingdp.sparse_vector.experiments.threshold_monitor.params import MONITOR, Params, halting
from evolvingdp.sparse_vector.experiments.threshold_monitor.tables import calibrations

SMALL_LOSS = 0.07  # lambda up to which the adversary is claimed to attain nearly all


def claims(params: Params, table: pd.DataFrame) -> list[Claim]:
    answers = table[(table.part == "answers") & (table.groups == params.n_groups)].groupby("method").found
    exact = table[(table.part == "calibration") & (table.method == "exact")]
    scales = calibrations(table)
    largest, smallest = scales.index.max(), scales.index.min()
    slope = math.log(scales.exact[largest] / scales.exact[smallest]) / math.log(largest / smallest)
    made = [
        at_least("ThresholdMonitor finds all groups: smallest share", answers.min()[MONITOR] / params.n_groups, 0.97),
        at_most(
            "AboveThreshold finds no more than it may, or than its noise lets it: largest share found at the smallest c",
            answers.max()[halting(min(params.halts))] / params.n_groups,
            min(params.halts) / params.n_groups,
        ),
        at_most(
            "An adversary does not exceed the exact bound, Laplace noise alone: largest epsilon over that promised",
            exact.attained_laplace.max() / params.epsilon,
            1.0,
        ),
        at_least(
            "Theorem 3.2's noise over the exact one: smallest ratio", float((scales.theorem / scales.exact).min()), 1000.0
        ),
        within(
            "Noise grows like the square root of k, or more slowly, but for logarithms: slope of log scale over log k",
            slope,
            0.2,
            0.6,
        ),
    ]
    if 1 / exact.scale.min() <= SMALL_LOSS:  # beyond, positions between whole numbers are lost to the adversary
        attained = "An adversary attains the exact bound, Laplace noise alone: smallest epsilon over that promised"
        made.append(at_least(attained, exact.attained_laplace.min() / params.epsilon, 0.98))
        if params.delta <= 1e-6:
            inner = "With the inner noise it still attains: smallest"
            made.append(at_least(inner, exact.attained.min() / params.epsilon, 0.9))
    if (params.epsilon, params.delta) == (1.0, 1e-6):
        known = {1: 16.068, 3: 20.969, 10: 31.382, 100: 86.350, 1000: 267.80}
        off = max(abs(scales.exact[k] / known[k] - 1) for k in known if k in scales.index)
        made.append(
            at_most("The exact scales are those that were computed independently: largest relative difference", off, 4e-5)
        )
    return made


def _charging_scale(epsilon: float, delta: float, hits: int) -> float:
    """The least noise of comparisons that pay for their hits by target charging."""
    least = privacy.smallest_scale(epsilon, delta, hits, "add-remove")

    def excess(scale: float) -> float:
        return charging_delta(epsilon, 1 / scale, hits) / delta - 1

    return float(brentq(excess, least, 3 * least, rtol=1e-6))


def values(params: Params, table: pd.DataFrame) -> dict[str, Scalar]:
    scales = calibrations(table)
    values: dict[str, Scalar] = params.model_dump(include={"epsilon", "delta", "n_groups", "group_size"})
    values["runs"] = params.repetitions
    answers = table[(table.part == "answers") & (table.groups == params.n_groups)].groupby("method").found.mean()
    values["found_monitor"] = float(answers[MONITOR])
    for c in params.halts:
        values[f"found_{c}"] = float(answers[halting(c)])
    exact = table[(table.part == "calibration") & (table.method == "exact")].set_index("reports")
    values["attained_least"] = (
        math.floor(1000 * exact.attained_laplace.min() / params.epsilon) / 1000
    )  # as the page prints it
    values["attained_inner_least"] = float(exact.attained.min() / params.epsilon)
    values["attained_inner_most"] = float(exact.attained.max() / params.epsilon)
    values["queries_sampled"] = params.delta * 2.0**53  # chapter: each may add 2^-53 to delta, for a sampler of 53 bits
    values["largest_loss"] = float((1 / exact.scale).max())
    for k in (1, 3, 100, 1000):
        if k in scales.index:
            for method in METHODS:
                values[f"{method.replace('-', '_')}_{k}"] = float(scales.loc[k, method])
            values[f"ratio_{k}"] = float(scales.theorem[k] / scales.exact[k])
            values[f"attained_{k}"] = float(exact.attained_laplace[k])
            values[f"attained_inner_{k}"] = float(exact.attained[k])
    for k in (3, 100):
        values[f"add_remove_{k}"] = privacy.epsilon_of_delta(
            params.delta, privacy.smallest_scale(params.epsilon, params.delta, k, "add-remove"), k
        )
    values["one_counter_from"] = next(
        c for c in range(1, 10**4)
        if privacy.smallest_renyi_scale(params.epsilon, params.delta, c, shared=True)
        < privacy.smallest_scale(params.epsilon, params.delta, c)
    )  # fmt: skip
    for k in (1, 10, 1000):
        values[f"charging_{k}"] = _charging_scale(params.epsilon, params.delta, k) / privacy.smallest_scale(
            params.epsilon, params.delta, k, "add-remove"
        )
    for name, method in (("interval_3", "exact"), ("interval_renyi_3", "renyi")):
        values[name] = calibrate(params.epsilon, params.delta, 3, method=method, queries="interval").scale
    return values
