"""ThresholdMonitor: what deletion buys, and what each way to calibrate it costs.

`run` gives a row a run ("answers") or a method at a k ("calibration"), `values` the numbers that claims and prose read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import nbinom

from evolvingdp.book.params import Metric
from evolvingdp.core import accounting
from evolvingdp.core.noise import Laplace
from evolvingdp.core.seeds import stream
from evolvingdp.sparse_vector import privacy
from evolvingdp.sparse_vector.above_threshold import AboveThreshold, best_threshold
from evolvingdp.sparse_vector.calibration import METHODS, calibrate
from evolvingdp.sparse_vector.shifting import planned_monitor
from evolvingdp.sparse_vector.shifting_simulation import ask

METRIC = Metric("found_monitor", "groups that ThresholdMonitor finds", "groups")

CLAIMS = """
least_share >= 0.97                 ThresholdMonitor finds all groups: smallest share
most_halting <= share_halting       AboveThreshold finds no more than its count or noise allows: largest share, smallest c
most_attained <= 1                  An adversary does not exceed the exact bound: largest epsilon over that promised
least_ratio >= 1000                 Theorem 3.2's noise over the exact one: smallest ratio
0.2 <= slope <= 0.6                 Noise grows like the square root of k or more slowly, but for logarithms: log-log slope
? least_attained >= 0.98            An adversary attains the exact bound: smallest epsilon over that promised
? off <= 4e-5                       The exact scales are those computed independently: largest relative difference
"""

MONITOR = "ThresholdMonitor"
NAMES = {
    "theorem": "Theorem 3.2",
    "epochs": "Theorem 3.8, epochs",
    "exact": "exact",
}
SMALL_LOSS = 0.07  # lambda up to which the adversary is claimed to attain nearly all
KNOWN = {1: 16.068, 3: 20.969, 10: 31.382, 100: 86.350, 1000: 267.80}  # exact scales at (1, 1e-6), computed independently


def halting(reports: int) -> str:
    return f"AboveThreshold, c = {reports}"


def run(params: Any, seed: int) -> pd.DataFrame:
    return pd.DataFrame([*_answers(params, seed), *_calibrations(params)])


def _answers(params: Any, seed: int) -> Iterator[dict[str, Any]]:
    """Each group is asked for once, after an empty query; a row a run and a tenth of the queries."""
    queries = 2 * params.n_groups
    checkpoints = np.unique(np.linspace(0, params.n_groups, 11).astype(int))
    exact = planned_monitor(calibrate(params.epsilon, params.delta, 1), params.n_groups, 1, params.n_groups).monitor
    svts = {
        c: AboveThreshold.calibrated(params.epsilon, params.delta, c, 0.0).silent(params.n_groups, 0.05)
        for c in params.halts
    }
    asked = np.tile([0, params.group_size], params.n_groups)
    for repetition in range(params.repetitions):
        noise = exact.noise.draw(queries, stream(seed, "answers", MONITOR, repetition))
        above = asked + noise >= exact.threshold  # nobody has counted before: the groups are disjoint, each asked for once
        found = {MONITOR: above} | {
            halting(c): ask(method, asked, stream(seed, "answers", c, repetition)) for c, method in svts.items()
        }
        for method, answers in found.items():
            total = np.concatenate([[0], np.cumsum(answers[1::2])])
            for groups in checkpoints.tolist():
                yield {
                    "part": "answers", "method": method, "repetition": repetition, "groups": groups,
                    "found": int(total[groups]), "queries": queries,
                }  # fmt: skip


def _calibrations(params: Any) -> Iterator[dict[str, Any]]:
    for reports in params.reports_sweep:
        for method in METHODS:
            found = calibrate(params.epsilon, params.delta, reports, method=method)
            yield {
                "part": "calibration", "method": method, "reports": reports, "scale": found.scale,
                "attained": privacy.epsilon_attained(params.delta, Laplace(found.scale), reports) if method == "exact" else math.nan,
            }  # fmt: skip


def calibrations(table: pd.DataFrame) -> pd.DataFrame:
    """A row a k, a column of scales a method."""
    part = table[table.part == "calibration"]
    return part.pivot(index="reports", columns="method", values="scale")[list(METHODS)]


def _exact(table: pd.DataFrame) -> pd.DataFrame:
    return table[(table.part == "calibration") & (table.method == "exact")].set_index("reports")


def values(params: Any, table: pd.DataFrame) -> dict[str, Any]:
    epsilon, delta = params.epsilon, params.delta
    scales, exact = calibrations(table), _exact(table)
    answers = table[(table.part == "answers") & (table.groups == params.n_groups)].groupby("method").found
    fewest, largest, smallest = min(params.halts), scales.index.max(), scales.index.min()
    attains = 1 / exact.scale.min() <= SMALL_LOSS  # beyond, positions between whole numbers are lost to the adversary
    usual = (epsilon, delta) == (1.0, 1e-6)
    found = {
        "found_monitor": answers.mean()[MONITOR],
        "least_share": answers.min()[MONITOR] / params.n_groups,
        "most_halting": answers.max()[halting(fewest)] / params.n_groups,
        "share_halting": fewest / params.n_groups,
        "most_attained": exact.attained.max() / epsilon,
        "least_ratio": (scales.theorem / scales.exact).min(),
        "slope": math.log(scales.exact[largest] / scales.exact[smallest]) / math.log(largest / smallest),
        "least_attained": exact.attained.min() / epsilon if attains else math.nan,
        "off": max((abs(scales.exact[k] / KNOWN[k] - 1) for k in KNOWN if k in scales.index), default=math.nan) if usual else math.nan,
        "attained_least": math.floor(1000 * exact.attained.min() / epsilon) / 1000,  # as the page prints it
        "queries_sampled": delta * 2.0**53,  # chapter: each may add 2^-53 to delta, for a sampler of 53 bits
        "interval_3": calibrate(epsilon, delta, 3, queries="interval").scale,
    }  # fmt: skip
    found |= {f"found_{c}": answers.mean()[halting(c)] for c in params.halts}
    for k in (1, 3, 100, 1000):
        if k in scales.index:
            found |= {f"{method}_{k}": scales.loc[k, method] for method in METHODS}
    if 3 in scales.index:
        found |= {"ratio_3": scales.theorem[3] / scales.exact[3]}
    found |= {f"charging_{k}": charging_ratio(epsilon, delta, k) for k in (1, 1000)}
    return found | {"normal_until": normal_until(epsilon, delta, 3), "single_until_2": single_until(epsilon, delta, 100)}


def single_until(epsilon: float, delta: float, queries: int) -> int:
    """The most yeses up to which one threshold finds smaller counts than normal noise on the queries alone, all of which a
    user moves.

    One threshold with the split that suits it best; both silent in `queries` queries of value 0 but for 2.5 %, found with 99 %.
    """

    def smallest(reports: int, kind: str) -> float:
        def found(method: Any) -> float:
            return float(method.error(1, 0.02))

        return found(best_threshold(epsilon, delta, reports, queries, (kind,), moved=queries, goal=found))

    low, high = 0, 1 << 12
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if smallest(middle, "one") < smallest(middle, "gaussian") else (low, middle)
    return low


def normal_until(epsilon: float, delta: float, reports: int) -> int:
    """The most queries, all of which a user is in, up to which normal noise finds the smaller count than Laplace noise;
    both silent but for 1 %, the one count found with 99 %; to a hundredth."""

    def found(queries: int, moved: int | None = None) -> float:
        return planned_monitor(calibrate(epsilon, delta, reports, moved=moved), queries, 1, 1, 0.02).error

    low, high = 1, 1 << 24
    while high > 1.01 * low:
        middle = math.isqrt(low * high)
        low, high = (middle, high) if found(middle, middle) < found(middle) else (low, middle)
    return low


def charging_ratio(epsilon: float, delta: float, hits: int) -> float:
    """The least noise of comparisons that pay for their hits by target charging, over that of the exact analysis."""
    least = privacy.smallest_scale(epsilon, delta, hits, "add-remove")

    def excess(scale: float) -> float:
        return charging_delta(epsilon, 1 / scale, hits) / delta - 1

    return float(brentq(excess, least, 3 * least, rtol=1e-6)) / least


def charging_delta(epsilon: float, loss: float, hits: int) -> float:
    """Target charging (Cohen and Lyu 2023): the delta at `epsilon` > 0 of comparisons of this `loss`, up to the yes number `hits`.

    Re-derived, with the law of the number of calls that count in place of its tail bound. They are as many randomized
    responses as come before the last hit. Their number is at most that of trials up to the hit number `hits`, each a hit with
    1 / (1 + e^loss), whatever the responses are; it may be known to the analyst, and a cut at any number costs the probability
    of more.
    """
    calls, more = _calls(hits, float(expit(-loss)))
    low, high = 0, len(calls) - 1

    def cost(place: int) -> float:
        return accounting.delta_of_reports(loss, epsilon, int(calls[place])) + float(more[place])

    while high - low > 2:  # the first summand grows with the number of calls, the second falls
        third = (high - low) // 3
        one, other = low + third, high - third
        low, high = (low, other) if cost(one) <= cost(other) else (one, high)
    return min(1.0, *(cost(place) for place in range(low, high + 1)))


@lru_cache(maxsize=64)
def _calls(hits: int, hit_chance: float) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of calls, and the probabilities that more are needed for so many hits."""
    spare = nbinom.isf(1e-20, hits, hit_chance)
    if not spare < 1e6:
        raise privacy.TooLongError(f"hit_chance must be larger, or hits smaller: {hits} hits take up to {spare:.3g} calls")
    misses = np.arange(int(spare) + 2)
    return misses + hits, nbinom.sf(misses, hits, hit_chance)
