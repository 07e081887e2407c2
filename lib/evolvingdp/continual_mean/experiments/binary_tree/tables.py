"""Running sums: tables of errors, measured and exact, and how they grow with length and branching."""

from __future__ import annotations

import numpy as np
import pandas as pd

from evolvingdp.continual_mean.binary_mechanism import BinaryMechanism
from evolvingdp.continual_mean.experiments.binary_tree.mechanisms import APPROXIMATE, BINARY, HONAKER, WIDE, variances
from evolvingdp.continual_mean.experiments.binary_tree.params import Params
from evolvingdp.continual_mean.experiments.scores import root_mean_square
from evolvingdp.continual_mean.prefix_sums import Tree
from evolvingdp.experiment import Result


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
    rows = whole_stream(result.table)
    frame = pd.DataFrame(
        {
            "mechanism": rows.index,
            "guarantee": [r"(eps, delta)" if name in APPROXIMATE else "eps" for name in rows.index],
            "measured": [f"{value:,.1f}" for value in rows.measured],
            "exact": [f"{value:,.1f}" for value in rows.exact],
            "largest": [f"{np.sqrt(variances(params, name).max()):,.1f}" for name in rows.index],
        }
    )
    return frame.rename(columns={"measured": "error, measured", "exact": "error, exact", "largest": "largest, exact"})


def growth(params: Params) -> pd.DataFrame:
    """Exact errors over the whole stream for other lengths."""
    rows = []
    for power in range(4, 21):
        horizon = 2**power
        for name in (BINARY, WIDE, HONAKER, *APPROXIMATE):
            squares = variances(params, name, horizon)
            error, largest = np.sqrt([squares.mean(), squares.max()]).tolist()
            rows.append({"mechanism": name, "horizon": horizon, "error": error, "largest": largest})
    return pd.DataFrame(rows)


def branchings(params: Params) -> pd.DataFrame:
    """Exact error over the whole stream for every branching, plain and by Honaker's estimates, pure and Gaussian."""
    rows = []
    for branching in params.branching_sweep:
        for honaker in (False, True):
            sums = Tree(params.horizon, branching, honaker)
            square = sums.variances(params.horizon).mean()
            for delta in (0.0, params.delta):
                noise = BinaryMechanism(params.horizon, params.epsilon, delta=delta, sums=sums).noise
                kind = ("Honaker" if honaker else "plain") + (", Gaussian" if delta else ", pure")
                rows.append({"branching": branching, "kind": kind, "error": float(np.sqrt(square * noise.variance))})
    return pd.DataFrame(rows)
