"""Example 1.4 made visible, error against the number of reports, a mis-set k, the domain's price, and Brown documents."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import pandas as pd

from evolvingdp.core.seeds import stream
from evolvingdp.experiment import Result
from evolvingdp.sparse_vector import baselines
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters import methods
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.claims import claims, values
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.other_streams import brown_rows, general_rows
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.params import Params
from evolvingdp.sparse_vector.shifting import plan
from evolvingdp.sparse_vector.shifting_simulation import simulate
from evolvingdp.sparse_vector.streams import ShiftingStream

NOTEBOOK = "sparse_vector/shifting_heavy_hitters"


def run(params: Params, seed: int) -> Result[Params]:
    """Rows of parts example, n_users, tops, reports, general, brown (a run each) and domain (computed)."""
    parts = (_example, _sizes, _tops, _reports, _domain, general_rows, brown_rows)
    table = pd.DataFrame([row for rows in parts for row in rows(params, seed)])
    return Result(NOTEBOOK, params, seed, table, claims(params, table), values(params, table))


def _runs(
    simulation: methods.Simulation, data: ShiftingStream, repetitions: int, row: dict[str, Any], seed: int, *name: Any
) -> Iterator[dict[str, Any]]:
    """`row` with what each run finds; a run's randomness is the stream `name` and its number."""
    for repetition in range(repetitions):
        outcome = simulation(data, stream(seed, *name, repetition))
        false = {"absent": outcome.absent, "single": outcome.single}
        yield row | {"repetition": repetition} | outcome.recall(data) | false


def _example(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    data = methods.example_stream(params.target, params.n_users, stream(seed, "example", "stream"), params.reports)
    for method, simulation in methods.simulations(params.target, data, params.reports).items():
        row = {"part": "example", "method": method}
        yield from _runs(simulation, data, params.repetitions, row, seed, "example", method)


def _sizes(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    for n_users in params.n_users_sweep:
        data = methods.example_stream(params.target, n_users, stream(seed, "n_users", "stream", n_users), params.reports)
        for method, simulation in methods.simulations(params.target, data, params.reports).items():
            row = {"part": "n_users", "n_users": n_users, "events": data.n_events, "method": method}
            yield from _runs(simulation, data, params.sweep_repetitions, row, seed, "n_users", method, n_users)


def _tops(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    """The smallest weight at which all of `tops` events would have been found, for the noise of a run; k* = 3."""
    target = params.target
    queries = methods.CURVE_HORIZON * target.n_elements
    gaussian = methods.every_step(target, methods.CURVE_HORIZON, methods.CURVE[-1])
    for tops in params.tops_sweep:
        own = plan(methods.calibrated(target, params.reports), methods.CURVE_HORIZON, target.n_elements, tops, target.beta)
        svt = {
            name: baselines.best_composition(target.epsilon, target.delta, tops, queries, kinds, target.beta)
            for name, kinds in ((methods.REPEATED, methods.TEXTBOOK), (methods.RENYI, ("renyi",)))
        }
        for repetition in range(params.sweep_repetitions):
            setting = {"part": "tops", "tops": tops, "repetition": repetition}
            rng = stream(seed, "tops", tops, repetition)
            needed = own.monitor.threshold - own.monitor.noise.sample(tops, rng).min()
            yield setting | {"method": methods.MONITOR, "needed": needed, "bound": own.error}
            for name, method in svt.items():
                shift = rng.laplace(0, method.threshold_scale, size=tops if method.refreshed else 1)
                needed = method.threshold + float((shift - rng.laplace(0, method.query_scale, size=tops)).max())
                bound = baselines.threshold_error(method, tops, target.beta)
                yield setting | {"method": name, "needed": needed, "bound": bound}
            needed = gaussian.threshold - rng.normal(0, gaussian.scale, size=tops).min()
            yield setting | {"method": methods.CURVE[-1], "needed": needed, "bound": gaussian.error(tops, target.beta)}


def _reports(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    """ThresholdMonitor with other values of k, on the stream that is made for `reports`."""
    data = methods.example_stream(params.target, params.n_users, stream(seed, "example", "stream"), params.reports)
    for reports in params.reports_sweep:
        chosen = methods.monitor(params.target, data, reports).monitor
        row = {"part": "reports", "method": methods.MONITOR, "reports": reports}
        yield from _runs(partial(simulate, chosen), data, params.sweep_repetitions, row, seed, "reports", reports)


def _domain(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    """The threshold that keeps weight zero out; and how many such reports a threshold of ln(m / beta) alone makes."""
    for reports in sorted({1, params.reports, 10}):
        noise = methods.calibrated(params.target, reports).noise
        for bits in params.bits_sweep:
            queries = params.n_users * 2.0**bits
            yield {
                "part": "domain", "method": methods.MONITOR, "reports": reports, "bits": bits, "threshold": noise.isf(params.beta / (2 * queries)),
                "without_domain": noise.scale * math.log(params.n_users / params.beta),
                "false_reports": queries * float(noise.sf(noise.scale * math.log(params.n_users / params.beta))),
            }  # fmt: skip
