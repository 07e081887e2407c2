"""From Algorithm 6 to what we recommend, one switch at a time; (epsilon, delta), dimensions, and where nothing helps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Self

import numpy as np
import pandas as pd
from pydantic import Field, field_validator, model_validator

from evolvingdp import experiment
from evolvingdp.continual_mean import algorithms, coordinates, ladder, offline, populations, streams
from evolvingdp.continual_mean.prefix_sums import best_branching
from evolvingdp.continual_mean.scores import projected_share, root_mean_square
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core.seeds import stream
from evolvingdp.experiment import Claim, Result, Scalar, at_least, at_most, engine, parameter

NOTEBOOK = "continual_mean/past_the_paper"
KEPT = 60  # steps
POPULATION_RUNS = 2  # each error is many times the stated one, or not

Dimension = Annotated[int, Field(ge=1, le=1000)]


class Params(experiment.Params):
    """Three settings: random and Zipf-active users with few samples, and users who all use up their cap."""

    n_users: int = parameter(5000, symbol="$n$", unit="users", meaning="users, random and Zipf", ge=100, le=10**6)
    samples_per_user: int = parameter(1024, symbol="$m$", unit="samples", meaning="their cap", ge=4, le=2**16)
    horizon: int = parameter(100_000, symbol="$T$", unit="samples", meaning="length of their stream", ge=1000, le=10**8)
    epsilon: float = parameter(2.0, symbol=r"$\epsilon$", meaning="privacy loss of a user", ge=1e-6, le=100)
    full_users: int = parameter(500, symbol="$n$", unit="users", meaning="users who use up their cap", ge=10, le=10**5)
    full_samples: int = parameter(512, symbol="$m$", unit="samples", meaning="their cap", ge=4, le=2**16)
    full_epsilon: float = parameter(4.0, symbol=r"$\epsilon$", meaning="privacy loss of such a user", ge=1e-6, le=100)
    delta: float = parameter(1e-6, symbol=r"$\delta$", meaning="delta of the Gaussian rungs", gt=0, lt=1)
    mean: float = parameter(0.3, symbol=r"$\mu$", meaning="mean of the bits", ge=0, le=1)
    repetitions: int = parameter(3, symbol="", unit="runs", meaning="runs of each rung", ge=2, le=1000)
    dimensions: tuple[Dimension, ...] = parameter((1, 4, 16, 64), symbol="$d$", meaning="dimensions compared", min_length=2)

    metric = experiment.Metric("random_recommended", "root mean square error of the recommended mean, random order")
    presets = {
        "paper": {
            "n_users": 50_000,
            "samples_per_user": 4096,
            "horizon": 1_000_000,
            "full_users": 2000,
            "full_samples": 2048,
            "repetitions": 8,
        }
    }

    _each_once = field_validator("dimensions")(experiment.distinct)

    @model_validator(mode="after")
    def _possible(self) -> Self:
        for setting in SETTINGS:
            name, dimensions = ("full_epsilon", 1) if setting == "full" else ("epsilon", max(self.dimensions))
            ladder.check(name, *sizes(self, setting), dimensions)
        return self


SETTINGS = {"random": "random order", "zipf": "Zipf users", "full": "full users"}
POPULATIONS = {
    "beta": ("full", "means from Beta(3, 7), full users"),
    "two kinds": ("full", "a tenth always sends 1, full users"),
    "active kind": ("zipf", "the most active tenth always sends 1, Zipf users"),
}


def sizes(params: Params, setting: str) -> tuple[int, int, float, int]:
    """n, m, epsilon and the horizon of a setting."""
    if setting == "full":
        return params.full_users, params.full_samples, params.full_epsilon, params.full_users * params.full_samples
    return params.n_users, params.samples_per_user, params.epsilon, params.horizon


def rung(params: Params, setting: str, name: str) -> UserMean:
    """The settings of a rung."""
    return ladder.rung(name, *sizes(params, setting), params.delta)


def data(params: Params, setting: str, seed: int, repetition: int) -> tuple[Any, Any]:
    """Users and bits of one run."""
    n_users, cap, _, horizon = sizes(params, setting)
    rng = stream(seed, "data", setting, repetition)
    users = streams.arrivals("zipf" if setting == "zipf" else "random", n_users, cap, horizon, rng)
    return users, streams.bits(params.mean, horizon, rng)


def run(params: Params, seed: int) -> Result[Params]:
    """A row per setting, rung and run: mean squared error over the second half of the stream, and what was predicted."""
    table = pd.DataFrame(engine.rows((part, params, seed, *name) for part, *name in _runs(params)))
    return Result(NOTEBOOK, params, seed, table, _claims(params, table), _values(params, table))


def _runs(params: Params) -> Iterator[tuple[Any, ...]]:
    """Part, setting or order, repetition: each has its own data and noise."""
    yield from ((_ladder, setting, repetition) for setting in SETTINGS for repetition in range(params.repetitions))
    few = range(min(3, params.repetitions))
    yield from ((_dimensions, repetition) for repetition in few)
    yield from ((_orders, order, repetition) for order in streams.ORDERS for repetition in few)
    yield from (
        (_populations, population, repetition) for population in POPULATIONS for repetition in range(POPULATION_RUNS)
    )


def _ladder(params: Params, seed: int, setting: str, repetition: int) -> Iterator[dict[str, Any]]:
    users, bits = data(params, setting, seed, repetition)
    late = slice(len(users) // 2, None)
    common = {"part": "ladder", "setting": setting, "repetition": repetition}
    mean = algorithms.running_mean(bits)[late]
    yield common | {"rung": ladder.MEAN, "square": float(np.mean((mean - params.mean) ** 2))}
    for name in ladder.LADDER:
        noise = stream(seed, "noise", setting, name, repetition)
        released = offline.release(rung(params, setting, name), users, bits, noise)
        yield common | {
            "rung": name,
            "square": float(np.mean((released.estimate[late] - params.mean) ** 2)),
            "predicted": float(np.mean(released.standard_error[late] ** 2)),
            "used": float(released.samples[-1] / len(users)),
        }
    if not repetition:
        noise = stream(seed, "noise", setting, "projected")
        share = projected_share(rung(params, setting, ladder.RECOMMENDED), users, bits, noise)
        yield {"part": "projected", "setting": setting, "share": share}


def _dimensions(params: Params, seed: int, repetition: int) -> Iterator[dict[str, Any]]:
    """What a coordinate of d dimensions costs: the first coordinate's error, its budget being a share of all."""
    n_users, cap, epsilon, horizon = sizes(params, "random")
    pure = algorithms.recommended(n_users, cap, epsilon, horizon=horizon)
    gaussian = algorithms.recommended(n_users, cap, epsilon, params.delta, horizon=horizon)
    kinds: dict[str, Callable[[int], UserMean]] = {
        "pure: epsilon / d": lambda d: coordinates.of_one(pure, d),
        "(eps, delta): optimal composition": lambda d: coordinates.of_one(pure, d, params.delta) if d > 1 else pure,
        "(eps, delta): Gaussian": lambda d: coordinates.of_one(gaussian, d),
    }
    users, bits = data(params, "random", seed, repetition)
    late = slice(len(users) // 2, None)
    for name, kind in kinds.items():
        for dimension in params.dimensions:
            noise = stream(seed, "dimension", name, dimension, repetition)
            released = offline.release(kind(dimension), users, bits, noise)
            yield {
                "part": "dimensions",
                "rung": name,
                "dimension": dimension,
                "repetition": repetition,
                "square": float(np.mean((released.estimate[late] - params.mean) ** 2)),
                "predicted": float(np.mean(released.standard_error[late] ** 2)),
            }


def _orders(params: Params, seed: int, order: str, repetition: int) -> Iterator[dict[str, Any]]:
    """The recommended estimates over time on every order of arrival."""
    n_users, cap, _, horizon = sizes(params, "random")
    steps = np.unique(np.round(np.geomspace(10, horizon, KEPT)).astype(np.int64))
    rng = stream(seed, "order data", order, repetition)
    users = streams.arrivals(order, n_users, cap, horizon, rng)
    bits = streams.bits(params.mean, horizon, rng)
    for name in (ladder.NAIVE, ladder.RECOMMENDED, ladder.RECOMMENDED_DELTA):
        noise = stream(seed, "order noise", order, name, repetition)
        released = offline.release(rung(params, "random", name), users, bits, noise)
        squares = (released.estimate - params.mean) ** 2
        for step in steps:
            yield {
                "part": "orders",
                "rung": name,
                "setting": order,
                "repetition": repetition,
                "step": int(step),
                "square": float(np.mean(squares[step - 1 : max(step, int(1.1 * step))])),
                "predicted": float(released.standard_error[step - 1] ** 2),
            }


def _populations(params: Params, seed: int, population: str, repetition: int) -> Iterator[dict[str, Any]]:
    """Distance to the mean of all readings so far where each user has a mean of their own."""
    setting, _ = POPULATIONS[population]
    n_users, cap, _, horizon = sizes(params, setting)
    data = stream(seed, "population data", population, repetition)
    users, bits = populations.readings(population, "zipf" if setting == "zipf" else "random", n_users, cap, horizon, data)
    late = slice(horizon // 2, None)
    truth = algorithms.running_mean(bits)[late]
    for name in ladder.FOR_ALL_USERS:
        noise = stream(seed, "population noise", population, name, repetition)
        released = offline.release(rung(params, setting, name), users, bits, noise)
        yield {
            "part": "populations",
            "rung": name,
            "setting": population,
            "repetition": repetition,
            "square": float(np.mean((released.estimate[late] - truth) ** 2)),
            "predicted": float(np.mean(released.standard_error[late] ** 2)),
        }


def part(table: pd.DataFrame, name: str, by: list[str]) -> pd.DataFrame:
    """Root mean square errors with bands, and the root of the mean predicted square, of a part of the table."""
    mine = table[table.part == name].set_index(by)
    predicted = np.sqrt(mine.predicted.groupby(level=by, sort=False).mean())
    return root_mean_square(mine.square, by).assign(predicted=predicted.to_numpy())


def ladder_table(result: Result[Params]) -> pd.DataFrame:
    """The page's table: error of each rung over the second half of the stream, measured (predicted)."""
    return _shown(part(result.table, "ladder", ["rung", "setting"]), [ladder.MEAN, *ladder.LADDER], SETTINGS)


def populations_table(result: Result[Params]) -> pd.DataFrame:
    """The page's table of users who differ: distance to the mean of all readings, second half, measured (predicted)."""
    titles = {population: title for population, (_, title) in POPULATIONS.items()}
    names = {ladder.RECOMMENDED: "recommended, pure", ladder.RECOMMENDED_DELTA: "recommended, (eps, delta)"}
    shown = _shown(part(result.table, "populations", ["rung", "setting"]), list(ladder.FOR_ALL_USERS), titles)
    return shown.replace({"rung": names})


def _shown(frame: pd.DataFrame, rungs: list[str], titles: dict[str, str]) -> pd.DataFrame:
    """A row per rung, a column per setting."""
    shown = [
        f"{rmse:.2g}" if math.isnan(predicted) else f"{rmse:.2g} ({predicted:.2g})"
        for rmse, predicted in zip(frame.rmse, frame.predicted, strict=True)
    ]
    wide = frame.assign(shown=shown).pivot(index="rung", columns="setting", values="shown")
    return wide.reindex(rungs)[list(titles)].rename(columns=titles).reset_index()


def _claims(params: Params, table: pd.DataFrame) -> list[Claim]:
    errors = part(table, "ladder", ["rung", "setting"]).set_index(["rung", "setting"])
    rmse = errors.rmse
    claims = [
        at_most(
            f"The recommended estimate's error over that of corrected Algorithm 6, {SETTINGS[setting]}",
            rmse[ladder.RECOMMENDED, setting] / rmse[ladder.FULL, setting],
            0.2,
        )
        for setting in SETTINGS
    ]
    rival = {setting: min(rmse[ladder.NAIVE, setting], rmse[ladder.NAIVE_WIDE, setting]) for setting in SETTINGS}
    claims += [
        at_most(
            f"and over that of Algorithm 2, even with a wide tree, {SETTINGS[setting]}",
            rmse[ladder.RECOMMENDED, setting] / rival[setting],
            0.2,
        )
        for setting in ("random", "zipf")
    ]
    predicted = errors.predicted
    claims.append(
        at_most(
            "The stated standard error is not too small: largest measured over stated, recommended rungs",
            max(
                rmse[name, setting] / predicted[name, setting]
                for name in (ladder.RECOMMENDED, ladder.RECOMMENDED_DELTA)
                for setting in SETTINGS
            ),
            populations.over_stated(params.repetitions, 6),
        )
    )
    claims += populations.claims(part(table, "populations", ["rung", "setting"]), POPULATION_RUNS)
    if params.model_dump(exclude={"repetitions", "dimensions"}) == Params.make("paper").model_dump(
        exclude={"repetitions", "dimensions"}
    ):
        claims += [
            at_most(
                "Corrected Algorithm 6 (levels 0 and 1 exact), random order: distance to .105",
                abs(rmse[ladder.START, "random"] - 0.105),
                0.02,
            ),
            at_most("Recommended, pure, random order", rmse[ladder.RECOMMENDED, "random"], 0.004),
            at_most("Recommended, (epsilon, delta), random order", rmse[ladder.RECOMMENDED_DELTA, "random"], 0.001),
            at_most("Recommended, pure, full users", rmse[ladder.RECOMMENDED, "full"], 0.010),
            at_most("and over Algorithm 2, even with a wide tree", rmse[ladder.RECOMMENDED, "full"] / rival["full"], 1.0),
            at_most("Naive binary tree, full users: distance to .018", abs(rmse[ladder.NAIVE, "full"] - 0.018), 0.004),
            at_most("Recommended, pure, Zipf users", rmse[ladder.RECOMMENDED, "zipf"], 0.006),
        ]
    by_dimension = part(table, "dimensions", ["rung", "dimension"]).set_index(["rung", "dimension"]).predicted
    largest = max(params.dimensions)
    claims.append(
        at_least(
            f"In {largest} dimensions Gaussian noise beats epsilon / d: ratio of stated errors",
            by_dimension["pure: epsilon / d", largest] / by_dimension["(eps, delta): Gaussian", largest],
            3,
        )
    )
    return claims


def _values(params: Params, table: pd.DataFrame) -> dict[str, Scalar]:
    errors = part(table, "ladder", ["rung", "setting"]).set_index(["rung", "setting"])
    scores = {
        f"{setting}_{name}": float(errors.rmse[long, setting]) for setting in SETTINGS for long, name in ladder.KEYS.items()
    }
    for row in part(table, "populations", ["rung", "setting"]).to_dict("records"):
        name = f"{row['setting']}_{ladder.POPULATION_KEYS[row['rung']]}".replace(" ", "_")
        scores |= {name: float(row["rmse"]), f"{name}_stated": float(row["predicted"])}
    projected = table[table.part == "projected"].set_index("setting").share
    scores |= {f"{setting}_projected": float(projected[setting]) for setting in SETTINGS}
    orders = part(table, "orders", ["rung", "setting", "step"])
    ends = orders[orders.step == orders.step.max()].set_index(["rung", "setting"]).rmse
    return {
        "n_users": params.n_users,
        "samples_per_user": params.samples_per_user,
        "horizon": params.horizon,
        "epsilon": params.epsilon,
        "delta": params.delta,
        "full_users": params.full_users,
        "full_samples": params.full_samples,
        "full_epsilon": params.full_epsilon,
        "runs": params.repetitions,
        "branching": best_branching(params.n_users),
        "contiguous_recommended": float(ends[ladder.RECOMMENDED, "contiguous"]),
        "contiguous_naive": float(ends[ladder.NAIVE, "contiguous"]),
        "contiguous_root": float(ends[ladder.RECOMMENDED_DELTA, "contiguous"]),
        **scores,
    }
