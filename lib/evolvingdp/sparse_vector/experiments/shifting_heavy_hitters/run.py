"""Example 1.4 made visible, error against the number of reports, a mis-set k, the domain's price, and Brown documents."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any, Self

import pandas as pd
from pydantic import Field, field_validator, model_validator

from evolvingdp import experiment
from evolvingdp.core.seeds import stream
from evolvingdp.experiment import Result, Scalar, parameter
from evolvingdp.sparse_vector import baselines, histograms
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.brown import brown_rows, brown_values
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.claims import claims
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.general import general_rows, general_values
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.methods import (
    FAMILIES,
    FIND_BEST,
    METHODS,
    MONITOR,
    RENYI,
    REPEATED,
    TEXTBOOK,
    Target,
    calibrated,
    example_plan,
    example_stream,
    monitor,
    simulations,
    smallest_users,
)
from evolvingdp.sparse_vector.shifting import plan
from evolvingdp.sparse_vector.shifting_simulation import Outcome, simulate
from evolvingdp.sparse_vector.streams import ShiftingStream

NOTEBOOK = "sparse_vector/shifting_heavy_hitters"
CURVE = (MONITOR, REPEATED, RENYI, "histogram, Gaussian")
CURVE_HORIZON = 10**7

Users = Annotated[int, Field(ge=10**4, le=10**9)]
Small = Annotated[int, Field(ge=1, le=10**5)]
Bits = Annotated[int, Field(ge=8, le=200)]


class Params(experiment.Params):
    """The paper runs no experiment; the presets differ in runs and in how far the sweeps go."""

    n_users: int = parameter(
        1_000_000, symbol="$n$", unit="users", meaning="users, and steps, of Example 1.4", ge=10**4, le=10**7
    )
    epsilon: float = parameter(1.0, symbol=r"$\epsilon$", meaning="privacy loss of a user in all steps", ge=0.1, le=5)
    delta: float = parameter(1e-6, symbol=r"$\delta$", meaning="its failure probability", ge=1e-20, le=0.01)
    beta: float = parameter(
        0.05, symbol=r"$\beta$", meaning="failure probability of the accuracy statement", ge=1e-6, le=0.5
    )
    reports: int = parameter(3, symbol="$k$", unit="reports", meaning="reports after which a user is deleted", ge=3, le=1000)
    domain_bits: int = parameter(
        32, symbol=r"$\log_2\lvert X\rvert$", unit="bits", meaning="size of the domain", ge=31, le=32
    )
    repetitions: int = parameter(50, symbol="", unit="runs", meaning="runs of Example 1.4", ge=2, le=10**4)
    sweep_repetitions: int = parameter(5, symbol="", unit="runs", meaning="runs per point of the sweeps", ge=2, le=10**4)
    n_users_sweep: tuple[Users, ...] = parameter(
        (10**4, 10**5, 10**6, 10**7), symbol="$n$", unit="users", meaning="numbers of users compared", min_length=2
    )
    tops_sweep: tuple[Small, ...] = parameter(
        (3, 30, 300, 3000, 30_000), symbol="", unit="events", meaning="numbers of events compared", min_length=2
    )
    reports_sweep: tuple[Small, ...] = parameter(
        (1, 2, 3, 6, 10), symbol="$k$", unit="reports", meaning="values of k compared", min_length=2
    )
    bits_sweep: tuple[Bits, ...] = parameter(
        (16, 32, 64, 128), symbol=r"$\log_2\lvert X\rvert$", unit="bits", meaning="domains compared", min_length=2
    )
    copies: int = parameter(100, symbol="", unit="users", meaning="users that stand for one Brown document", ge=1, le=10**4)
    brown_sweep: tuple[Small, ...] = parameter(
        (1, 10, 100, 300),
        symbol="$k$, $c$",
        unit="reports",
        meaning="values of k on Brown; c / 10 goes from the least to the largest",
        min_length=2,
    )

    metric = experiment.Metric("monitor_A", "share of the events A that ThresholdMonitor finds", better="higher")
    presets = {
        "paper": {
            "repetitions": 200,
            "sweep_repetitions": 20,
            "n_users_sweep": (10**4, 10**5, 10**6, 10**7, 10**8, 10**9),
            "tops_sweep": (3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000),
            "reports_sweep": (1, 2, 3, 4, 6, 8, 10, 15, 30),
            "bits_sweep": (8, 16, 32, 64, 96, 128, 160),
            "brown_sweep": (1, 3, 10, 30, 60, 100, 200, 300),
        }
    }

    @field_validator("n_users_sweep", "tops_sweep", "reports_sweep", "bits_sweep", "brown_sweep")
    @classmethod
    def _each_once(cls, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return experiment.distinct(values)

    @model_validator(mode="after")
    def _feasible(self) -> Self:
        """A group must fit: fewer users than the error have none."""
        for n_users in {self.n_users, *self.n_users_sweep}:
            sizes = example_plan(self.target, n_users, self.reports)[1]
            if max(sizes.values()) > n_users:
                raise ValueError(f"n_users must be >= {max(sizes.values())} for one group of each kind, got {n_users}")
        return self

    @property
    def target(self) -> Target:
        return Target(self.epsilon, self.delta, self.beta, 2**self.domain_bits)


def run(params: Params, seed: int) -> Result[Params]:
    """Rows of parts example, n_users, tops, reports, general, brown (a run each) and domain (computed)."""
    parts = (_example, _sizes, _tops, _reports, _domain, _general, _brown)
    table = pd.DataFrame([row for rows in parts for row in rows(params, seed)])
    return Result(NOTEBOOK, params, seed, table, claims(table, params.beta), _values(params, table))


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


def recall(table: pd.DataFrame, part: str, by: str) -> pd.DataFrame:
    """Mean, deviation and number of the runs' recall: a row a method, value of `by` and family."""
    long = table[table.part == part].melt(["method", by], FAMILIES, "family", "recall")
    return long.groupby(["method", by, "family"], sort=False).recall.agg(["mean", "std", "count"]).reset_index()


def score_table(result: Result[Params]) -> pd.DataFrame:
    part = result.table[result.table.part == "example"]
    rows = []
    for method in METHODS:
        runs = part[part.method == method]
        shares = {f"recall {family}": f"{runs[family].mean():.4f}" for family in FAMILIES}
        rows.append(
            {"method": method}
            | shares
            | {"runs with a report of weight zero": f"{int((runs.absent > 0).sum())} of {len(runs)}"}
        )
    return pd.DataFrame(rows)


def _values(params: Params, table: pd.DataFrame) -> dict[str, Scalar]:
    found, sizes = example_plan(params.target, params.n_users, params.reports)
    example = table[table.part == "example"]
    mean = example.groupby("method")[list(FAMILIES)].mean()
    needed = table[table.part == "tops"].groupby(["method", "tops"]).needed.mean()
    low, high = min(params.tops_sweep), max(params.tops_sweep)
    values: dict[str, Scalar] = {
        "n_users": params.n_users, "epsilon": params.epsilon, "delta": params.delta, "beta": params.beta, "k": params.reports,
        "runs": params.repetitions, "threshold": found.monitor.threshold, "error": found.error,
        "scale": found.monitor.noise.scale, "wrong_runs": int((example[example.method == MONITOR].absent > 0).sum()),
        "events": sum(params.n_users // size for size in sizes.values()), "copies": params.copies,
    }  # fmt: skip
    for family, size in sizes.items():
        values[f"size_{family}"] = size
        values[f"events_{family}"] = params.n_users // size
        values[f"monitor_{family}"] = float(mean.loc[MONITOR, family])
        values[f"repeated_{family}"] = float(mean.loc[REPEATED, family])
        values[f"renyi_{family}"] = float(mean.loc[RENYI, family])
        values[f"find_{family}"] = float(mean.loc[FIND_BEST, family])
    values |= {"tops_low": low, "tops_high": high, "needed_monitor": float(needed[MONITOR, high])}
    values |= {"needed_repeated": float(needed[REPEATED, high]), "needed_renyi": float(needed[RENYI, high])}
    mis = table[table.part == "reports"].groupby("reports")[list(FAMILIES)].mean()
    for reports in mis.index.astype(int):
        values |= {f"k{reports}_{family}": float(mis.loc[reports, family]) for family in FAMILIES}
    values["above_beta"] = 0.5 * math.expm1(found.monitor.noise.loss) * 10**9 / params.target.n_elements
    values["theorem_users"] = smallest_users(params.target, params.reports)
    domain = table[(table.part == "domain") & (table.reports == params.reports)].set_index("bits")
    values |= {f"threshold_{int(bits)}": float(domain.threshold[bits]) for bits in domain.index}
    sweep = table[(table.part == "n_users") & (table.method == FIND_BEST)].groupby("n_users")[list(FAMILIES)].mean()
    values["find_few_users"] = int(sweep.index.min())
    values |= {f"find_few_{family}": float(sweep[family].iloc[0]) for family in FAMILIES}
    return values | brown_values(table) | general_values(table)
