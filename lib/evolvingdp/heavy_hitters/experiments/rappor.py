"""Section 4.1's comparison with RAPPOR: Google's Demo 3 (Figure 4), what it costs, and a whole dictionary on Brown."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import model_validator

from evolvingdp import experiment
from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.seeds import stream
from evolvingdp.experiment import Claim, Result, Scalar, at_least, at_most, parameter, within
from evolvingdp.heavy_hitters import streams, theory
from evolvingdp.heavy_hitters.count_sketch import FreqOracle
from evolvingdp.heavy_hitters.rappor import Rappor
from evolvingdp.heavy_hitters.rappor_decoding import decode
from evolvingdp.heavy_hitters.rappor_scores import bands, demo, per_data_set
from evolvingdp.heavy_hitters.tree_scores import score

NOTEBOOK = "heavy_hitters/rappor"
ROWS, WIDTH = 285, 4096  # of the frequency oracle, as in Section 4
UNKNOWN = 9  # Demo 3 forgets the candidates whose number ends in 9
# Google's own R decoder on ten data sets of this kind, run apart from this book: smallest and largest value
R_DECODER = {"found": (44, 53), "false": (7, 12), "l1": (0.155, 0.202), "l_inf": (0.0077, 0.0096)}
BROWN_METHODS = ("RAPPOR, lasso", "FreqOracle, joint")


class Params(experiment.Params):
    """Demo 3's parameters; the preset `quick` differs from `paper` in the number of data sets."""

    n_clients: int = parameter(100_000, symbol="", unit="clients", meaning="clients of Demo 3", ge=1000, le=10**7)
    n_reports: int = parameter(10, symbol="", unit="reports", meaning="reports of each client", ge=1, le=100)
    n_values: int = parameter(100, symbol="$d$", unit="values", meaning="values that occur", ge=20, le=1000)
    n_strangers: int = parameter(100, symbol="", unit="values", meaning="candidates that do not occur", ge=10, le=10**4)
    n_bits: int = parameter(32, symbol="$k$", unit="bits", meaning="bits of a Bloom filter, a power of two", ge=2, le=64)
    n_hashes: int = parameter(1, symbol="$h$", meaning="bits that a value sets", ge=1, le=8)
    n_cohorts: int = parameter(
        64, symbol="", unit="cohorts", meaning="groups of clients with their own hashes", ge=1, le=4096
    )
    permanent_noise: float = parameter(0.5, symbol="$f$", meaning="share of permanent bits that are coins", gt=0, lt=1)
    one_from_zero: float = parameter(0.25, symbol="$p$", meaning="probability that a permanent 0 shows as 1", gt=0, lt=1)
    one_from_one: float = parameter(0.75, symbol="$q$", meaning="probability that a permanent 1 shows as 1", gt=0, lt=1)
    false_discovery_rate: float = parameter(
        0.05, symbol="", meaning="expected share of listed candidates that nobody reported, at most", gt=0, lt=1
    )
    repetitions: int = parameter(4, symbol="", unit="data sets", meaning="data sets of Demo 3", ge=2, le=10**4)
    n_users: int = parameter(
        10_000_000, symbol="$n$", unit="users", meaning="users on Brown, one report each", ge=10**5, le=10**9
    )
    epsilon: float = parameter(2.0, symbol=r"$\epsilon$", meaning="privacy loss of a user on Brown", ge=0.5, le=8)
    brown_repetitions: int = parameter(2, symbol="", unit="runs", meaning="runs on Brown", ge=2, le=1000)

    metric = experiment.Metric("found", "values that RAPPOR detects in Demo 3", "values", "higher")
    presets = {"paper": {"repetitions": 40, "brown_repetitions": 5}}

    @model_validator(mode="after")
    def _a_rappor(self) -> Self:
        rappor(self)
        reports, equations = self.n_clients * self.n_reports, self.n_bits * self.n_cohorts
        if reports > 10**8:
            raise ValueError(f"n_clients * n_reports must be at most 10^8, got {reports:.3g}")
        if equations * (self.n_values + self.n_strangers) > 10**8:
            raise ValueError(
                f"n_bits * n_cohorts * (n_values + n_strangers) must be at most 10^8 for the fit, got "
                f"{equations * (self.n_values + self.n_strangers):.3g}"
            )
        return self


def rappor(params: Params) -> Rappor:
    return Rappor(
        params.n_bits,
        params.n_hashes,
        params.n_cohorts,
        params.permanent_noise,
        params.one_from_zero,
        params.one_from_one,
    )


def candidates(params: Params) -> NDArray[np.uint64]:
    """Nine tenths of the values that occur, and strangers."""
    everyone = np.arange(1, params.n_values + params.n_strangers + 1, dtype=np.uint64)
    asked: NDArray[np.uint64] = everyone[(everyone % 10 != UNKNOWN) | (everyone > params.n_values)]
    return asked


def run(params: Params, seed: int) -> Result[Params]:
    """A row per candidate and data set of Demo 3 (frequencies as fractions of the reports), a row per run on Brown."""
    demo = [_demo(params, seed, repetition) for repetition in range(params.repetitions)]
    brown = [row for repetition in range(params.brown_repetitions) for row in _brown(params, seed, repetition)]
    table = pd.concat([*demo, pd.DataFrame(brown)], ignore_index=True)
    return Result(NOTEBOOK, params, seed, table, _claims(params, table), _values(params, table))


def _demo(params: Params, seed: int, repetition: int) -> pd.DataFrame:
    """One data set: what RAPPOR and FreqOracle say of every candidate."""
    values = streams.demo_3(params.n_clients, params.n_reports, stream(seed, "data", repetition), n_values=params.n_values)
    total = values.size
    asked = candidates(params)
    present, held = np.unique(values, return_counts=True)
    truth = pd.Series(held, index=present).reindex(asked, fill_value=0).to_numpy()
    settings = rappor(params)
    cohorts = np.arange(params.n_clients) % params.n_cohorts  # as in Google's generator
    protocol = settings.draw_hashes(stream(seed, "RAPPOR hashes", repetition))
    pairs = streams.repeated_values(values, cohorts, params.n_cohorts)
    counts = protocol.simulate_pairs(*pairs, stream(seed, "RAPPOR", repetition))
    decoded = decode(protocol, counts, asked)
    hashes = MultiplyShift.draw(ROWS, WIDTH, stream(seed, "oracle hashes", repetition))
    oracle = FreqOracle(hashes, settings.epsilon_of_reports(1))
    sketch = oracle.simulate(present, held, stream(seed, "oracle", repetition))
    listed = decoded.listed(params.false_discovery_rate)
    frame = pd.DataFrame(
        {
            "part": "demo 3",
            "repetition": repetition,
            "value": asked.astype(int),
            "truth": truth / total,
            "rappor": decoded.words.estimate / total,
            "unbiased": decoded.words.unbiased / total,
            "standard_error": decoded.words.standard_error / total,
            "p_value": decoded.words.p_value,
            "listed": listed.astype(int),
            "rappor_listed": np.where(listed, decoded.words.estimate, 0.0) / total,
            "dispersion": decoded.dispersion,
        }
    )
    for estimator in ("median", "mean"):
        frame[f"oracle_{estimator}"] = oracle.estimate(sketch, asked, estimator) / total
    return frame


def _brown(params: Params, seed: int, repetition: int) -> Iterator[dict[str, Any]]:
    """A dictionary of all Brown words at one loss per user: who finds the words above 15 sqrt(n) users?"""
    counts = streams.brown_counts(params.n_users, stream(seed, "brown", repetition))
    keys = streams.brown_keys()
    threshold = 15 * math.isqrt(params.n_users)
    heavy = counts > threshold
    protocol = Rappor.one_shot(params.epsilon, n_bits=64, n_cohorts=128).draw_hashes(
        stream(seed, "brown RAPPOR hashes", repetition)
    )
    decoded = decode(protocol, protocol.simulate(keys, counts, stream(seed, "brown RAPPOR", repetition)), keys)
    hashes = MultiplyShift.draw(16, 2**16, stream(seed, "brown oracle hashes", repetition))
    oracle = FreqOracle(hashes, params.epsilon)
    sketch = oracle.simulate(keys, counts, stream(seed, "brown oracle", repetition))
    estimates = (decoded.words.unbiased.to_numpy(), oracle.estimate(sketch, keys, "joint"))
    errors = (float(decoded.words.standard_error.mean()), oracle.standard_error(params.n_users, "joint"))
    for method, estimate, error in zip(BROWN_METHODS, estimates, errors, strict=True):
        found = pd.Series(np.flatnonzero(estimate >= threshold))
        yield {
            "part": "brown",
            "repetition": repetition,
            "method": method,
            **score(found, set(np.flatnonzero(heavy))),
            "rmse": float(np.sqrt(np.mean(np.square(estimate - counts)))),
            "standard_error": error,
        }


def _claims(params: Params, table: pd.DataFrame) -> list[Claim]:
    sets = per_data_set(table)
    settings = rappor(params)
    slack = max(0.0, params.repetitions**-0.5 - 10**-0.5)  # the bounds are for the mean of ten data sets
    wrong = (sets.false / (sets.found + sets.false).clip(lower=1)).mean()
    by_rank = bands(table, params.n_values).set_index(["ranks", "method"])
    ranks = list(dict.fromkeys(by_rank.index.get_level_values("ranks")))
    tail = by_rank.loc[ranks[-1]]
    brown = table[table.part == "brown"].groupby("method")
    always = [
        within("The standard errors are right: RMS of error over standard error", sets.z_rms.mean(), 0.94, 1.06),
        at_most(
            "The list keeps its false-discovery rate: share of false ones",
            wrong,
            params.false_discovery_rate + 0.05 * slack,
        ),
        *[at_least(f"A dictionary on Brown, F1: {method}", float(runs.f1.mean()), 0.9) for method, runs in brown],
        within(
            "The wide fit's standard error is right on Brown: RMSE over standard error",
            float((brown.get_group(BROWN_METHODS[0]).rmse / brown.get_group(BROWN_METHODS[0]).standard_error).mean()),
            0.95,
            1.05,
        ),
    ]
    if not is_demo_3(params):
        return always
    return [
        within("One report of Demo 3 costs 2 ln(5/3), not ln 3", settings.epsilon_of_reports(1), 1.0216, 1.0217),
        within("Any number of reports of one value costs 2 ln 3", settings.epsilon_permanent, 2.1972, 2.1973),
        at_least("Values found at a nominal false-discovery rate of 5%", sets.found.mean(), 45 - 8 * slack),
        at_most("False ones among them", sets.false.mean(), 3.5 + 4 * slack),
        at_least("Values found when ten false ones are accepted", sets.found_at_ten_false.mean(), 55 - 12 * slack),
        at_most("L1 distance of the fit over the values it can find", sets.l1.mean(), 0.148 + 0.03 * slack),
        at_most("Largest distance, mean over data sets", sets.l_inf.mean(), 0.0065 + 0.003 * slack),
        at_least(
            f"RAPPOR's list reports zero for most values of rank {ranks[-1]}: share", tail.loc["rappor_listed"].zero, 0.8
        ),
        at_most(
            f"And zero is the better estimate there: RMSE of RAPPOR's list over that of FreqOracle's mean, rank {ranks[-1]}",
            tail.loc["rappor_listed"].rmse / tail.loc["oracle_mean"].rmse,
            1.0,
        ),
        *always,
    ]


def is_demo_3(params: Params) -> bool:
    """Whether the parameters of the demo are Google's; its bounds say nothing about others."""
    free = {"repetitions", "n_users", "epsilon", "brown_repetitions"}
    return params.model_dump(exclude=free) == Params().model_dump(exclude=free)


def _values(params: Params, table: pd.DataFrame) -> dict[str, Scalar]:
    sets, settings = per_data_set(table), rappor(params)
    by_rank = bands(table, params.n_values)
    tail = by_rank[by_rank.ranks == by_rank.ranks.iloc[-1]].set_index("method")
    brown = table[table.part == "brown"].groupby("method")[["f1", "precision", "recall", "rmse", "standard_error"]].mean()
    total = params.n_clients * params.n_reports
    values: dict[str, Scalar] = {
        "epsilon_one": settings.epsilon_of_reports(1),
        "epsilon_all": settings.epsilon_of_reports(params.n_reports),
        "epsilon_permanent": settings.epsilon_permanent,
        "epsilon_fresh": params.n_reports * settings.epsilon_of_reports(1),
        "epsilon_one_change": settings.loss_of_histories([1, 1], [1, 2]),
        "change_reports": min(10, params.n_bits, params.n_reports),
        "epsilon_changes": _loss_of_changes(params),
        "reports": total,
        "data_sets": params.repetitions,
        "standard_error": float(demo(table).standard_error.mean()),
        "dispersion": float(demo(table).dispersion.mean()),
        "oracle_error": theory.mean_standard_error(total, settings.epsilon_of_reports(1)) / total,
        "tail_rappor": float(tail.loc["rappor_listed"].rmse * total),
        "tail_median": float(tail.loc["oracle_median"].rmse * total),
        "tail_mean": float(tail.loc["oracle_mean"].rmse * total),
        "brown_rappor_f1": float(brown.loc[BROWN_METHODS[0]].f1),
        "brown_oracle_f1": float(brown.loc[BROWN_METHODS[1]].f1),
        "brown_rappor_error": float(brown.loc[BROWN_METHODS[0]].standard_error),
        "brown_oracle_error": float(brown.loc[BROWN_METHODS[1]].standard_error),
        "brown_users": params.n_users,
        "brown_epsilon": params.epsilon,
    }
    for column in ("found", "false", "found_at_ten_false", "l1", "l1_listed", "l_inf"):
        values[column] = float(sets[column].mean())
        values[f"{column}_sd"] = float(sets[column].std())
    return values


def _loss_of_changes(params: Params) -> float:
    """Between one value reported again and again and as many values of different bits, up to ten reports."""
    reports = min(10, params.n_bits, params.n_reports)
    return rappor(params).loss_of_histories([1] * reports, [1 << place for place in range(reports)])


def decoders(result: Result[Params]) -> pd.DataFrame:
    """Ours beside Google's R decoder."""
    sets = per_data_set(result.table)

    def ours(column: str, digits: int) -> str:
        return f"{sets[column].mean():.{digits}f} ({sets[column].std():.{digits}f})"

    def theirs(column: str) -> str:
        return " to ".join(map(str, R_DECODER[column]))

    rate = f"at a false-discovery rate of {result.params.false_discovery_rate:g}"
    rows = [
        ("values found", theirs("found"), ours("found", 1)),
        ("false ones", theirs("false"), ours("false", 1)),
        ("found with ten false", "", ours("found_at_ten_false", 1)),
        ("L1 distance of the fit", theirs("l1"), ours("l1", 3)),
        ("L1 distance, zero where not listed", "", ours("l1_listed", 3)),
        ("largest distance of the fit", theirs("l_inf"), ours("l_inf", 4)),
    ]
    return pd.DataFrame(rows, columns=["", "Google's decoder", f"ours, {rate}: mean (sd)"])


def brown_table(result: Result[Params]) -> pd.DataFrame:
    rows = []
    for method, runs in result.table[result.table.part == "brown"].groupby("method", sort=False):
        row = {"protocol": method, "bits a user": "64" if method == BROWN_METHODS[0] else "1"}
        for column in ("precision", "recall", "f1"):
            row["F1" if column == "f1" else column] = f"{runs[column].mean():.3f} ({runs[column].std():.3f})"
        rows.append(row | {"standard error": f"{runs.standard_error.mean():,.0f}", "RMSE": f"{runs.rmse.mean():,.0f}"})
    return pd.DataFrame(rows)
