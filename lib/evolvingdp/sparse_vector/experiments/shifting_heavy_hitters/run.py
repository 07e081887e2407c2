"""Example 1.4 made visible, error against the number of reports, a mis-set k, the domain's price, and Brown documents."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pandas as pd

from evolvingdp.core.seeds import stream
from evolvingdp.experiment import Result
from evolvingdp.sparse_vector import baselines, histograms
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.brown import brown_rows
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.claims import claims, values
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.general import general_rows
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.methods import (
    CURVE,
    CURVE_HORIZON,
    MONITOR,
    RENYI,
    REPEATED,
    TEXTBOOK,
    calibrated,
    example_stream,
    monitor,
    simulations,
)
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.params import Params
from evolvingdp.sparse_vector.shifting import plan
from evolvingdp.sparse_vector.shifting_simulation import Outcome, simulate
from evolvingdp.sparse_vector.streams import ShiftingStream

NOTEBOOK = "sparse_vector/shifting_heavy_hitters"


def run(params: Params, seed: int) -> Result[Params]:
    """Rows of parts example, n_users, tops, reports, general, brown (a run each) and domain (computed)."""
    parts = (_example, _sizes, _tops, _reports, _domain, _general, _brown)
    table = pd.DataFrame([row for rows in parts for row in rows(params, seed)])
    return Result(NOTEBOOK, params, seed, table, claims(params, table), values(params, table))


def _row(outcome: Outcome, data: ShiftingStream) -> dict[str, Any]:
    return outcome.recall(data) | {"absent": outcome.absent, "single": outcome.single}


def _example(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    data = example_stream(params.target, params.n_users, stream(seed, "example", "stream"), params.reports)
    for method, simulation in simulations(params.target, data, params.reports).items():
        for repetition in range(params.repetitions):
            outcome = simulation(data, stream(seed, "example", method, repetition))
            yield {"part": "example", "method": method, "repetition": repetition} | _row(outcome, data)


def _sizes(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    for n_users in params.n_users_sweep:
        data = example_stream(params.target, n_users, stream(seed, "n_users", "stream", n_users), params.reports)
        setting = {"part": "n_users", "n_users": n_users, "events": data.n_events}
        for method, simulation in simulations(params.target, data, params.reports).items():
            for repetition in range(params.sweep_repetitions):
                outcome = simulation(data, stream(seed, "n_users", method, n_users, repetition))
                yield setting | {"method": method, "repetition": repetition} | _row(outcome, data)


def _tops(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    """The smallest weight at which all of `tops` events would have been found, for the noise of a run; k* = 3."""
    target = params.target
    queries = CURVE_HORIZON * target.n_elements
    gaussian = histograms.histogram(
        target.epsilon, target.delta, CURVE_HORIZON, target.n_elements, kind="gaussian", beta=target.beta
    )
    for tops in params.tops_sweep:
        own = plan(calibrated(target, params.reports), CURVE_HORIZON, target.n_elements, tops, target.beta)
        svt = {
            name: baselines.best_composition(target.epsilon, target.delta, tops, queries, tops, kinds, target.beta)[1]
            for name, kinds in ((REPEATED, TEXTBOOK), (RENYI, ("renyi",)))
        }
        for repetition in range(params.sweep_repetitions):
            setting = {"part": "tops", "tops": tops, "repetition": repetition}
            rng = stream(seed, "tops", tops, repetition)
            needed = own.monitor.threshold - own.monitor.noise.sample(tops, rng).min()
            yield setting | {"method": MONITOR, "needed": needed, "bound": own.error}
            for name, method in svt.items():
                shift = rng.laplace(0, method.threshold_scale, size=tops if method.refreshed else 1)
                needed = method.threshold + float((shift - rng.laplace(0, method.query_scale, size=tops)).max())
                yield setting | {
                    "method": name,
                    "needed": needed,
                    "bound": baselines.threshold_error(method, tops, target.beta),
                }
            needed = gaussian.threshold - rng.normal(0, gaussian.scale, size=tops).min()
            yield setting | {"method": CURVE[-1], "needed": needed, "bound": gaussian.error(tops, target.beta)}


def _reports(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    """ThresholdMonitor with other values of k, on the stream that is made for `reports`."""
    data = example_stream(params.target, params.n_users, stream(seed, "example", "stream"), params.reports)
    for reports in params.reports_sweep:
        chosen = monitor(params.target, data, reports).monitor
        for repetition in range(params.sweep_repetitions):
            outcome = simulate(chosen, data, stream(seed, "reports", reports, repetition))
            yield {"part": "reports", "method": MONITOR, "reports": reports, "repetition": repetition} | _row(outcome, data)


def _domain(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    """The threshold that keeps weight zero out; and how many such reports a threshold of ln(m / beta) alone makes."""
    for reports in sorted({1, params.reports, 10}):
        noise = calibrated(params.target, reports).noise
        for bits in params.bits_sweep:
            queries = params.n_users * 2.0**bits
            yield {
                "part": "domain", "method": MONITOR, "reports": reports, "bits": bits, "threshold": noise.isf(params.beta / (2 * queries)),
                "without_domain": noise.scale * math.log(params.n_users / params.beta),
                "false_reports": queries * float(noise.sf(noise.scale * math.log(params.n_users / params.beta))),
            }  # fmt: skip


def _general(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    return general_rows(params.target, params.n_users, params.sweep_repetitions, seed)


def _brown(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    return brown_rows(params.target, params.copies, params.brown_sweep, params.sweep_repetitions, seed)
