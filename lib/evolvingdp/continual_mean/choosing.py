"""The default, and what it is chosen by: the error that a release would state, computed beforehand from what is public.

**Computes** for a `UserMean` the stated error at later times: the noise's standard deviation and the bias that dropped and
waiting samples can make, from when users send.  That is known where arrivals are; otherwise it is taken to be that of
`horizon` steps in random order: the choice is only good for such arrivals, what the release states then holds for all.

**Guarantee.** That of `UserMean`: neighbours have the same arrivals, so that a choice made from arrivals costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from evolvingdp.continual_mean.blocks import Blocks
from evolvingdp.continual_mean.prefix_sums import LEAST_DECAY, PrefixSums
from evolvingdp.continual_mean.settings import Array, Integers, by_user
from evolvingdp.continual_mean.user_mean import UserMean, allowed_of, groups
from evolvingdp.core import checks
from evolvingdp.core.seeds import stream

_LATE = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # of the horizon: where the error counts
_DECAYS = (0, 1, 2, 4, 16, 32, 64, 128)  # of filters: by how many powers of e over the stream
_FEW, _MANY = 300, 4000  # about so many users are looked at for batch and decay, and for the reach; of more
_LEAST = 0.1  # of an even share: what a level has at least before shares are made to sum to one, also if it may never open
FLOOR = _LEAST / (1 + _LEAST) * (1 - 1e-9)  # of an even share: what no level has less than, but for rounding
Times = list[tuple[int, Array]]  # a step, and how many users have sent 0, 1, 2, ... samples by then


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

    `samples_per_user`: what nobody exceeds, as far as is known.  With delta = 0 (discrete Laplace noise on the best tree) a
    cap and a batch are chosen, with delta > 0 (Gaussian noise of eight buffers) a reach, a batch and the filter's decay:
    those with the least late error, noise and bias, as it will be stated (see above).

    `arrivals` (T,): users by number in a stream like the one to come, or in that one, should it be known.  Samples beyond
    cap or reach are dropped and counted; `Release.bias` says what that, and samples that wait, can do.  With
    `excess="error"` they are refused, the cap is `samples_per_user` and the batch 1, unless given.
    """
    chosen: dict[str, Any] = ({"delta": delta} if delta else {"integer": True}) | {"excess": "drop", "clip": True} | options
    chosen["horizon"] = chosen.get("horizon") or n_users * samples_per_user
    draft = UserMean(n_users, samples_per_user, epsilon, **chosen)
    if draft.excess == "error":
        return draft
    if not delta:
        return _with_cap(draft, list(expected_counts(draft, arrivals)), options)[0]
    found = _with_reach(draft, arrivals, options)
    if draft.dimensions == 1 and options.keys().isdisjoint(("decay", "reach")):  # pure, where users are few and weigh much
        pure = draft.but(delta=0.0, integer=True)
        found = min(found, _with_cap(pure, list(expected_counts(pure, arrivals)), options), key=lambda each: each[1])
    return found[0]


def _with_cap(draft: UserMean, times: Times, options: dict[str, Any]) -> tuple[UserMean, float]:
    """A cap, then batches and caps in turns, the batch for the cap and the cap for the batch, as long as a turn takes a
    fiftieth of the error; and that error.
    """
    most = draft.samples_per_user

    def capped(one: UserMean) -> UserMean:
        return one.but(samples_per_user=_least(lambda cap: late_error(one.but(samples_per_user=cap), times), most))

    def turned(best: UserMean, sizes: Array) -> UserMean:
        made = [best.but(batch=size) for size in _sizes(sizes, best.max_steps)]
        return capped(min(made, key=lambda settings: late_error(settings, times)))

    best = capped(draft)
    if "batch" not in options:
        best, gains = turned(best, np.geomspace(1, max(1, best.max_steps // 20), 16)), True
        while gains:
            after = turned(best, np.geomspace(0.5, 2, 9) * best.batch)
            error, before = late_error(after, times), late_error(best, times)
            best, gains = min(best, after, key=lambda one: late_error(one, times)), error < 0.98 * before
    return best, late_error(best, times)


def _sizes(sizes: Array, most: int) -> list[int]:
    """Whole numbers from 1 to `most`."""
    found: list[int] = np.unique(np.clip(sizes.round(), 1, most).astype(int)).tolist()
    return found


def _least(error: Any, most: int) -> int:
    """The cap with the least error: on a grid of equal ratios, and around its best."""
    caps = np.unique(np.geomspace(1, most, 24).round().astype(int)).tolist()
    best = caps.index(min(caps, key=error))
    low, high = caps[max(best - 1, 0)], caps[min(best + 1, len(caps) - 1)]
    return int(min(np.unique(np.linspace(low, high, 16).round().astype(int)).tolist(), key=error))


class _Looked(NamedTuple):
    """Samples of some users, sorted by user, then step; each stands for `weight` of all."""

    user: Integers
    step: Integers
    weight: Array


def _with_reach(draft: UserMean, arrivals: ArrayLike | None, options: dict[str, Any]) -> tuple[UserMean, float]:
    """Batch, decay and reach with the least error near each other, and that error."""
    few, many = (_looked(draft, arrivals, users) for users in (_FEW, _MANY))
    most = draft.max_steps
    at = [math.ceil(part * most) for part in _LATE]
    batches = np.array([draft.batch]) if "batch" in options else np.geomspace(1, max(1, most // 20), 10)

    def best(made: list[UserMean], looked: _Looked = few) -> tuple[UserMean, float]:
        tried = [(one, *_least_reach(one, looked, at)) for one in made]
        one, reach, error = min(tried, key=lambda each: each[2])
        return one.but(reach=options.get("reach", reach)), error

    def of(size: int, power: float) -> UserMean:
        """The filter decays by e^-power over the stream."""
        decay = {} if "decay" in options else {"decay": max(LEAST_DECAY, math.exp(-power * size / most))}
        return draft.but(batch=size, **decay)

    found = best([of(size, 8) for size in _sizes(batches, most)])
    found = best([found[0], *(of(found[0].batch, power) for power in _DECAYS)])
    if "batch" not in options:
        power = -math.log(found[0].decay) * most / found[0].batch
        found = best([of(size, power) for size in _sizes(found[0].batch * np.geomspace(0.5, 2, 7), most)])
    return best([found[0]], many)


def _looked(settings: UserMean, arrivals: ArrayLike | None, users: int) -> _Looked:
    """About so many `users`, the more probably the more they send; without arrivals users in random order, drawn once for
    all."""
    if arrivals is None:
        n_users, cap = min(settings.n_users, users), settings.samples_per_user
        rng, places = stream(0, "users in random order"), settings.n_users * settings.samples_per_user
        counts = rng.binomial(cap, min(1.0, settings.max_steps / places), n_users)
        user, weight = np.repeat(np.arange(n_users), counts), settings.n_users / n_users
        step = 1 + (rng.random(len(user)) * settings.max_steps).astype(np.int64)
        user, step, _ = by_user(user, step)
        return _Looked(user, step, np.full(len(user), weight))
    who = _numbered(arrivals)[: settings.max_steps]
    counts = np.bincount(who)
    chance = np.minimum(1.0, counts * (users / len(who)))
    taken = np.diff(np.floor(np.cumsum(chance)), prepend=0.0) >= 1 - 1e-9
    taken |= chance >= 1
    mine = np.flatnonzero(taken[who])
    user, step, _ = by_user(who[mine], mine + 1)
    return _Looked(user, step, 1 / chance[user])


def _numbered(arrivals: ArrayLike) -> Integers:
    """Users by small numbers; raises TypeError."""
    users = np.asarray(arrivals)
    if users.ndim != 1 or users.dtype.kind not in "iu" or not len(users):
        raise TypeError(f"arrivals must be integers, one a step, got {users.dtype} {users.shape}")
    if not 0 <= users.min() <= users.max() <= 10**6 + 8 * len(users):  # too far apart to be counted
        _, users = np.unique(users, return_inverse=True)
    return users.astype(np.int64, copy=False)


def _least_reach(settings: UserMean, looked: _Looked, at: list[int]) -> tuple[float, float]:
    """The reach with the least late error, and that error: as if who is over it would be over it from then on."""
    starts, held = groups(settings, looked.user, looked.step)
    step, weight = looked.step[starts], looked.weight[starts] * held
    _, squares = allowed_of(settings, looked.user[starts], (step - 1) // settings.batch + 1, held, math.inf)
    ends = np.append(looked.user[starts][1:] != looked.user[starts][:-1], True)
    norms = np.unique(np.quantile(np.sqrt(squares[ends]), np.append(np.linspace(0, 0.9, 24), np.linspace(0.92, 1, 24))))
    elements = np.array([max(1, min(step // settings.batch, settings.sums.capacity)) for step in at])
    noise = settings.sums.relative_variance(elements) / settings.budget**2
    times, waiting = np.array(at, dtype=float), (settings.batch - 1) / 2  # on average
    arrived = np.array([weight[step <= time].sum() for time in at])
    errors = []
    for norm in norms:
        within = weight * (squares <= norm**2 * (1 + 1e-12))
        kept = np.array([within[step <= time].sum() for time in at]) / np.maximum(arrived, 1e-9)
        used = kept * (times - waiting)
        out = (times - used) ** 2 + (settings.batch**2 - 1) / 12
        errors.append(float(np.mean(np.where(used > 0, (noise * norm**2 + out / 4) / times**2, np.inf))))
    best = int(np.argmin(errors))
    return float(norms[best]) * (1 + 1e-9), math.sqrt(errors[best])


def expected_counts(settings: UserMean | Blocks, arrivals: ArrayLike | None = None) -> Iterator[tuple[int, Array]]:
    """Late times, `_LATE` of the horizon, and how many users have sent 0, 1, 2, ... samples by then.

    As in `arrivals`, or in random order.
    """
    if arrivals is not None:
        users = _numbered(arrivals)
        ever = np.bincount(users) > 0
        for part in _LATE:
            steps = math.ceil(part * len(users))
            sent = np.bincount(users[:steps])
            yield steps, np.bincount(sent[ever[: len(sent)]]).astype(float)
        return
    from scipy.stats import binom  # half a second, which nobody waits for who knows the arrivals

    most, places = settings.samples_per_user, settings.n_users * settings.samples_per_user
    horizon = min(settings.max_steps, places)
    for part in _LATE:
        steps = math.ceil(part * horizon)
        mean = steps / settings.n_users
        away = 12 * math.sqrt(mean) + 24  # beyond it there is nobody
        first, last = max(0, math.floor(mean - away)), min(most, math.ceil(mean + away))
        rarely = settings.n_users * binom.pmf(np.arange(first, last + 1), most, steps / places)
        yield steps, np.concatenate([np.zeros(first), rarely])


def late_error(settings: UserMean, times: Times) -> float:
    """Root mean square of what would be stated at `times`: standard error and possible bias, over the range of samples.

    As if nobody were beyond `reach`.  Trees' variances, which go up and down, are averaged over the tenth before, and how
    many samples of a batch wait over what it can be.
    """
    squares, node = [], settings.noise.variance / settings.resolution**2
    for steps, counts in times:
        kept = min(float(counts @ np.minimum(np.arange(len(counts)), settings.samples_per_user)), steps)
        waiting = (settings.batch - 1) / 2  # on average
        if not kept > waiting:
            return math.inf
        used = kept - waiting
        noise = node * _relative(
            settings.sums, min(max(steps // settings.batch, 1), settings.sums.capacity), not settings.delta
        )
        squares.append((noise + ((steps - used) ** 2 + (settings.batch**2 - 1) / 12) / 4) / steps**2)
    return math.sqrt(float(np.mean(squares)))


@lru_cache(maxsize=1 << 13)  # settings that are compared have trees in common
def _relative(sums: PrefixSums, last: int, averaged: bool) -> float:
    """The variance of a sum of `last` elements in units of a draw's, also `averaged` over the tenth before."""
    lengths = np.unique(np.linspace(max(1, 0.9 * last), last, 32).astype(int)) if averaged else [last]
    return float(np.mean(sums.relative_variance(lengths)))


def _normal(shares: Array) -> tuple[float, ...]:
    """Shares that sum to one, each at least `_LEAST` of an even one."""
    raised = np.maximum(shares, _LEAST / len(shares))
    return tuple((raised / raised.sum()).tolist())


def shares_for(settings: Blocks, arrivals: ArrayLike | None = None) -> tuple[float, ...]:
    """Budget shares for levels that are weighted by precision: those with the least stated late error.

    A level's c samples with noise variance V add c^2 / (V + c/4) to the estimate's precision; noise is for the interval that
    the levels below allow when they are half as precise.  Any shares are private: this is a choice of utility.
    """
    sizes, reach, power = settings.sizes, settings._concentration, 1 if settings.delta else 2
    late, even, deviations = [], settings.but(shares=()), settings.prior_deviations
    made = [even.prefix_sums(even.capacity_of(level)) for level in range(len(sizes))]
    unit = [even.noise(level, sums, float(sizes[level])).variance for level, sums in enumerate(made)]  # for its whole range
    for _, counts in expected_counts(settings, arrivals):
        entering = []
        for level, (sums, size, near) in enumerate(zip(made, sizes, reach, strict=True)):
            if entered := float(counts[1 << level :].sum()):
                last = min(max(round(entered), 1), sums.capacity)
                variance = _relative(sums, last, not settings.delta) * unit[level] * min(entered, 1.0)
                entering.append((level, (entered * size) ** 2, entered * size / 4, variance, size, near))
        late.append(entering)

    def square(logs: Any) -> float:
        """The logarithm of the mean square error."""
        scale = np.exp(logs - logs.max())
        spent, total = [each**power for each in (scale * len(scale) / scale.sum()).tolist()], 0.0
        for entering in late:
            precision = 0.0
            for level, held2, quarter, noise, size, near in entering:
                off = 2 * size / math.sqrt(precision) if precision else math.inf
                width = 2 * (near + deviations * off) / size
                precision += held2 / ((noise * width**2 if width < 1 else noise) / spent[level] + quarter)
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
) -> Blocks:
    """For samples that are independent with one mean, whoever sends them, and for no others.

    Blocks of a user's samples, projected on intervals around what the shorter blocks say, and levels weighted by precision:
    the less noise the less a sample weighs.  Users who differ from each other have blocks outside the intervals, and the
    mean is then off by many times its standard error; `Release.bias` is the whole range.
    """
    chosen: dict[str, Any] = {"kind": "alike", "branching": 0, "clip": True, "integer": not delta}
    settings = Blocks(n_users, samples_per_user, epsilon, delta, **chosen | options)
    return settings if settings.shares else settings.but(shares=shares_for(settings, arrivals))
