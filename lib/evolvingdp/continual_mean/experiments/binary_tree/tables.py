"""Running sums: the mechanisms by the names that the page prints, their exact errors, and tables of errors."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evolvingdp.continual_mean.binary_mechanism import BinaryMechanism, best_tree
from evolvingdp.continual_mean.experiments.binary_tree.params import Params
from evolvingdp.continual_mean.experiments.scores import root_mean_square
from evolvingdp.continual_mean.prefix_sums import Anytime, BalancedTree, Banded, Buffered, PrefixSums, Toeplitz, Tree
from evolvingdp.continual_mean.sums.recorded import RecordedSums
from evolvingdp.core import accounting
from evolvingdp.experiment import Result

PER_STEP = "Laplace noise at every step"
BINARY = "binary tree (Algorithm 1)"
HONAKER = "binary tree, Honaker"
WIDE = "16-ary tree"
INTEGER = "binary tree, Honaker, integer noise"
BALANCED = "balanced tree (negative digits)"
GAUSSIAN = "binary tree, Gaussian"
GAUSSIAN_HONAKER = "binary tree, Honaker, Gaussian"
ROOT = "square root, Gaussian"
BUFFERED = "8 buffers, Gaussian"
WHOLE = "binary tree, Honaker, discrete Gaussian"
FAR = "12 buffers for a billion steps"
ANYTIME = "without an end (anytime)"
BANDED = "banded square root"
BANDED_BEST = "banded, optimized"
BOUND = "lower bound, any factorization"
PURE = [PER_STEP, BINARY, WIDE, HONAKER, INTEGER, BALANCED]
APPROXIMATE = [GAUSSIAN, GAUSSIAN_HONAKER, WHOLE, ROOT, BUFFERED, FAR, ANYTIME]


def mechanism(params: Params, name: str, horizon: int | None = None) -> BinaryMechanism:
    """The mechanism called `name`; per-step noise is a tree of one level for one element at epsilon / T (see `variances`)."""
    steps = horizon or params.horizon
    structures: dict[str, PrefixSums] = {
        BINARY: Tree(steps),
        WIDE: Tree(steps, 16),
        HONAKER: Tree(steps, honaker=True),
        INTEGER: Tree(steps, honaker=True),
        GAUSSIAN: Tree(steps),
        GAUSSIAN_HONAKER: Tree(steps, honaker=True),
        ROOT: Toeplitz(steps),
        BALANCED: best_tree(steps),
        BUFFERED: Buffered(steps),
        WHOLE: Tree(steps, honaker=True),
        FAR: Buffered(10**9, 12),
        ANYTIME: Anytime(),
    }
    delta, integer = params.delta if name in APPROXIMATE else 0.0, name in (INTEGER, BALANCED, WHOLE)
    return BinaryMechanism(steps, params.epsilon, delta=delta, integer=integer, sums=structures[name])


def variances(params: Params, name: str, horizon: int | None = None) -> NDArray[np.float64]:
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


def comparison(result: Result[Params]) -> pd.DataFrame:
    """The page's table: guarantee, measured and exact error over the stream, largest exact error, memory."""
    params = result.params
    rows = whole_stream(result.table)
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


def memory(params: Params, name: str) -> int:
    """Numbers of noise that go from one step to the next."""
    if name == PER_STEP:
        return 0
    sums = mechanism(params, name).structure
    if isinstance(sums, BalancedTree):
        return sums.branching * sums.height
    if isinstance(sums, Tree):
        return sums.height * (2 if sums.honaker else 1)
    return sums.buffers if isinstance(sums, Buffered) else params.horizon


def recorded_error(params: Params) -> float:
    """Exact, over the stream, of the consistent tree of a stream that has ended."""
    errors = RecordedSums(params.horizon, params.epsilon).standard_error(np.arange(1, params.horizon + 1))
    return float(np.sqrt(np.mean(errors**2)))


def lower_bound(params: Params, horizon: int) -> float:
    """Of the error over the stream of any factorization with Gaussian noise at the same mu, however it is found.

    If B C is the matrix A of all ones on and below the diagonal, |B|_F max|C e_j| >= |B|_F |C|_F / sqrt(T) is at least the
    nuclear norm of A over sqrt(T); the singular values are 1 / (2 sin((2j - 1) pi / (4T + 2))).
    """
    angles = (2 * np.arange(1, horizon + 1) - 1) * np.pi / (4 * horizon + 2)
    mu = accounting.gaussian_mu(params.epsilon, params.delta)
    return float(np.sum(0.5 / np.sin(angles))) / horizon / mu


def growth(params: Params) -> pd.DataFrame:
    """Exact errors over the whole stream for other lengths."""
    rows = []
    for power in range(4, 21):
        horizon = 2**power
        for name in (BINARY, WIDE, HONAKER, BALANCED, *APPROXIMATE):
            squares = variances(params, name, horizon)
            error, largest = np.sqrt([squares.mean(), squares.max()]).tolist()
            rows.append({"mechanism": name, "horizon": horizon, "error": error, "largest": largest})
        rows.append({"mechanism": BOUND, "horizon": horizon, "error": lower_bound(params, horizon), "largest": np.nan})
    return pd.DataFrame(rows)


@cache
def separated(params: Params) -> pd.DataFrame:
    """Exact errors over a stream in which a person has several elements, evenly far apart at least, at the same guarantee.

    Bands are as many as steps from one of a person's elements to the next: there, what they cost does not add up.
    """
    horizon, rows = min(params.horizon, 1 << 13), []
    for power in range(9):
        uses = 1 << power
        gap = max(1, horizon // uses)
        made: dict[str, PrefixSums] = {
            GAUSSIAN_HONAKER: Tree(horizon, honaker=True),
            ROOT: Toeplitz(horizon),
            BUFFERED: Buffered(horizon),
            BANDED: Banded(horizon, gap),
        }
        if gap <= 256:  # optimizing more takes longer than all else
            made[BANDED_BEST] = Banded(horizon, gap, best=True)
        for name, sums in made.items():
            noise = BinaryMechanism(horizon, params.epsilon, delta=params.delta, sums=sums, uses=uses, gap=gap).noise
            error = float(np.sqrt(sums.variances(horizon).mean() * noise.variance))
            rows.append({"mechanism": name, "uses": uses, "gap": gap, "horizon": horizon, "error": error})
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
