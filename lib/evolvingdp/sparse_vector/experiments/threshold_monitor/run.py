"""ThresholdMonitor: what deletion buys, and what each way to calibrate it costs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from evolvingdp.core.seeds import stream
from evolvingdp.experiment import Result
from evolvingdp.sparse_vector import privacy
from evolvingdp.sparse_vector.adversary import epsilon_attained
from evolvingdp.sparse_vector.baselines import ask, repeated_threshold
from evolvingdp.sparse_vector.calibration import METHODS, calibrate
from evolvingdp.sparse_vector.experiments.threshold_monitor.claims import claims, values
from evolvingdp.sparse_vector.experiments.threshold_monitor.params import MONITOR, Params, halting
from evolvingdp.sparse_vector.noise import MonitorNoise
from evolvingdp.sparse_vector.shifting import plan

NOTEBOOK = "sparse_vector/threshold_monitor"


def run(params: Params, seed: int) -> Result[Params]:
    """Rows of part "answers" (a run of a method: groups found over time) and "calibration" (a method at a k)."""
    table = pd.DataFrame([*_answers(params, seed), *_calibrations(params)])
    return Result(NOTEBOOK, params, seed, table, claims(params, table), values(params, table))


def _answers(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    """Each group is asked for once, after an empty query; a row a run and a tenth of the queries."""
    queries = 2 * params.n_groups
    checkpoints = np.unique(np.linspace(0, params.n_groups, 11).astype(int))
    exact = plan(calibrate(params.epsilon, params.delta, 1), params.n_groups, 1, params.n_groups).monitor
    svts = {c: repeated_threshold(params.epsilon, params.delta, c, params.n_groups) for c in params.halts}
    asked = np.tile([0, params.group_size], params.n_groups)
    for repetition in range(params.repetitions):
        noise = exact.noise.sample(queries, stream(seed, "answers", MONITOR, repetition))
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


def _calibrations(params: Params) -> Iterator[dict[str, Any]]:
    for reports in params.reports_sweep:
        for method in METHODS:
            found = calibrate(params.epsilon, params.delta, reports, method=method)
            exact = privacy.epsilon_of_delta(params.delta, found.scale, reports)
            yield {
                "part": "calibration", "method": method, "reports": reports, "scale": found.scale, "inner": found.noise.inner,
                "exact_epsilon": exact,
                "attained": epsilon_attained(params.delta, found.noise, reports) if method == "exact" else math.nan,
                "attained_laplace": epsilon_attained(params.delta, MonitorNoise(found.noise.cap, 0.0), reports)
                if method == "exact" else math.nan,
            }  # fmt: skip
