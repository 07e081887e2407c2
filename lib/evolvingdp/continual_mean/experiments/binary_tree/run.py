"""Running sums of a long stream: Algorithm 1, better trees, and a factorization, measured against their exact errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field, field_validator

from evolvingdp import experiment
from evolvingdp.continual_mean import streams
from evolvingdp.continual_mean.binary_mechanism import BinaryMechanism, printed_sums
from evolvingdp.continual_mean.prefix_sums import PrefixSums, Toeplitz, Tree
from evolvingdp.continual_mean.scores import root_mean_square
from evolvingdp.core.seeds import stream
from evolvingdp.experiment import Claim, Result, Scalar, at_least, at_most, parameter

NOTEBOOK = "continual_mean/binary_tree"
PER_STEP = "Laplace noise at every step"
BINARY = "binary tree (Algorithm 1)"
HONAKER = "binary tree, Honaker"
WIDE = "16-ary tree"
INTEGER = "binary tree, Honaker, integer noise"
GAUSSIAN = "binary tree, Gaussian"
GAUSSIAN_HONAKER = "binary tree, Honaker, Gaussian"
ROOT = "square root, Gaussian"
PURE = [PER_STEP, BINARY, WIDE, HONAKER, INTEGER]
APPROXIMATE = [GAUSSIAN, GAUSSIAN_HONAKER, ROOT]
BINS = 24  # of steps, of equal ratio

Branching = Annotated[int, Field(ge=2, le=64)]


class Params(experiment.Params):
    """One stream of fair bits; each element is one person's (event level)."""

    horizon: int = parameter(100_000, symbol="$T$", unit="steps", meaning="length of the stream", ge=64, le=10**8)
    epsilon: float = parameter(1.0, symbol=r"$\epsilon$", meaning="privacy loss of an element", ge=1e-6, le=20)
    delta: float = parameter(1e-6, symbol=r"$\delta$", meaning="delta of the Gaussian mechanisms", gt=0, lt=1)
    repetitions: int = parameter(10, symbol="", unit="runs", meaning="runs of each mechanism", ge=2, le=1000)
    branching_sweep: tuple[Branching, ...] = parameter(
        (2, 3, 4, 5, 6, 8, 12, 16, 32), symbol="$b$", meaning="branchings compared by their exact errors", min_length=2
    )

    metric = experiment.Metric("binary_measured", "root mean square error of Algorithm 1 over the stream", "elements")
    presets = {"paper": {"horizon": 1_000_000, "repetitions": 20}}

    @field_validator("branching_sweep")
    @classmethod
    def _each_once(cls, values: tuple[Any, ...]) -> tuple[Any, ...]:
        return experiment.distinct(values)


def mechanism(params: Params, name: str, horizon: int | None = None) -> BinaryMechanism:
    """The mechanism called `name`; per-step noise is a tree of one level for one element at epsilon / T (see `standard_error`)."""
    steps = horizon or params.horizon
    structures: dict[str, PrefixSums] = {
        BINARY: Tree(steps),
        WIDE: Tree(steps, 16),
        HONAKER: Tree(steps, honaker=True),
        INTEGER: Tree(steps, honaker=True),
        GAUSSIAN: Tree(steps),
        GAUSSIAN_HONAKER: Tree(steps, honaker=True),
        ROOT: Toeplitz(steps),
    }
    delta = params.delta if name in APPROXIMATE else 0.0
    return BinaryMechanism(steps, params.epsilon, delta=delta, integer=name == INTEGER, sums=structures[name])


def standard_error(params: Params, name: str, steps: NDArray[np.int64], horizon: int | None = None) -> NDArray[np.float64]:
    """Exact standard deviation of the running sum at `steps`."""
    if name == PER_STEP:
        return np.full(len(steps), np.sqrt(2) * (horizon or params.horizon) / params.epsilon)
    return mechanism(params, name, horizon).standard_error(steps)


def edges(params: Params) -> NDArray[np.int64]:
    """First steps of the bins, and the step after the last."""
    return np.unique(np.round(np.geomspace(1, params.horizon + 1, BINS + 1)).astype(np.int64))


def run(params: Params, seed: int) -> Result[Params]:
    """A row per mechanism, run and bin of steps: mean squared error, measured and exact."""
    table = pd.DataFrame(list(_rows(params, seed)))
    return Result(NOTEBOOK, params, seed, table, _claims(params, table), _values(params, table))


def _rows(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    first = edges(params)
    steps = np.arange(1, params.horizon + 1)
    for name in (*PURE, *APPROXIMATE):
        exact = np.add.reduceat(standard_error(params, name, steps) ** 2, first[:-1] - 1) / np.diff(first)
        for repetition in range(params.repetitions):
            bits = streams.bits(0.5, params.horizon, stream(seed, "bits", repetition))
            noise = stream(seed, "noise", name, repetition)
            if name == PER_STEP:
                error = noise.laplace(0.0, params.horizon / params.epsilon, params.horizon)
            else:
                error = mechanism(params, name).release(bits, noise) - np.cumsum(bits)
            measured = np.add.reduceat(error**2, first[:-1] - 1) / np.diff(first)
            for place, (square, variance) in enumerate(zip(measured, exact, strict=True)):
                yield {
                    "mechanism": name,
                    "repetition": repetition,
                    "first": int(first[place]),
                    "last": int(first[place + 1]) - 1,
                    "mean_square": float(square),
                    "exact": float(variance),
                }


def over_time(table: pd.DataFrame) -> pd.DataFrame:
    """Per mechanism and bin: root mean square error with a 95% band from the runs, and the exact one."""
    by = ["mechanism", "first", "last"]
    indexed = table.set_index(by)
    exact = np.sqrt(indexed.exact.groupby(level=by, sort=False).first())
    frame = root_mean_square(indexed.mean_square, by).assign(exact=exact.to_numpy())
    return frame.assign(step=np.sqrt(frame["first"] * frame["last"]))


def whole_stream(table: pd.DataFrame) -> pd.DataFrame:
    """Per mechanism: root of the mean squared error over all steps and runs, measured and exact."""
    weight = table["last"] - table["first"] + 1
    sums = (
        table.assign(measured=table.mean_square * weight, expected=table.exact * weight, weight=weight)
        .groupby("mechanism", sort=False)[["measured", "expected", "weight"]]
        .sum()
    )
    return pd.DataFrame({"measured": np.sqrt(sums.measured / sums.weight), "exact": np.sqrt(sums.expected / sums.weight)})


def comparison(result: Result[Params]) -> pd.DataFrame:
    """The page's table: guarantee, measured and exact error over the stream, largest exact error, memory."""
    params = result.params
    steps = np.arange(1, params.horizon + 1)
    rows = whole_stream(result.table)
    frame = pd.DataFrame(
        {
            "mechanism": rows.index,
            "guarantee": [r"(eps, delta)" if name in APPROXIMATE else "eps" for name in rows.index],
            "measured": [f"{value:,.1f}" for value in rows.measured],
            "exact": [f"{value:,.1f}" for value in rows.exact],
            "largest": [f"{standard_error(params, name, steps).max():,.1f}" for name in rows.index],
        }
    )
    return frame.rename(columns={"measured": "error, measured", "exact": "error, exact", "largest": "largest, exact"})


def growth(params: Params) -> pd.DataFrame:
    """Exact errors over the whole stream for other lengths."""
    rows = []
    for power in range(4, 21):
        horizon = 2**power
        steps = np.arange(1, horizon + 1)
        for name in (BINARY, WIDE, HONAKER, *APPROXIMATE):
            error = standard_error(params, name, steps, horizon)
            rows.append(
                {
                    "mechanism": name,
                    "horizon": horizon,
                    "error": float(np.sqrt(np.mean(error**2))),
                    "largest": float(error.max()),
                }
            )
    return pd.DataFrame(rows)


def branchings(params: Params) -> pd.DataFrame:
    """Exact error over the whole stream for every branching, plain and by Honaker's estimates, pure and Gaussian."""
    steps = np.arange(1, params.horizon + 1)
    rows = []
    for branching in params.branching_sweep:
        for honaker in (False, True):
            for delta in (0.0, params.delta):
                sums = Tree(params.horizon, branching, honaker)
                error = BinaryMechanism(params.horizon, params.epsilon, delta=delta, sums=sums).standard_error(steps)
                kind = ("Honaker" if honaker else "plain") + (", Gaussian" if delta else ", pure")
                rows.append({"branching": branching, "kind": kind, "error": float(np.sqrt(np.mean(error**2)))})
    return pd.DataFrame(rows)


def _claims(params: Params, table: pd.DataFrame) -> list[Claim]:
    errors = whole_stream(table)
    ratio = errors.measured / errors.exact
    ones = [step & -step for step in range(1, 9)]
    largest = {name: standard_error(params, name, np.arange(1, params.horizon + 1)).max() for name in (GAUSSIAN, ROOT)}
    return [
        at_most(
            "Measured errors are the exact ones: largest relative distance, all mechanisms",
            float((ratio - 1).abs().max()),
            0.2,
        ),
        at_least("Printed, Algorithm 1 counts eight ones as", float(printed_sums(ones)[-1]), 32),
        at_least(
            "Honaker's estimates cut the tree's error over the stream: binary over Honaker, exact",
            errors.exact[BINARY] / errors.exact[HONAKER],
            1.2,
        ),
        at_most(
            "Integer noise costs nothing: its error over Laplace noise's, exact",
            errors.exact[INTEGER] / errors.exact[HONAKER],
            1.01,
        ),
        at_least(
            "The square root beats both Gaussian trees over the stream: the better of them over it, exact",
            min(errors.exact[GAUSSIAN], errors.exact[GAUSSIAN_HONAKER]) / errors.exact[ROOT],
            1.5,
        ),
        at_least("A wide tree beats the binary one, pure, exact", errors.exact[BINARY] / errors.exact[WIDE], 1.5),
        at_least(
            "The square root beats the Gaussian binary tree at the worst step, too, exact",
            largest[GAUSSIAN] / largest[ROOT],
            1.5,
        ),
        at_least("A tree beats noise at every step, measured", errors.measured[PER_STEP] / errors.measured[BINARY], 100),
    ]


def _values(params: Params, table: pd.DataFrame) -> dict[str, Scalar]:
    errors = whole_stream(table)
    by_branching = branchings(params)
    best = by_branching.loc[by_branching[by_branching.kind == "plain, pure"].error.idxmin()]
    names = {
        "per_step": PER_STEP,
        "binary": BINARY,
        "honaker": HONAKER,
        "wide": WIDE,
        "gaussian": GAUSSIAN,
        "gaussian_honaker": GAUSSIAN_HONAKER,
        "root": ROOT,
    }
    return {
        "horizon": params.horizon,
        "epsilon": params.epsilon,
        "runs": params.repetitions,
        "height": Tree(params.horizon).height,
        "best_branching": int(best.branching),
        "best_branching_error": float(best.error),
        **{f"{short}_error": float(errors.exact[name]) for short, name in names.items()},
        **{f"{short}_measured": float(errors.measured[name]) for short, name in names.items()},
    }
