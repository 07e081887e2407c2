"""Running sums of a long stream: Algorithm 1, better trees, and buffers, measured against their exact errors.

`run` gives a row per mechanism, run and bin of steps, `values` the numbers that claims and prose read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evolvingdp.book.params import Metric
from evolvingdp.continual_mean import streams
from evolvingdp.continual_mean.binary_mechanism import BinaryMechanism, best_tree, printed_sums
from evolvingdp.continual_mean.prefix_sums import BUFFERS, Buffered, PrefixSums, Tree
from evolvingdp.core import accounting
from evolvingdp.core.seeds import stream
from evolvingdp.notebooks.continual_mean.scores import root_mean_square

METRIC = Metric("binary_measured", "root mean square error of Algorithm 1 over the stream", "elements")

CLAIMS = """
farthest_normal <= 0.2  Under normal noise they are closer: largest relative distance
farthest <= 0.5         Measured errors are the exact ones: largest relative distance, all mechanisms
printed_ones >= 32      Printed, Algorithm 1 counts eight ones as
integer_error / binary_error <= 1.01   Integer noise costs nothing: its error over Laplace noise's, exact
gaussian_error / buffered_error >= 1.5   Eight buffers beat the Gaussian tree over the stream: its error over theirs, exact
binary_error / wide_error >= 1.5      A wide tree beats the binary one, pure, exact
largest_gaussian / largest_buffered >= 1.5   Eight buffers beat the Gaussian binary tree at the worst step, too, exact
best_tree_drawn / balanced_error >= 1.1  Negative digits cut the best drawn tree's error by a tenth or more: over it
1 <= over_bound <= 1.2   No factorization does much better: eight buffers' error over the lower bound for all
whole_error / gaussian_error <= 1.1   Discrete Gaussian noise, accounted as zero-concentrated privacy, costs little: its error over Gaussian noise's, exact
far_error / buffered_error <= 1.5    An unknown length costs half again at most: buffers for a billion steps over those for the length, exact
per_step_measured / binary_measured >= 100   A tree beats noise at every step, measured
"""

PER_STEP = "Laplace noise at every step"
BINARY = "binary tree (Algorithm 1)"
WIDE = "16-ary tree"
INTEGER = "binary tree, integer noise"
BALANCED = "balanced tree (negative digits)"
GAUSSIAN = "binary tree, Gaussian"
BUFFERED = "8 buffers, Gaussian"
WHOLE = "binary tree, discrete Gaussian"
FAR = "8 buffers for a billion steps"
BOUND = "lower bound, any factorization"
PURE = [PER_STEP, BINARY, WIDE, INTEGER, BALANCED]
APPROXIMATE = [GAUSSIAN, WHOLE, BUFFERED, FAR]
SHORT = {"binary": BINARY, "wide": WIDE, "integer": INTEGER, "balanced": BALANCED, "gaussian": GAUSSIAN}
SHORT |= {"whole": WHOLE, "buffered": BUFFERED, "far": FAR}  # in values' names
KINDS = ("plain, pure", "negative digits, pure", "plain, Gaussian")  # of trees, by branching
BINS = 24  # of steps, of equal ratio


def edges(params: Any) -> NDArray[np.int64]:
    """First steps of the bins, and the step after the last."""
    return np.unique(np.round(np.geomspace(1, params.horizon + 1, BINS + 1)).astype(np.int64))


def run(params: Any, seed: int) -> pd.DataFrame:
    """A row per mechanism, run and bin of steps: mean squared error, measured and exact."""
    return pd.DataFrame(list(_rows(params, seed)))


def _rows(params: Any, seed: int) -> Iterator[dict[str, Any]]:
    first = edges(params)
    for name in (*PURE, *APPROXIMATE):
        exact = np.add.reduceat(variances(params, name), first[:-1] - 1) / np.diff(first)
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


def mechanism(params: Any, name: str, horizon: int | None = None) -> BinaryMechanism:
    """The mechanism called `name`; per-step noise is a tree of one level for one element at epsilon / T (see `variances`)."""
    steps = horizon or params.horizon
    structures: dict[str, PrefixSums] = {
        BINARY: Tree(steps),
        WIDE: Tree(steps, 16),
        INTEGER: Tree(steps),
        GAUSSIAN: Tree(steps),
        BALANCED: best_tree(steps),
        BUFFERED: Buffered(steps),
        WHOLE: Tree(steps),
        FAR: Buffered(10**9),
    }
    delta, integer = params.delta if name in APPROXIMATE else 0.0, name in (INTEGER, BALANCED, WHOLE)
    return BinaryMechanism(steps, params.epsilon, delta=delta, integer=integer, sums=structures[name])


def variances(params: Any, name: str, horizon: int | None = None) -> NDArray[np.float64]:
    """Exact variance of the running sum at every step."""
    steps = horizon or params.horizon
    if name == PER_STEP:
        return np.full(steps, 2 * (steps / params.epsilon) ** 2)
    made = mechanism(params, name, steps)
    return made.structure.variances(steps) * made.noise.variance


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


def comparison(params: Any, table: pd.DataFrame) -> pd.DataFrame:
    """The page's table: guarantee, measured and exact error over the stream, largest exact error, memory."""
    rows = whole_stream(table)
    frame = pd.DataFrame(
        {
            "mechanism": rows.index,
            "guarantee": [r"$(\epsilon, \delta)$" if name in APPROXIMATE else r"$\epsilon$" for name in rows.index],
            "measured": [f"{value:,.1f}" for value in rows.measured],
            "exact": [f"{value:,.1f}" for value in rows.exact],
            "largest": [f"{np.sqrt(variances(params, name).max()):,.1f}" for name in rows.index],
            "memory": [f"{memory(params, name):,}" for name in rows.index],
        }
    )
    errors = {"measured": "error, measured", "exact": "error, exact", "largest": "largest, exact"}
    return frame.rename(columns=errors | {"memory": "numbers kept"})


def memory(params: Any, name: str) -> int:
    """Numbers of noise that go from one step to the next."""
    if name == PER_STEP:
        return 0
    sums = mechanism(params, name).structure
    return sums.branching * sums.height if isinstance(sums, Tree) else BUFFERS


def lower_bound(params: Any, horizon: int) -> float:
    """Of the error over the stream of any factorization with Gaussian noise at the same mu, however it is found.

    If B C is the matrix A of all ones on and below the diagonal, |B|_F max|C e_j| >= |B|_F |C|_F / sqrt(T) is at least the
    nuclear norm of A over sqrt(T); the singular values are 1 / (2 sin((2j - 1) pi / (4T + 2))).
    """
    angles = (2 * np.arange(1, horizon + 1) - 1) * np.pi / (4 * horizon + 2)
    mu = accounting.gaussian_mu(params.epsilon, params.delta)
    return float(np.sum(0.5 / np.sin(angles))) / horizon / mu


def growth(params: Any) -> pd.DataFrame:
    """Exact errors over the whole stream for other lengths."""
    rows = []
    for power in range(4, 21):
        horizon = 2**power
        for name in (BINARY, WIDE, BALANCED, *APPROXIMATE):
            squares = variances(params, name, horizon)
            error, largest = np.sqrt([squares.mean(), squares.max()]).tolist()
            rows.append({"mechanism": name, "horizon": horizon, "error": error, "largest": largest})
        rows.append({"mechanism": BOUND, "horizon": horizon, "error": lower_bound(params, horizon), "largest": np.nan})
    return pd.DataFrame(rows)


def branchings(params: Any) -> pd.DataFrame:
    """Exact error over the whole stream for every branching: plain, pure and Gaussian, and with negative digits."""
    rows = []
    for branching in params.branching_sweep:
        for kind, balanced, delta in zip(KINDS, (False, True, False), (0.0, 0.0, params.delta), strict=True):
            sums = Tree(params.horizon, branching, balanced)
            noise = BinaryMechanism(params.horizon, params.epsilon, delta=delta, sums=sums).noise
            error = float(np.sqrt(sums.variances(params.horizon).mean() * noise.variance))
            rows.append({"branching": branching, "kind": kind, "error": error})
    return pd.DataFrame(rows)


def values(params: Any, table: pd.DataFrame) -> dict[str, Any]:
    """What claims and prose read, by short names of the mechanisms (`SHORT`): exact errors over the stream, and others."""
    errors, wide = whole_stream(table), branchings(params)
    exact, plain = errors.exact, wide[wide.kind == "plain, pure"]
    best = plain.loc[plain.error.idxmin()]
    apart = (errors.measured / exact - 1).abs()
    return {
        "farthest": apart.max(),  # a sixth of a tree's mean square may be one node's: e^-8.4 of Laplace draws are 35 times theirs
        "farthest_normal": apart[[GAUSSIAN, WHOLE, BUFFERED, FAR]].max(),
        "printed_ones": printed_sums([step & -step for step in range(1, 9)])[-1],
        "largest_gaussian": np.sqrt(variances(params, GAUSSIAN).max()),
        "largest_buffered": np.sqrt(variances(params, BUFFERED).max()),
        "best_tree_drawn": min(exact[WIDE], plain.error.min()),
        "height": Tree(params.horizon).height,
        "best_branching": best.branching,
        "best_branching_error": best.error,
        "digits_branching": best_tree(params.horizon).branching,
        "over_bound": exact[BUFFERED] / lower_bound(params, params.horizon),
        "per_step_measured": errors.measured[PER_STEP],
        "binary_measured": errors.measured[BINARY],
        **{f"{short}_error": exact[name] for short, name in SHORT.items()},
    }
