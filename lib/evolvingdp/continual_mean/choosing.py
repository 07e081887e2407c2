"""The default, and what it is chosen by: the error that a release would state, computed beforehand from what is public.

**Computes** for settings whose samples all weigh the same the stated error at later times: the noise's standard deviation
and the bias that samples beyond the cap can make, from the numbers of samples that users have by then.  Those are known
where arrivals are, and otherwise taken to be those of `horizon` steps in random order: the choice is only good for such
arrivals, what the release states then holds for all.

**Guarantee.** That of `UserMean`: neighbours have the same arrivals, so that a choice made from arrivals costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize

from evolvingdp.continual_mean.algorithms import bands, naive
from evolvingdp.continual_mean.prefix_sums import PrefixSums
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core import checks

Array = NDArray[np.float64]
_LATE = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # of the horizon: where the error counts
_CLOSE = tuple(np.linspace(0.5, 1.0, 41).tolist())  # the same, where a few settings are left
_LEAST = 0.1  # of an even share: what a band has at least before shares are made to sum to one, also if it may never open
FLOOR = _LEAST / (1 + _LEAST) * (1 - 1e-9)  # of an even share: what no band has less than, but for rounding


@checks.plain
def recommended(
    n_users: int,
    samples_per_user: int,
    epsilon: float,
    delta: float = 0.0,
    arrivals: ArrayLike | None = None,
    **options: Any,
) -> UserMean:
    """The mean of all readings so far, for any users: every sample weighs the same, and nothing is projected.

    `samples_per_user`: what nobody exceeds, as far as is known.  A cap is chosen, and whether samples share one stream or
    have a stream for each band of a user's samples: whatever has the least late error, noise and bias, as it will be stated
    (see above).  With delta = 0 the cap is chosen together with a `batch`, of so many samples of the stream that their sum
    is one element: there are fewer elements, a user moves them by no more, and the last release stands in between.

    `arrivals` (T,): users by number in a stream like the one to come, or in that one, should it be known.  Samples beyond
    the cap are dropped and counted; `Release.bias` says what that, and samples that wait, can do.  With `excess="error"`
    they are refused, and the cap is `samples_per_user`, the batch 1.  delta = 0: discrete Laplace noise on the best tree;
    delta > 0: Gaussian noise of eight buffers.
    """
    chosen = _best(delta, options) | {"excess": "drop", "clip": True} | options
    draft = naive(n_users, samples_per_user, epsilon, **chosen)
    times = list(expected_counts(draft, arrivals))

    def error(cap: int) -> float:
        return late_error(draft.but(samples_per_user=cap), times)

    most = samples_per_user
    cap = most if draft.excess == "error" else _least(error, most)
    one = draft.but(samples_per_user=cap)
    caps = {most} if draft.excess == "error" else {min(2**power, most) for power in range((most - 1).bit_length() + 1)}
    batched = [one] if draft.excess == "error" or delta or "batch" in options else _batched(one, most, times)
    many = [_with_shares(bands(n_users, each, epsilon, **chosen), times) for each in sorted(caps) if each * 4 >= cap]
    closely = list(expected_counts(draft, arrivals, _CLOSE))
    return min(dict.fromkeys((draft, one, *batched, *many)), key=lambda settings: late_error(settings, closely))


def _batched(one: UserMean, most: int, times: list[tuple[int, Array]]) -> list[UserMean]:
    """Batches and caps with the least error near each other: the batch for the cap, then the cap for the batch, twice."""
    best = one
    for sizes in (np.geomspace(1, max(1, one.max_steps // 20), 16), np.geomspace(0.5, 2, 9)):
        tried = np.unique(np.maximum(sizes * (1 if best.batch == 1 else best.batch), 1).round().astype(int)).tolist()
        made = [best.but(batch=size) for size in tried if size <= best.max_steps]
        best = min(made, key=lambda settings: late_error(settings, times))
        cap = _least(lambda cap, best=best: late_error(best.but(samples_per_user=cap), times), most)
        best = best.but(samples_per_user=cap)
    return [best]


def _best(delta: float, options: dict[str, Any]) -> dict[str, Any]:
    """The noise with the least error, and the prefix sums, unless `options` have others."""
    sums: dict[str, Any] = {"buffered": True} if delta else {"branching": 0}
    if not options.keys().isdisjoint(("branching", "honaker", "buffered")):
        sums = {}
    return sums | ({"delta": delta} if delta else {"integer": True})


def _least(error: Any, most: int) -> int:
    """The cap with the least error: on a grid of equal ratios, and around its best."""
    caps = np.unique(np.geomspace(1, most, 24).round().astype(int)).tolist()
    best = caps.index(min(caps, key=error))
    low, high = caps[max(best - 1, 0)], caps[min(best + 1, len(caps) - 1)]
    return int(min(np.unique(np.linspace(low, high, 16).round().astype(int)).tolist(), key=error))


def expected_counts(
    settings: UserMean, arrivals: ArrayLike | None = None, parts: tuple[float, ...] = _LATE
) -> Iterator[tuple[int, Array]]:
    """Late times, `parts` of the horizon, and how many users have sent 0, 1, 2, ... samples by then.

    As in `arrivals`, or in random order.
    """
    if arrivals is not None:
        users = np.asarray(arrivals)
        if users.ndim != 1 or users.dtype.kind not in "iu" or not len(users):
            raise TypeError(f"arrivals must be integers, one a step, got {users.dtype} {users.shape}")
        if not 0 <= users.min() <= users.max() <= 10**6 + 8 * len(users):  # too far apart to be counted
            _, users = np.unique(users, return_inverse=True)
        users = users.astype(np.int64, copy=False)
        ever = np.bincount(users) > 0
        for part in parts:
            steps = math.ceil(part * len(users))
            sent = np.bincount(users[:steps])
            yield steps, np.bincount(sent[ever[: len(sent)]]).astype(float)
        return
    from scipy.stats import binom  # half a second, which nobody waits for who knows the arrivals

    most, places = settings.samples_per_user, settings.n_users * settings.samples_per_user
    horizon = min(settings.horizon or places, places)
    for part in parts:
        steps = math.ceil(part * horizon)
        mean = steps / settings.n_users
        away = 12 * math.sqrt(mean) + 24  # beyond it there is nobody
        first, last = max(0, math.floor(mean - away)), min(most, math.ceil(mean + away))
        rarely = settings.n_users * binom.pmf(np.arange(first, last + 1), most, steps / places)
        yield steps, np.concatenate([np.zeros(first), rarely])


def late_error(settings: UserMean, times: list[tuple[int, Array]]) -> float:
    """Root mean square of what would be stated at `times`: standard error and possible bias, over the range of samples.

    For settings whose samples weigh the same.  Trees' variances, which go up and down, are averaged over the tenth before,
    and how many samples of a batch wait over what it can be.
    """
    squares = []
    for steps, counts in times:
        entered = elements(settings, counts)
        used = min(float(entered.sum()), steps)
        if not used:
            return math.inf
        waiting = (settings.batch - 1) / 2  # on average
        if not used > waiting:
            return math.inf
        used -= waiting
        noise = noise_variances(settings, entered / settings.batch).sum() / (used * settings.resolution) ** 2
        squares.append(noise + (1 - used / steps) ** 2 + (settings.batch**2 - 1) / 12 / steps**2)
    return math.sqrt(float(np.mean(squares)))


def elements(settings: UserMean, counts: Array) -> Array:
    """How many elements (samples, where batched) have entered each tree when `counts[k]` users have sent k samples."""
    rank = np.arange(len(counts))
    if settings.blocks == "doubling":
        return np.array([counts[rank >= 1 << level].sum() for level in range(settings.n_trees)])
    if settings.blocks == "single":
        return np.array([counts @ np.minimum(rank, settings.samples_per_user)])
    before = [(1 << tree) // 2 for tree in range(settings.n_trees)]
    within = [np.minimum(np.maximum(rank - first, 0), settings.uses(tree)) for tree, first in enumerate(before)]
    return np.array([counts @ sent for sent in within])


def noise_variances(settings: UserMean, entered: Array) -> Array:
    """Variance of each tree's noise, grid units, when that many elements have entered it."""
    variances = np.zeros(settings.n_trees)
    for tree, (count, (sums, node)) in enumerate(zip(entered.tolist(), _nodes(settings), strict=True)):
        if count > 0:
            last = min(max(round(count), 1), sums.capacity)
            variances[tree] = _relative(sums, last, not settings.delta) * node * min(count, 1.0)
    return variances


@lru_cache(maxsize=1 << 13)  # settings that are compared have trees in common
def _relative(sums: PrefixSums, last: int, averaged: bool) -> float:
    """The variance of a sum of `last` elements in units of a draw's, also `averaged` over the tenth before."""
    lengths = np.unique(np.linspace(max(1, 0.9 * last), last, 32).astype(int)) if averaged else [last]
    return float(np.mean(sums.relative_variance(lengths)))


@lru_cache(maxsize=8)
def _nodes(settings: UserMean) -> list[tuple[PrefixSums, float]]:
    """Each tree's prefix sums, and the variance of a draw."""
    made = [settings.prefix_sums(settings.capacity_of(tree)) for tree in range(settings.n_trees)]
    moved = map(settings.user_sensitivity, range(settings.n_trees))
    return [(sums, settings.noise(tree, sums, by).variance) for tree, (sums, by) in enumerate(zip(made, moved, strict=True))]


def _with_shares(settings: UserMean, times: list[tuple[int, Array]]) -> UserMean:
    """Shares of the budget with which the trees' noise is least at the last of `times`, none far below an even one.

    Variances are in proportion to 1/share^2, or to 1/share with Gaussian noise: their sum is least for shares in proportion
    to the cubic or the square root of the variances at even shares.
    """
    variances = noise_variances(settings, elements(settings, times[-1][1]))
    shares = variances ** (1 / 2 if settings.delta else 1 / 3)
    return settings.but(shares=_normal(shares / shares.sum()))


def _normal(shares: Array) -> tuple[float, ...]:
    """Shares that sum to one, each at least `_LEAST` of an even one."""
    raised = np.maximum(shares, _LEAST / len(shares))
    return tuple((raised / raised.sum()).tolist())


def shares_for(settings: UserMean, arrivals: ArrayLike | None = None) -> tuple[float, ...]:
    """Budget shares for levels that are weighted by precision: those with the least stated late error.

    A level's c samples with noise variance V add c^2 / (V + c/4) to the estimate's precision; noise is for the interval that
    the levels below allow when they are half as precise.  Any shares are private: this is a choice of utility.
    """
    sizes, reach, power = settings.sizes, settings._concentration, 1 if settings.delta else 2
    late, even, deviations = [], settings.but(shares=(), prior="none"), settings.prior_deviations
    for _, counts in expected_counts(settings, arrivals):
        entered = elements(settings, counts)
        unit = noise_variances(even, entered) / settings.resolution**2  # for a block's whole range, at even shares
        columns = zip((entered * sizes).tolist(), unit.tolist(), sizes, reach, strict=True)
        late.append([(level, held**2, held / 4, *rest) for level, (held, *rest) in enumerate(columns) if held])

    def square(logs: Any) -> float:
        """The logarithm of the mean square error."""
        scale = np.exp(logs - logs.max())
        spent, total = [each**power for each in (scale * len(scale) / scale.sum()).tolist()], 0.0
        for entering in late:
            precision = 0.0
            for level, held2, quarter, unit, size, near in entering:
                off = 2 * size / math.sqrt(precision) if precision else math.inf
                width = 2 * (near + deviations * off) / size
                precision += held2 / ((unit * width**2 if width < 1 else unit) / spent[level] + quarter)
            total += 1 / precision
        return math.log(total)

    levels, typical = np.arange(len(sizes)), math.log2(max(1.0, settings.max_steps / settings.n_users))
    starts = (np.where(levels < typical, levels / 3, typical / 3 - (levels - typical)), 0.3 * levels, np.zeros(len(sizes)))
    found = [minimize(square, math.log(2) * start, method="L-BFGS-B", bounds=[(-12, 12)] * len(sizes)) for start in starts]
    best = min(found, key=lambda one: float(one.fun)).x
    shares = np.exp(best - best.max())
    return _normal(shares / shares.sum())


def users_alike(
    n_users: int,
    samples_per_user: int,
    epsilon: float,
    delta: float = 0.0,
    arrivals: ArrayLike | None = None,
    **options: Any,
) -> UserMean:
    """For samples that are independent with one mean, whoever sends them, and for no others.

    Blocks of a user's samples, projected on intervals around what the shorter blocks say, and levels weighted by precision:
    the less noise the less a sample weighs.  Users who differ from each other have blocks outside the intervals, and the
    mean is then off by many times its standard error; `Release.bias` is the whole range.
    """
    chosen: dict[str, Any] = {
        "prior": "bootstrap",
        "exact_start": True,
        "capped": True,
        "weights": "precision",
        "clip": True,
    }
    settings = UserMean(n_users, samples_per_user, epsilon, **chosen | _best(delta, options) | options)
    return settings if settings.shares else settings.but(shares=shares_for(settings, arrivals))
