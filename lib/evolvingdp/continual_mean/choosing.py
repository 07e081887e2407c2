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

from evolvingdp.continual_mean.prefix_sums import LEAST_DECAY, Tree
from evolvingdp.continual_mean.settings import Array, Integers, Settings, by_user, numbered, ranks
from evolvingdp.continual_mean.user_mean import UserMean, allowed_of, groups
from evolvingdp.core import checks
from evolvingdp.core.seeds import stream

_PARTS, _STEPS = 12, 150  # of the later half of the horizon, where the error counts, and moments about the end of each
_DECAYS = (0, 1, 2, 4, 16, 32, 64, 128)  # of filters: by how many powers of e over the stream
_FEW, _MANY = 200, 4000  # about so many users are looked at for batch and decay, and for cap or reach; of more
_BATCHES = 1 << 15  # at most that are tried: with as many, what waits is a 30,000th of the stream
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
    those with the least late error, noise and bias, as it will be stated (see above); a batch is a tenth of it at most.

    `arrivals` (T,): users by number in a stream like the one to come, or in that one, should it be known.  Samples beyond
    cap or reach are dropped and counted; `Release.bias` says what that, and samples that wait, can do.  With
    `excess="error"` they are refused, the cap is `samples_per_user` and the batch 1, unless given.
    """
    checks.integer_at_least(1, n_users=n_users, samples_per_user=samples_per_user)
    checks.finite(delta=delta)
    chosen: dict[str, Any] = ({"delta": delta} if delta else {"integer": True}) | {"excess": "drop", "clip": True} | options
    chosen["horizon"] = chosen.get("horizon") or n_users * samples_per_user
    draft = UserMean(n_users, samples_per_user, epsilon, **chosen)
    if draft.excess == "error":
        return draft
    found = searched(draft, arrivals, options)
    if delta and options.keys().isdisjoint(("decay", "reach")):  # where users weigh much
        found = min(found, searched(draft.but(delta=0.0, integer=True), arrivals, options), key=lambda each: each[1])
    return found[0]


@checks.plain
def users_alike(
    n_users: int,
    samples_per_user: int,
    epsilon: float,
    delta: float = 0.0,
    arrivals: ArrayLike | None = None,
    **options: Any,
) -> UserMean:
    """The mean of a few samples of each user, where samples are independent, of each other and of who
    sends when, with one mean.

    Then those that are not in the sum are not missed: `recommended`, with its options, for the standard error alone.  The
    cap is low, and the batch up to a tenth of the horizon, when the first release comes; `batch` brings it forward.  Nothing
    that is released shows whether users are alike; `Release.bias` is what it can be if they are not.
    """
    return recommended(n_users, samples_per_user, epsilon, delta, arrivals, **{"alike": True} | options)


def searched(draft: UserMean, arrivals: ArrayLike | None, options: dict[str, Any]) -> Fitted:
    """The best settings like `draft`, apart from given `options`, and their late error: a batch of all sizes, with delta a
    decay, and a batch near it, each with the best cap or reach for it."""
    most, given, decays = draft.max_steps, "batch" in options, draft.delta > 0 and "decay" not in options
    few, many = (_looked(draft, arrivals, users) for users in (_FEW, _MANY))
    if draft.delta:
        draft = draft.but(reach=options.get("reach", 1.0))

    def best(sizes: Array, powers: Sequence[float]) -> tuple[UserMean, float, float]:
        """Also the power: the filter decays by e^-power over the stream."""
        whole = [draft.batch] if given else np.unique(np.clip(np.round(sizes), 1, max(1, most // 10)).astype(int)).tolist()
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
    would be over it from then on.  By the trapezoidal rule: what is out, and noise on average about each moment."""
    last, within = looked.last, looked.rank <= one.samples_per_user
    at, parts = np.ceil(np.linspace(last / 2, last, _PARTS + 1)), np.pad(np.ones(_PARTS - 1), 1, constant_values=0.5)
    steps = np.add.outer(at, np.linspace(-0.25, 0.25, _STEPS) * last / _PARTS).clip(last / 2, last)
    total = (looked.weight * (looked.step <= at[:, None])).sum(axis=1)
    user, step, weight = looked.user[within], looked.step[within], looked.weight[within]
    norm = looked.rank[within].astype(float)
    if one.delta:
        starts, batch, held = groups(one, user, step)
        user, step, weight = user[starts], step[starts], weight[starts] * held
        norm = np.sqrt(allowed_of(one, user, batch, held, math.inf)[1])
    ends = np.append(user[1:] != user[:-1], True)
    norms = np.unique(np.quantile(norm[ends], np.append(np.linspace(0, 0.9, 24), np.linspace(0.92, 1, 24))))
    norms = np.append(norms, np.geomspace(max(norm.min(), norms[-1] / 4096), norms[-1], 96))
    norms = np.unique(norms if one.delta else norms.round())
    lengths = np.clip(steps // one.batch, 1, one.sums.capacity).astype(np.int64)
    unit = 2 * one.sums.l1**2 if isinstance(one.sums, Tree) else 1.0  # variance of a draw where norm and budget are 1
    noise = one.sums.relative_variance(lengths).mean(axis=1) * unit / one.budget**2
    order = np.argsort(norm)  # samples within each norm, by each time
    up_to = np.searchsorted(norm[order], norms * (1 + 1e-12), side="right")
    come = weight[order] * (step[order] <= at[:, None])
    kept = np.concatenate([np.zeros((len(at), 1)), np.cumsum(come, axis=1)], axis=1)
    at = at[:, None]
    used = kept[:, up_to] / np.maximum(total, 1e-9)[:, None] * (at - (one.batch - 1) / 2)  # what waits, on average
    over, out = used if one.alike else at, at - used
    with np.errstate(divide="ignore", invalid="ignore"):
        squared = noise[:, None] * (norms / over) ** 2 + 0.25 * out / (at * over)
    if not one.alike:
        squared += (out**2 + (one.batch**2 - 1) / 12) / (2 * at) ** 2
    squared = np.average(np.where(used > 0, squared, np.inf), axis=0, weights=parts)
    best, error = norms[int(np.argmin(squared))], math.sqrt(squared.min())
    return (one.but(reach=float(best) * (1 + 1e-9)) if one.delta else one.but(samples_per_user=int(best))), error
