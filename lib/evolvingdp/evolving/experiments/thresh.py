"""THRESH against recomputation: over time, against the horizon, the users, the size of a change, and where it loses."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator

from evolvingdp import experiment
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import baselines, streams, thresh_tables
from evolvingdp.evolving.scenarios import scenarios
from evolvingdp.evolving.streams import BitStream
from evolvingdp.evolving.thresh import Thresh
from evolvingdp.evolving.thresh_constants import paper_epsilons, paper_error_bound
from evolvingdp.evolving.thresh_simulation import Trace, simulate
from evolvingdp.evolving.thresh_tables import ADVANCED, NAIVE, OPTIMAL, PAPER, TUNED, curve, slope
from evolvingdp.experiment import Claim, Result, Scalar, at_least, at_most, engine, parameter, within

NOTEBOOK = "evolving/thresh"
DELTA = 1e-6  # of the (epsilon, delta) baselines
BASELINES = {NAIVE: "basic", ADVANCED: "advanced", OPTIMAL: "optimal"}
METHODS = [PAPER, TUNED, *BASELINES]
START = 0.3
CHANGES = ((0.2, 0.5), (0.5, 0.25), (0.8, 0.65))  # share of the horizon after which the mean becomes this
HORIZON_SWEEP_USERS = 10**7

Horizon = Annotated[int, Field(ge=8, le=2**16)]
Users = Annotated[int, Field(ge=10**4, le=10**10)]


class Params(experiment.Params):
    """The paper runs no experiment; the presets differ in runs and in how far the sweeps go."""

    n_users: int = parameter(1_000_000, symbol="$n$", unit="users", meaning="users", ge=10**4, le=10**10)
    horizon: int = parameter(1024, symbol="$T$", unit="epochs", meaning="epochs", ge=16, le=2**16)
    epoch_length: int = parameter(
        1_000_000, symbol=r"$\ell$", unit="bits", meaning="bits of a user in an epoch", ge=100, le=10**8
    )
    epsilon: float = parameter(1.0, symbol=r"$\epsilon$", meaning="privacy loss of a user in all epochs", gt=0, le=20)
    beta: float = parameter(0.05, symbol=r"$\delta$", meaning="failure probability of the accuracy statement", gt=0, lt=1)
    repetitions: int = parameter(10, symbol="", unit="runs", meaning="runs over time", ge=2, le=10**4)
    sweep_repetitions: int = parameter(5, symbol="", unit="runs", meaning="runs per point of the sweeps", ge=2, le=10**4)
    horizon_sweep: tuple[Horizon, ...] = parameter(
        (16, 64, 256, 1024), symbol="$T$", unit="epochs", meaning="horizons compared", min_length=2
    )
    n_users_sweep: tuple[Users, ...] = parameter(
        (10**6, 10**7, 10**8), symbol="$n$", unit="users", meaning="numbers of users compared", min_length=2
    )

    metric = experiment.Metric("error_tuned", "mean error of tuned THRESH over the epochs")
    presets = {
        "paper": {
            "repetitions": 40,
            "sweep_repetitions": 20,
            "horizon_sweep": (16, 32, 64, 128, 256, 512, 1024, 2048, 4096),
            "n_users_sweep": (10**6, 10**7, 10**8, 10**9),
        }
    }

    @field_validator("horizon_sweep", "n_users_sweep")
    @classmethod
    def _each_once(cls, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return experiment.distinct(values)

    @model_validator(mode="after")
    def _feasible(self) -> Self:
        for n_users in {self.n_users, *self.n_users_sweep}:
            protocols(self, n_users, self.horizon)
        for horizon in self.horizon_sweep:
            protocols(self, HORIZON_SWEEP_USERS, horizon)
        scenarios(self.n_users, self.horizon, self.epoch_length, self.epsilon, self.beta)
        return self


def protocols(params: Params, n_users: int, horizon: int, changes: int = len(CHANGES)) -> dict[str, Thresh]:
    """Both constants with caps for `changes` changes. The paper's b is not small enough for caps that last, where n is small;
    its caps then last for fewer changes."""
    size = (n_users, horizon, params.epoch_length, params.epsilon)
    vote, estimate = paper_epsilons(n_users, horizon, params.epoch_length, n_users, 1, params.beta)
    affordable = math.floor((params.epsilon - estimate) / (estimate + 8 * vote) * (1 - 1e-12))
    lasting = min(changes, max(0, affordable))
    return {
        PAPER: Thresh.paper(*size, beta=params.beta, changes=lasting),
        TUNED: Thresh.tuned(*size, beta=params.beta, changes=changes),
    }


def bits(n_users: int, horizon: int, epoch_length: int) -> BitStream:
    """Three changes at a fifth, a half and four fifths of the horizon."""
    changes = {max(2, round(share * horizon)): mean for share, mean in CHANGES}
    return BitStream.make([n_users], streams.steps(horizon, START, changes), epoch_length)


def run(params: Params, seed: int) -> Result[Params]:
    """A row per run (part: time, horizon, n_users, size, drift or scenario): errors of the clipped estimates, and more."""
    parts = (_over_time, _horizons, _users, _sizes, _drifts, _scenarios)
    table = pd.DataFrame(engine.rows((part, params, seed) for part in parts))
    return Result(NOTEBOOK, params, seed, table, _claims(params, table), _values(params, table))


def trace(params: Params, seed: int, method: str, repetition: int) -> Trace:
    """One run over time."""
    data = bits(params.n_users, params.horizon, params.epoch_length)
    settings = protocols(params, params.n_users, params.horizon)[method]
    return simulate(settings, data, stream(seed, "time", method, repetition))


def _errors(estimates: NDArray[np.float64], truth: NDArray[np.float64]) -> dict[str, float]:
    error = np.abs(np.clip(estimates, 0, 1) - truth)
    return {"mean_error": float(error.mean()), "max_error": float(error.max())}


def _run(settings: Thresh, data: BitStream, rng: np.random.Generator) -> dict[str, Any]:
    result = simulate(settings, data, rng)
    releases = result.releases
    updates = int(releases.updated.sum())
    return _errors(releases.estimate.to_numpy(), data.truth) | {
        "updates": updates,
        "frozen": int(releases.frozen.sum()),
        "spent": 2 * int(result.secret.max_votes.iloc[-1]) * settings.vote_epsilon + updates * settings.estimate_epsilon,
        "bound": settings.error_bound,
    }


def _compare(
    params: Params, data: BitStream, part: str, repetition: int, rngs: Any, changes: int = len(CHANGES)
) -> Iterator[dict[str, Any]]:
    """Every method on one stream; `rngs` gives the generator of a method."""
    setting = {"part": part, "repetition": repetition, "horizon": data.horizon, "n_users": data.n_users}
    for method, settings in protocols(params, data.n_users, data.horizon, changes).items():
        yield setting | {"method": method} | _run(settings, data, rngs(method))
    for method, composition in BASELINES.items():
        estimates = baselines.recompute(data, params.epsilon, rngs(method), composition=composition, delta=DELTA)
        yield setting | {"method": method} | _errors(estimates, data.truth)


def _over_time(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    data = bits(params.n_users, params.horizon, params.epoch_length)
    for repetition in range(params.repetitions):
        yield from _compare(params, data, "time", repetition, lambda method, r=repetition: stream(seed, "time", method, r))


def _horizons(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    for horizon in params.horizon_sweep:
        data = bits(HORIZON_SWEEP_USERS, horizon, params.epoch_length)
        for repetition in range(params.sweep_repetitions):
            name = (horizon, repetition)
            yield from _compare(
                params, data, "horizon", repetition, lambda method, name=name: stream(seed, "horizon", method, *name)
            )


def _users(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    for n_users in params.n_users_sweep:
        data = bits(n_users, params.horizon, params.epoch_length)
        for repetition in range(params.sweep_repetitions):
            name = (n_users, repetition)
            yield from _compare(
                params, data, "n_users", repetition, lambda method, name=name: stream(seed, "n_users", method, *name)
            )


def _sizes(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    """One change right after a quarter of the horizon: how many epochs until an update, against its size in top thresholds."""
    settings = protocols(params, params.n_users, params.horizon)[TUNED]
    top = settings.threshold(1)
    change = params.horizon // 4 + 1
    for share in np.round(np.geomspace(0.05, 2.0, 16), 3):
        size = float(share * top)
        if START + size > 1:
            continue
        means = streams.steps(params.horizon, START, {change: START + size})
        data = BitStream.make([params.n_users], means, params.epoch_length)
        for repetition in range(params.sweep_repetitions):
            releases = simulate(settings, data, stream(seed, "size", str(share), repetition)).releases
            after = releases.epoch[releases.updated & (releases.epoch >= change)]
            delay = int(after.iloc[0] - change) if len(after) else params.horizon - change
            yield {
                "part": "size",
                "repetition": repetition,
                "size": size,
                "share": float(share),
                "delay": delay,
                "found": int(len(after) > 0),
                "predicted": thresh_tables.predicted_delay(settings, size, change),
                **_errors(releases.estimate.to_numpy(), data.truth),
            }


def _drifts(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    """A mean that moves by `size` over the horizon: THRESH, and recomputation every so often."""
    settings = protocols(params, params.n_users, params.horizon)[TUNED]
    for size in (0.0, 0.05, 0.1, 0.2, 0.4):
        means = streams.drift(params.horizon, START, START + size)
        data = BitStream.make([params.n_users], means, params.epoch_length)
        for repetition in range(params.sweep_repetitions):
            setting = {"part": "drift", "repetition": repetition, "size": size}
            yield setting | {"method": TUNED} | _run(settings, data, stream(seed, "drift", str(size), "thresh", repetition))
            for every in (params.horizon // 16, params.horizon // 4):
                rng = stream(seed, "drift", str(size), every, repetition)
                estimates = baselines.recompute(data, params.epsilon, rng, every=every)
                yield setting | {"method": recomputed(every)} | _errors(estimates, data.truth)


def _scenarios(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    """Other streams: THRESH, tuned for each, and recomputation in every epoch."""
    for scenario in scenarios(params.n_users, params.horizon, params.epoch_length, params.epsilon, params.beta):
        for repetition in range(params.sweep_repetitions):
            setting = {"part": "scenario", "repetition": repetition, "scenario": scenario.name}
            rng = stream(seed, "scenario", scenario.name, repetition)
            yield setting | {"method": TUNED} | _run(scenario.settings, scenario.data, rng)
            estimates = baselines.recompute(scenario.data, params.epsilon, rng, composition="optimal", delta=DELTA)
            yield setting | {"method": OPTIMAL} | _errors(estimates, scenario.data.truth)


def recomputed(every: int) -> str:
    return f"every {every} epochs, basic"


def predicted_error(params: Params, method: str, n_users: int, horizon: int) -> float:
    """Mean absolute error of one estimate if it is normal with the standard error at mean 1/2; THRESH: after each change."""
    if method in BASELINES:
        one = baselines.epsilon_of_report(params.epsilon, horizon, BASELINES[method], DELTA)
        return math.sqrt(2 / math.pi) * baselines.standard_error(n_users, one)
    return math.sqrt(2 / math.pi) * protocols(params, n_users, horizon)[method].standard_error


def score_table(result: Result[Params]) -> pd.DataFrame:
    return thresh_tables.summary(result.table, result.params.horizon, result.params.epsilon)


def scenario_table(result: Result[Params]) -> pd.DataFrame:
    return thresh_tables.other_streams(result.table)


def _claims(params: Params, table: pd.DataFrame) -> list[Claim]:
    time = table[table.part == "time"].groupby("method")
    error = time.mean_error.mean()
    sizes = table[(table.part == "size") & (table.share > 1.3)]
    drift = curve(table.assign(drift=table["size"]), "drift").set_index(["method", "drift"]).mean_error
    rare = recomputed(params.horizon // 16)
    users = curve(table, "n_users").set_index(["method", "n_users"]).mean_error
    most, fewest = max(params.n_users_sweep), min(params.n_users_sweep)
    thresh = table[(table.part == "time") & table.method.isin([PAPER, TUNED])]
    settings = protocols(params, params.n_users, params.horizon)
    lasting = [method for method in (PAPER, TUNED) if settings[method].changes >= len(CHANGES)]
    bounded = thresh[thresh.method.isin(lasting)]
    loss = float((thresh.spent / params.epsilon).max())
    claims = [
        at_most("No user ever spends more than epsilon: largest share over all runs", loss, 1.0),
        at_least(
            "Every change is found: fewest updates in a run, tuned", float(time.updates.min()[TUNED]), len(CHANGES) + 1
        ),
        at_most("The proved bound holds: largest error over bound", float((bounded.max_error / bounded.bound).max()), 1.0),
        at_most("Theorem 4.3's bound holds, too", float(bounded.max_error.max() / _theorem(params)), 1.0),
        at_most("THRESH, tuned, over recomputation with epsilon/T: mean error", error[TUNED] / error[NAIVE], 0.2),
        at_most("THRESH, tuned, over recomputation with optimal composition", error[TUNED] / error[OPTIMAL], 0.5),
        within("Recomputation's error grows linearly with T: slope", slope(table, NAIVE), 0.8, 1.1),
        within("With advanced composition like sqrt(T): slope", slope(table, ADVANCED), 0.4, 0.6),
        at_most("THRESH's grows more slowly than any power measured for the others: slope", slope(table, TUNED), 0.3),
        at_least(
            "With the paper's b the error does not fall with n: error at most users over that at fewest",
            users[PAPER, most] / users[PAPER, fewest],
            0.7,
        ),
        at_most("Changes well above the top threshold are found at once: longest delay", float(sizes.delay.max()), 0.0),
        at_least(
            "On a drift of .4 recomputing 16 times is better: THRESH's error over that",
            drift[TUNED, 0.4] / drift[rare, 0.4],
            1.0,
        ),
    ]
    if (params.n_users, params.horizon, params.epoch_length, params.epsilon) == (10**6, 1024, 10**6, 1.0):
        claims += [
            at_most("Mean error with the paper's constants", error[PAPER], 0.010),
            at_most("Mean error, tuned", error[TUNED], 0.006),
        ]
    return [claim for claim in claims if not math.isnan(claim.value)]


def _theorem(params: Params) -> float:
    return paper_error_bound(params.n_users, params.horizon, params.epoch_length, params.beta)


def _values(params: Params, table: pd.DataFrame) -> dict[str, Scalar]:
    time = table[table.part == "time"].groupby("method")
    settings = protocols(params, params.n_users, params.horizon)
    names = dict(zip(("paper", "tuned", "naive", "advanced", "optimal"), METHODS, strict=True))
    values: dict[str, Scalar] = {
        "n_users": params.n_users,
        "horizon": params.horizon,
        "epoch_length": params.epoch_length,
        "epsilon": params.epsilon,
        "runs": params.repetitions,
        "top_threshold": settings[TUNED].threshold(1),
        "bottom_threshold": 2 * settings[TUNED].unit,
        "bound_paper": settings[PAPER].error_bound,
        "bound_tuned": settings[TUNED].error_bound,
        "bound_theorem": _theorem(params),
        "a_paper": settings[PAPER].vote_epsilon,
        "a_tuned": settings[TUNED].vote_epsilon,
        "b_paper": settings[PAPER].estimate_epsilon,
        "b_tuned": settings[TUNED].estimate_epsilon,
        "printed_loss": Thresh.printed(
            params.n_users, params.horizon, params.epoch_length, params.epsilon, beta=params.beta
        ).privacy_loss,
    }
    for short, method in names.items():
        values[f"error_{short}"] = float(time.mean_error.mean()[method])
        values[f"largest_{short}"] = float(time.max_error.max()[method])
        if not math.isnan(slope(table, method)):
            values[f"slope_{short}"] = slope(table, method)
    return values
