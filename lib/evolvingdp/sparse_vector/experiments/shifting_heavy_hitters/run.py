"""Example 1.4 made visible, error against the number of reports, a mis-set k, the domain's price, and Brown documents."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import pandas as pd

from evolvingdp.core.seeds import stream
from evolvingdp.experiment import Result
from evolvingdp.sparse_vector import baselines, noise
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters import methods
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.claims import claims, values
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.groups import group_rows
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.other_streams import brown_rows, general_rows
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.params import Params
from evolvingdp.sparse_vector.shifting import plan
from evolvingdp.sparse_vector.shifting_simulation import simulate

ENOUGH = 100  # groups C of all runs at a number of users together

NOTEBOOK = "sparse_vector/shifting_heavy_hitters"


def run(params: Params, seed: int) -> Result[Params]:
    """Rows of parts example, n_users, tops, reports, general, brown (a run each), groups and domain (computed)."""
    parts = (_sizes, group_rows, _tops, _reports, _domain, general_rows, brown_rows)
    table = pd.DataFrame([row for rows in parts for row in rows(params, seed)])
    return Result(NOTEBOOK, params, seed, table, claims(params, table), values(params, table))


def _runs(
    simulations: dict[str, methods.Simulation],
    params: Params,
    n_users: int,
    runs: int,
    row: dict[str, Any],
    seed: int,
    *name: Any,
) -> Iterator[dict[str, Any]]:
    """`row` with what each run of each method finds; the order of the events is drawn anew in every repetition, and is the
    same for all methods."""
    for repetition in range(runs):
        data = methods.example_stream(params.target, n_users, stream(seed, *name, "stream", repetition), params.reports)
        for method, simulation in simulations.items():
            outcome = simulation(data, stream(seed, *name, method, repetition))
            yield (
                row
                | {"method": method, "repetition": repetition, "absent": outcome.absent, "single": outcome.single}
                | outcome.recall(data)
            )


def _sizes(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    """Rows "n_users" for each number of users, of at least `ENOUGH` groups C; and "example" for the one of `n_users`."""
    for n_users in sorted({params.n_users, *params.n_users_sweep}):
        sizes = methods.example_stream(params.target, n_users, stream(seed, "sizes"), params.reports)
        simulations = methods.simulations(params.target, sizes, params.reports)
        row = {"n_users": n_users, "events": sizes.n_events}
        if n_users == params.n_users:
            for run in _runs(simulations, params, n_users, params.repetitions, row, seed, "example"):
                yield run | {"part": "example", "setting": methods.setting(simulations[run["method"]].args[0])}
        if n_users in params.n_users_sweep:
            runs = max(params.sweep_repetitions, math.ceil(ENOUGH / sizes.families[-1].n_groups))
            yield from _runs(simulations, params, n_users, runs, row | {"part": "n_users"}, seed, "n_users", n_users)


def _tops(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    """The smallest weight at which all of `tops` events would have been found, for the noise of a run; k* = 3."""
    target = params.target
    queries = methods.CURVE_HORIZON * target.n_elements
    gaussian = methods.every_step(target, methods.CURVE_HORIZON, methods.CURVE[-1])
    for tops in params.tops_sweep:
        own = plan(methods.calibrated(target, params.reports), methods.CURVE_HORIZON, target.n_elements, tops, target.beta)
        svt = {name: methods.lowest(target, name, tops, methods.CURVE_HORIZON, queries)[0] for name in methods.CURVE[1:-1]}
        for repetition in range(params.sweep_repetitions):
            setting = {"part": "tops", "tops": tops, "repetition": repetition}
            rng = stream(seed, "tops", tops, repetition)
            needed = own.monitor.threshold - own.monitor.noise.sample(tops, rng).min()
            yield setting | {"method": methods.MONITOR, "needed": needed, "bound": own.error}
            for name, method in svt.items():
                shift = noise.draw(method.noise, method.threshold_scale, rng, size=tops if method.refreshed else 1)
                needed = method.threshold + float(
                    (shift - noise.draw(method.noise, method.query_scale, rng, size=tops)).max()
                )
                bound = baselines.threshold_error(method, tops, target.beta)
                yield setting | {"method": name, "needed": needed, "bound": bound}
            needed = gaussian.threshold - rng.normal(0, gaussian.scale, size=tops).min()
            yield setting | {"method": methods.CURVE[-1], "needed": needed, "bound": gaussian.error(tops, target.beta)}


def _reports(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    """ThresholdMonitor with other values of k, on the stream that is made for `reports`."""
    sizes = methods.example_stream(params.target, params.n_users, stream(seed, "sizes"), params.reports)
    for reports in params.reports_sweep:
        chosen = {methods.MONITOR: partial(simulate, methods.monitor(params.target, sizes, reports).monitor)}
        row = {"part": "reports", "reports": reports}
        yield from _runs(chosen, params, params.n_users, params.sweep_repetitions, row, seed, "reports", reports)


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
