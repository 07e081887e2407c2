"""What the private medians of a continual mean tell, all that their draws can lead to followed."""

from __future__ import annotations

import itertools
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.audit.exact.draws import loss_of
from evolvingdp.continual_mean import offline, online, streams
from evolvingdp.continual_mean.user_mean import Interval, UserMean
from evolvingdp.core.seeds import stream

Array = NDArray[np.float64]


class _Silent:
    """A generator without noise, but for the uniform numbers that place medians: `follow` has these."""

    def __init__(self, follow: Any) -> None:
        self.random = follow.random

    def spawn(self, count: int) -> list[_Silent]:
        return [self] * count

    def laplace(self, loc: float, scale: float, size: int) -> Array:
        return np.zeros(size)


class _Prior(UserMean):
    """Its intervals are nothing but their priors."""

    def interval(self, level: int, prior: float) -> Interval:
        return Interval(prior, prior)  # type: ignore[arg-type]


def median_loss(settings: UserMean, order: str = "random") -> float:
    """Of what private medians say, all at once and step by step: between any samples of the first user."""
    each = settings.samples_per_user
    priors = _Prior(**{one.name: getattr(settings, one.name) for one in fields(settings)})
    users = streams.arrivals(order, settings.n_users, each, settings.n_users * each, stream(0, "order"))
    own = np.flatnonzero(users == 0)
    read = own[: settings.sizes[-1]]  # no median reads more of a user
    patterns = list(itertools.product((0, 1), repeat=len(read)))
    if len(read) > 4:  # ones, then zeros, and the other way round
        patterns = [tuple((np.arange(len(read)) < ones) ^ turned) for ones in range(len(read)) for turned in (0, 1)]
    inputs = np.tile(streams.bits(0.5, len(users), stream(0, "neighbours")), (len(patterns) + 2, 1))
    inputs[:-2, read] = patterns
    inputs[-2:, own] = [[0] * len(own), [1] * len(own)]

    def at_once(samples: Array, follow: Any) -> Any:
        return [tree.priors for tree in offline.exposed(settings, users, samples, _Silent(follow))]  # type: ignore[arg-type]

    def steps(samples: Array, follow: Any) -> Any:
        state = online.start(priors, _Silent(follow))  # type: ignore[arg-type]
        for user, sample in zip(users.tolist(), samples.tolist(), strict=True):
            state, _ = online.step(priors, state, user, sample)
        return state.intervals

    return max(loss_of(shown, inputs) for shown in (at_once, steps))
