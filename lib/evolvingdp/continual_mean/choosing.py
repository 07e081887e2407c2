"""The default, and what it is chosen by: the error that a release would state, computed beforehand from what is public.

**Computes** for a `UserMean` the stated error at later times: the noise's standard deviation and the bias that dropped and
waiting samples can make, from when users send.  That is known where arrivals are; otherwise it is taken to be that of
`horizon` steps in random order: the choice is only good for such arrivals, what the release states then holds for all.

**Guarantee.** That of `UserMean`: neighbours have the same arrivals, so that a choice made from arrivals costs nothing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from evolvingdp.continual_mean.blocks import DEVIATIONS, Blocks
from evolvingdp.continual_mean.prefix_sums import LEAST_DECAY, PrefixSums, Tree
from evolvingdp.continual_mean.settings import Array, Integers, Settings, by_user, numbered, ranks
from evolvingdp.continual_mean.user_mean import UserMean, allowed_of, groups
from evolvingdp.core import checks
from evolvingdp.core.seeds import stream

_LATE = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # of the horizon: where the error counts
_DECAYS = (0, 1, 2, 4, 16, 32, 64, 128)  # of filters: by how many powers of e over the stream
_FEW, _MANY = 200, 4000  # about so many users are looked at for batch and decay, and for cap or reach; of more
_BATCHES = 1 << 15  # at most that are tried: with as many, what waits is a 30,000th of the stream
_LEAST = 0.1  # of an even share: what a level has at least before shares are made to sum to one, also if it may never open
FLOOR = _LEAST / (1 + _LEAST) * (1 - 1e-9)  # of an even share: what no level has less than, but for rounding
Fitted = tuple[UserMean, float]  # and its late error


@checks.plain
def recommended(
    n_users: int,
    samples_per_user: int,
    epsilon: float,
    delta: float = 0.0,
    arrivals: ArrayLike | None = None,
    **options: Any,
) -> UserMean:
    """The mean of all readings so far, for any users: every sample weighs the same, and nothing is projected. `options` are
    fields of `UserMean`; samples beyond what is chosen are dropped and releases clipped, unless they say otherwise.

    `samples_per_user`: what nobody shall exceed, and no cap does.  With delta = 0 (discrete Laplace noise on the best tree)
    a cap and a batch are chosen, with delta > 0 (Gaussian noise of eight buffers) a reach, a batch and the filter's decay:
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
    found = _searched(draft, arrivals, options)
    if delta and options.keys().isdisjoint(("decay", "reach")):  # where users weigh much
        found = min(found, _searched(draft.but(delta=0.0, integer=True), arrivals, options), key=lambda each: each[1])
    return found[0]


def _searched(draft: UserMean, arrivals: ArrayLike | None, options: dict[str, Any]) -> Fitted:
    """A batch of all sizes, with delta a decay, and a batch near it, each with the best cap or reach for it."""
    most, given, decays = draft.max_steps, "batch" in options, draft.delta > 0 and "decay" not in options
    few, many = (_looked(draft, arrivals, users) for users in (_FEW, _MANY))
    if draft.delta:
        draft = draft.but(reach=options.get("reach", 1.0))

    def best(sizes: Array, powers: Sequence[float]) -> tuple[UserMean, float, float]:
        """Also the power: the filter decays by e^-power over the stream."""
        whole = [draft.batch] if given else np.unique(np.clip(np.round(sizes), 1, most).astype(int)).tolist()
        made = []
        for size, power in itertools.product(whole, powers):
            decay = max(LEAST_DECAY, math.exp(-power * size / most)) if decays else draft.decay
            made.append((*_fitted(draft.but(batch=size, decay=decay), few), power))
        return min(made, key=lambda each: each[1])

    one, error, power = best(np.geomspace(max(1, most // _BATCHES), max(1, most // 20), 10), [8])
    if decays:
        one, error, power = best(np.array([one.batch]), [power, *_DECAYS])
    if not given:
        one, error, power = best(one.batch * np.geomspace(0.5, 2, 7), [power])
    one, error = _fitted(one.but(samples_per_user=draft.samples_per_user), many)
    return one.but(reach=options.get("reach", one.reach)), error


class _Looked(NamedTuple):
    """Samples of some users, sorted by user, then step; each stands for `weight` of all."""

    user: Integers
    step: Integers
    rank: Integers  # which of its user's samples it is, from 1
    weight: Array
    last: int  # step that is looked at last


def _looked(settings: Settings, arrivals: ArrayLike | None, users: int) -> _Looked:
    """About so many `users`, the more probably the more they send; without arrivals users in random order, drawn once for
    all."""
    if arrivals is None:
        n_users, cap = min(settings.n_users, users), settings.samples_per_user
        rng, places = stream(0, "users in random order"), settings.n_users * settings.samples_per_user
        counts = rng.binomial(cap, min(1.0, settings.max_steps / places), n_users)
        user, weight = np.repeat(np.arange(n_users), counts), settings.n_users / n_users
        step = 1 + (rng.random(len(user)) * settings.max_steps).astype(np.int64)
        user, step = by_user(user, step)
        return _Looked(user, step, ranks(user), np.full(len(user), weight), settings.max_steps)
    given = np.asarray(arrivals)
    if given.ndim != 1 or given.dtype.kind not in "iu" or not len(given):
        raise TypeError(f"arrivals must be integers, one a step, got {given.dtype} {given.shape}")
    who = numbered(given[: settings.max_steps])
    counts = np.bincount(who)
    chance = np.minimum(1.0, counts * (users / len(who)))
    taken = np.diff(np.floor(np.cumsum(chance)), prepend=0.0) >= 1 - 1e-9
    taken |= chance >= 1
    mine = np.flatnonzero(taken[who])
    user, step = by_user(who[mine], mine + 1)
    return _Looked(user, step, ranks(user), 1 / chance[user], len(who))


def _fitted(one: UserMean, looked: _Looked) -> Fitted:
    """The cap, at most that of `one`, with delta the reach, with the least late error, over the range: as if who is over it
    would be over it from then on.  Trees' variances, which go up and down, are averaged over the tenth before."""
    at = np.array([math.ceil(part * looked.last) for part in _LATE])
    total = (looked.weight * (looked.step <= at[:, None])).sum(axis=1)
    within = looked.rank <= one.samples_per_user
    user, step, weight = looked.user[within], looked.step[within], looked.weight[within]
    norm = looked.rank[within].astype(float)
    if one.delta:
        starts, batch, held = groups(one, user, step)
        user, step, weight = user[starts], step[starts], weight[starts] * held
        norm = np.sqrt(allowed_of(one, user, batch, held, math.inf)[1])
    ends = np.append(user[1:] != user[:-1], True)
    norms = np.unique(np.quantile(norm[ends], np.append(np.linspace(0, 0.9, 24), np.linspace(0.92, 1, 24))))
    if not one.delta:
        norms = np.unique(np.append(norms, np.geomspace(1, norms[-1], 24)).round())
    lengths = np.clip(np.multiply.outer(at // one.batch, np.linspace(0.9, 1, 32)), 1, one.sums.capacity).astype(np.int64)
    unit = 2 * one.sums.l1**2 if isinstance(one.sums, Tree) else 1.0  # variance of a draw where norm and budget are 1
    noise = one.sums.relative_variance(lengths).mean(axis=1) * unit / one.budget**2
    order = np.argsort(norm)  # samples within each norm, by each time
    up_to = np.searchsorted(norm[order], norms * (1 + 1e-12), side="right")
    come = weight[order] * (step[order] <= at[:, None])
    kept = np.concatenate([np.zeros((len(at), 1)), np.cumsum(come, axis=1)], axis=1)
    used = kept[:, up_to] / np.maximum(total, 1e-9)[:, None] * (at - (one.batch - 1) / 2)[:, None]  # what waits, on average
    out = (at[:, None] - used) ** 2 + (one.batch**2 - 1) / 12
    squared = np.where(used > 0, (noise[:, None] * norms**2 + out / 4) / at[:, None] ** 2, np.inf).mean(axis=0)
    best, error = norms[int(np.argmin(squared))], math.sqrt(squared.min())
    return (one.but(reach=float(best) * (1 + 1e-9)) if one.delta else one.but(samples_per_user=int(best))), error


def _relative(sums: PrefixSums, last: int) -> float:
    """The variance of a sum of `last` elements in units of a draw's, averaged over the tenth before."""
    return float(np.mean(sums.relative_variance(np.unique(np.linspace(max(1, 0.9 * last), last, 32).astype(int)))))


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
    late, even = [], settings.but(shares=())
    sums, looked = even.prefix_sums(even.capacity), _looked(settings, arrivals, _MANY)
    unit = [even.noise(level, sums, float(size)).variance for level, size in enumerate(sizes)]  # for its whole range
    ends = looked.rank & (looked.rank - 1) == 0  # of blocks, of the level `of`
    of = np.frexp(looked.rank[ends])[1] - 1
    for part in _LATE:
        entering, come = [], looked.weight * (looked.step <= part * looked.last)
        filled = np.bincount(of, come[ends], len(sizes))
        for level, (size, near) in enumerate(zip(sizes, reach, strict=True)):
            if entered := float(filled[level]):
                last = min(max(round(entered), 1), sums.capacity)
                variance = _relative(sums, last) * unit[level] * min(entered, 1.0)
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
                width = 2 * (near + DEVIATIONS * off) / size
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
