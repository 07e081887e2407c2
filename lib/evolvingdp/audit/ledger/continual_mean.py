"""Entries of the ledger for running sums and means of users who come back."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from evolvingdp.audit.exact import sensitivity
from evolvingdp.audit.exact.laws import composed_epsilon, gaussian_epsilon
from evolvingdp.audit.ledger.entry import EXACT, SENSITIVITY, Entry
from evolvingdp.continual_mean import algorithms, choosing, coordinates, offline, online, private_median
from evolvingdp.continual_mean.binary_mechanism import BinaryMechanism
from evolvingdp.continual_mean.per_step import PerStepLaplace
from evolvingdp.continual_mean.prefix_sums import BalancedTree, Buffered, Toeplitz
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core.noise import Gaussian, Laplace

_EPSILON, _DELTA = 1.0, 1e-6
_CHAPTER, _USER = "continual_mean", "all samples of a user"
_ALL = "any two of them; arrivals public"
_LESS = "10 % less noise"


def entries() -> Iterator[Entry]:
    yield from _running_sums()
    yield from _user_means()
    yield from _for_any_users()
    yield from _others()


@dataclass(frozen=True)
class _OneShort(BinaryMechanism):
    """The mutant: noise for a stream that is one element shorter."""

    @property
    def noise(self) -> Any:
        return BinaryMechanism(self.horizon - 1, self.epsilon, delta=self.delta, integer=self.integer).noise


@dataclass(frozen=True)
class _Less(BinaryMechanism):
    """The mutant: nine tenths of the noise."""

    @property
    def noise(self) -> Any:
        return Gaussian(0.9 * super().noise.variance ** 0.5)


def _running_sums() -> Iterator[Entry]:
    def loss(mechanism: BinaryMechanism) -> float:
        cost = sensitivity.binary_cost(mechanism, mechanism.horizon)
        return gaussian_epsilon(cost, mechanism.delta) if mechanism.delta else cost

    settings: dict[str, tuple[str, dict[str, Any]]] = {
        "binary": ("BinaryMechanism", {}),
        "binary_integer": ("BinaryMechanism, integer noise", {"integer": True}),
        "binary_gaussian": ("BinaryMechanism, Gaussian noise", {"delta": _DELTA}),
    }
    for id, (name, options) in settings.items():
        yield Entry(
            id, _CHAPTER, name, (BinaryMechanism,), "an element", "change by at most 1", SENSITIVITY, _EPSILON,
            partial(loss, BinaryMechanism(8, _EPSILON, **options)), "capacity off by one",
            partial(loss, _OneShort(8, _EPSILON, **options)), options.get("delta", 0.0),
        )  # fmt: skip
    root: dict[str, Any] = {"delta": _DELTA, "sums": Toeplitz(8)}
    yield Entry(
        "toeplitz", _CHAPTER, "square-root factorization", (BinaryMechanism, Toeplitz), "an element", "change by at most 1",
        SENSITIVITY, _EPSILON, partial(loss, BinaryMechanism(8, _EPSILON, **root)),
        _LESS, partial(loss, _Less(8, _EPSILON, **root)), _DELTA,
    )  # fmt: skip


@dataclass(frozen=True)
class _OneSample(UserMean):
    """The mutant: noise for one sample of a user, as if nobody came back."""

    def user_sensitivity(self, tree: int) -> float:
        return 1.0


@dataclass(frozen=True)
class _Narrow(UserMean):
    """The mutant: noise for half of what an interval allows."""

    def noise(self, tree: int, sums: Any, sensitivity: float) -> Any:
        return super().noise(tree, sums, 0.5 * sensitivity)


def _as(kind: type[UserMean], settings: UserMean) -> UserMean:
    return kind(**{name: getattr(settings, name) for name in UserMean.__dataclass_fields__})


def _user_means() -> Iterator[Entry]:
    narrow: dict[str, Any] = {"beta": 0.9, "prior_deviations": 0.2}  # so that intervals are narrow in a stream this short
    few, choose = (4, 4, _EPSILON), choosing.users_alike
    cases: list[tuple[str, str, Any, UserMean]] = [
        ("naive", "Algorithm 2", algorithms.naive, algorithms.naive(*few)),
        ("wishful", "Algorithm 3", algorithms.wishful, algorithms.wishful(*few, 0.4)),
        ("single_tree", "Algorithm 4", algorithms.single_tree, algorithms.single_tree(*few, 0.4)),
        ("multiple_trees", "Algorithm 5", algorithms.multiple_trees, algorithms.multiple_trees(*few, 0.4)),
        ("full", "Algorithm 6", algorithms.full, algorithms.full(4, 8, 1000.0, beta=0.9)),
        ("recommended", "users alike, pure", choose, choose(8, 4, _EPSILON)),
        ("recommended_long", "users alike, narrow intervals", choose, choose(4, 64, 400.0, honaker=True, **narrow)),
        (
            "recommended_fine", "users alike, narrow intervals, fine values",
            choose, choose(4, 64, 400.0, resolution=16, **narrow),
        ),
        (
            "recommended_real", "users alike, narrow intervals, real noise",
            choose, choose(4, 64, 400.0, integer=False, **narrow),
        ),
        ("recommended_gaussian", "users alike, Gaussian", choose, choose(8, 4, _EPSILON, _DELTA)),
    ]  # fmt: skip
    for id, name, make, settings in cases:
        mutant = _Narrow if make is choose else _OneSample
        covers = (UserMean, online.start, online.step, offline.release, make)
        yield Entry(
            f"user_mean_{id}", _CHAPTER, f"UserMean: {name}", covers, _USER, _ALL, SENSITIVITY, settings.epsilon,
            partial(user_mean_epsilon, settings),
            "noise for one sample of a user" if mutant is _OneSample else "noise for half of the interval",
            partial(user_mean_epsilon, _as(mutant, settings)), settings.delta,
        )  # fmt: skip
    all_of_three = choosing.users_alike(8, 4, _EPSILON, integer=False)
    for id, composition_delta in (("basic", 0.0), ("optimal", _DELTA)):

        def loss(dimensions: int, composition_delta: float = composition_delta) -> float:
            one = user_mean_epsilon(coordinates.of_one(all_of_three, 3, composition_delta))
            return composed_epsilon(one, dimensions, composition_delta) if composition_delta else dimensions * one

        yield Entry(
            f"coordinates_{id}", _CHAPTER, f"means of vectors, {id} composition", (coordinates.release, coordinates.of_one),
            _USER, _ALL, SENSITIVITY, _EPSILON, partial(loss, 3), "a coordinate more than is paid for",
            partial(loss, 4), composition_delta,
        )  # fmt: skip


def user_mean_epsilon(settings: UserMean) -> float:
    """What a full stream costs: all trees, and the medians of the levels that wait for one, each at its own epsilon."""
    cost = sensitivity.worst_user_mean_cost(settings, who=(0,))
    if settings.delta:
        return gaussian_epsilon(cost, settings.delta)
    medians = sum(settings.waits_for(level) > 0 for level in range(len(settings.sizes)))
    return cost + medians * settings.median_epsilon


def _for_any_users() -> Iterator[Entry]:
    """What is recommended: several elements of a user in one stream, streams for bands, better running sums."""
    cases: list[tuple[str, str, Any, UserMean]] = [
        ("any_users", "recommended, pure", choosing.recommended, choosing.recommended(4, 4, _EPSILON, excess="error")),
        ("any_users_gaussian", "recommended, Gaussian", choosing.recommended,
         choosing.recommended(4, 4, _EPSILON, _DELTA, excess="error")),
        ("bands", "bands", algorithms.bands, algorithms.bands(4, 4, _EPSILON, branching=3)),
        ("bands_gaussian", "bands, Gaussian", algorithms.bands,
         algorithms.bands(4, 4, _EPSILON, delta=_DELTA, buffered=True)),
    ]  # fmt: skip
    for id, name, make, settings in cases:
        yield Entry(
            f"user_mean_{id}", _CHAPTER, f"UserMean: {name}", (UserMean, online.step, offline.release, make), _USER, _ALL,
            SENSITIVITY, settings.epsilon, partial(user_mean_epsilon, settings), "noise for one sample of a user",
            partial(user_mean_epsilon, _as(_OneSample, settings)), settings.delta,
        )  # fmt: skip
    balanced = BinaryMechanism(12, _EPSILON, sums=BalancedTree(12, 5))
    yield Entry(
        "balanced", _CHAPTER, "tree with negative digits", (BinaryMechanism, BalancedTree), "an element",
        "change by at most 1",
        SENSITIVITY, _EPSILON, partial(sensitivity.balanced_cost, balanced),
        "a level fewer", partial(sensitivity.balanced_cost, _LevelShort(12, _EPSILON, sums=BalancedTree(12, 5))),
    )  # fmt: skip
    buffers: dict[str, Any] = {"delta": _DELTA, "sums": Buffered(8)}
    yield Entry(
        "buffered", _CHAPTER, "buffered factorization", (BinaryMechanism, Buffered), "an element", "change by at most 1",
        SENSITIVITY, _EPSILON, partial(_buffered_epsilon, BinaryMechanism(8, _EPSILON, **buffers)),
        _LESS, partial(_buffered_epsilon, _Less(8, _EPSILON, **buffers)), _DELTA,
    )  # fmt: skip


def _buffered_epsilon(mechanism: BinaryMechanism) -> float:
    return gaussian_epsilon(sensitivity.binary_cost(mechanism, mechanism.horizon), mechanism.delta)


@dataclass(frozen=True)
class _LevelShort(BinaryMechanism):
    """The mutant: noise for one level of the tree fewer."""

    @property
    def noise(self) -> Any:
        levels = self.structure.l1
        return Laplace(super().noise.variance ** 0.5 / 2**0.5 * (levels - 1) / levels)


def _others() -> Iterator[Entry]:
    def median(epsilon: float, level: int = 4) -> float:
        """All ways in which one user, who fills parts of two arrays, can move them between bins."""
        middles, worst = private_median.bins(level), 0.0
        places = list(itertools.product(range(len(middles)), repeat=2))
        for rest in itertools.product((0, len(middles) - 1), repeat=4):
            laws = [np.log(private_median.probabilities(middles[[*rest, *mine]], epsilon, level)) for mine in places]
            worst = max(worst, max(float(np.max(one - other)) for one in laws for other in laws))
        return worst

    yield Entry(
        "private_median", _CHAPTER, "PrivateMedian", (private_median.draw, private_median.probabilities), _USER, _ALL, EXACT,
        0.8, lambda: median(0.8), "a cost that changes by 2 is taken for 1", lambda: median(1.6),
    )  # fmt: skip
    cost, always = sensitivity.per_step_cost, np.zeros(8, dtype=int)  # one user sends everything
    for split in ("even", "harmonic"):
        yield Entry(
            f"per_step_{split}", _CHAPTER, f"noise at every step, {split} shares", (PerStepLaplace,), _USER, _ALL,
            SENSITIVITY, _EPSILON, partial(cost, PerStepLaplace(8, _EPSILON, split), always),
            "horizon off by one", partial(cost, _StepShort(8, _EPSILON, split), always),
        )  # fmt: skip


@dataclass(frozen=True)
class _StepShort(PerStepLaplace):
    """The mutant: shares for a stream that is one step shorter."""

    def scale(self, steps: Any, most: Any) -> Any:
        return PerStepLaplace(self.horizon - 1, self.epsilon, self.split).scale(steps, most)
