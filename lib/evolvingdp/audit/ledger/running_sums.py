"""Entries of the ledger for running sums: trees and factorizations, of one element of a person and of several; noise at every step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from evolvingdp.audit.exact import sensitivity
from evolvingdp.audit.exact.laws import gaussian_epsilon
from evolvingdp.audit.ledger.entry import FORMULA, SENSITIVITY, SLACK, Entry
from evolvingdp.continual_mean.binary_mechanism import BinaryMechanism
from evolvingdp.continual_mean.per_step import PerStepLaplace
from evolvingdp.continual_mean.prefix_sums import Anytime, BalancedTree, Banded, Buffered, PrefixSums, Toeplitz, Tree
from evolvingdp.continual_mean.sums.recorded import RecordedSums
from evolvingdp.continual_mean.sums.trees import BLOCK
from evolvingdp.core import accounting
from evolvingdp.core.noise import DiscreteGaussian

EPSILON, DELTA = 0.7, 1e-6  # no epsilon is 1: its inverse would be the same
_ELEMENT = ("an element", "change by at most 1")


def entry(
    id: str, name: str, covers: tuple[Any, ...], how: str, promised: float, measure: Any, delta: float = 0.0, who: tuple[str, str] = ("all samples of a user", "any two of them; arrivals public"),
) -> Entry:  # fmt: skip
    return Entry(id, "continual_mean", name, covers, *who, how, promised, measure, delta)


def entries() -> Iterator[Entry]:

    def loss(**options: Any) -> float:
        """Of elements that change by 1, and by 3 at another budget, whose share is what it is of its own promise."""
        made = [BinaryMechanism(8, EPSILON, **options)]
        made.append(replace(made[0], epsilon=1.7, sensitivity=3.0, delta=10 * made[0].delta))
        shares = []
        for mechanism in made:
            cost = sensitivity.binary_cost(mechanism, mechanism.horizon)
            shares.append((gaussian_epsilon(cost, mechanism.delta) if mechanism.delta else cost) / mechanism.epsilon)
        return EPSILON * (sum(shares) / 2 if max(shares) <= 1 + SLACK else math.inf)

    for id, name, options in (
        ("binary", "BinaryMechanism", {}),
        ("binary_integer", "BinaryMechanism, integer noise", {"integer": True}),
        ("binary_gaussian", "BinaryMechanism, Gaussian noise", {"delta": DELTA}),
    ):  # fmt: skip
        yield entry(
            id, name, (BinaryMechanism,), SENSITIVITY, EPSILON, partial(loss, **options),
            options.get("delta", 0.0), _ELEMENT,
        )  # fmt: skip
    close = ("up to 3 elements of a person", "each changes by at most 1")
    for id, name, options,  in (
        ("binary_several", "BinaryMechanism, several elements of a person", {}),
        ("binary_several_gaussian", "BinaryMechanism, several elements of a person, Gaussian", {"delta": DELTA}),
    ):  # fmt: skip
        yield entry(
            id, name, (BinaryMechanism, Tree), SENSITIVITY, EPSILON, partial(loss, uses=3, **options),
            options.get("delta", 0.0), close,
        )  # fmt: skip
    apart = ((2, 3, 3), (3, 2, 5), (3, 3, 2), (2, 2, 4))  # branching, uses and gap
    yield entry(
        "binary_apart", "BinaryMechanism, elements apart, four settings, Gaussian", (BinaryMechanism, Tree),
        SENSITIVITY, 4 * EPSILON,
        lambda: sum(loss(delta=DELTA, uses=uses, gap=gap, sums=Tree(8, base)) for base, uses, gap in apart),
        DELTA, close,
    )  # fmt: skip
    several = ("up to 3 elements of a person", "each changes by at most 1; at least 3 steps apart")
    factorizations: tuple[tuple[str, str, Callable[[int], PrefixSums], tuple[str, str]], ...] = (
        ("toeplitz", "square-root factorization", Toeplitz, _ELEMENT),
        ("buffered", "buffered factorization", Buffered, _ELEMENT),
        ("anytime_one", "factorization without an end, one element of a person", lambda steps: Anytime(), _ELEMENT),
        ("banded", "banded factorization", lambda steps: Banded(steps, 3), several),
        ("banded_best", "banded factorization, optimized", lambda steps: Banded(steps, 3, True), several),
        ("anytime", "factorization without an end", lambda steps: Anytime(), several),
        ("toeplitz_several", "square-root factorization, several elements of a person", Toeplitz, several),
        (
            "buffered_several",
            "buffered factorization, several elements of a person",
            lambda steps: Buffered(steps, 5),
            several,
        ),
    )
    for id, name, make, who in factorizations:
        uses: dict[str, Any] = {"uses": 3, "gap": 3} if who is several else {}
        yield entry(
            id, name, (BinaryMechanism, type(make(8))), SENSITIVITY, EPSILON,
            lambda make=make, uses=uses: loss(delta=DELTA, sums=make(8), **uses),
            DELTA, who,
        )  # fmt: skip

    for id, name, make, _ in factorizations[:2] + factorizations[5:6]:
        yield entry(
            f"{id}_long", f"{name}, more than a block of steps", (BinaryMechanism, type(make(8))), SENSITIVITY, EPSILON,
            lambda make=make: gaussian_epsilon(sensitivity.long_cost(
                BinaryMechanism(BLOCK + 2, EPSILON, delta=DELTA, sums=make(BLOCK + 2))), DELTA),
            DELTA, _ELEMENT,
        )  # fmt: skip

    def whole() -> float:
        return sensitivity.discrete_gaussian_epsilon(BinaryMechanism(8, EPSILON, delta=DELTA, integer=True))

    yield Entry(
        "binary_discrete_gaussian", "continual_mean", "BinaryMechanism, discrete Gaussian noise",
        (BinaryMechanism, DiscreteGaussian, accounting.concentrated_rho), *_ELEMENT, FORMULA, EPSILON, whole,
        DELTA, sampler_test="test_discrete_gaussian_has_its_law",
    )  # fmt: skip
    yield entry(
        "balanced", "tree with negative digits", (BinaryMechanism, BalancedTree), SENSITIVITY, EPSILON,
        lambda: sensitivity.balanced_cost(BinaryMechanism(12, EPSILON, sums=BalancedTree(12, 5))),
        0.0, _ELEMENT,
    )  # fmt: skip
    yield entry(
        "balanced_deep", "tree with negative digits, of more levels", (BinaryMechanism, BalancedTree), SENSITIVITY, 2 * EPSILON,
        lambda: sum(
            sensitivity.balanced_cost(BinaryMechanism(count, EPSILON, sums=BalancedTree(count, base)))
            for count, base in ((20, 3), (40, 4))
        ),
        0.0, _ELEMENT,
    )  # fmt: skip
    yield entry(
        "recorded", "consistent tree of a recorded stream", (RecordedSums,), SENSITIVITY, EPSILON + 1.7,
        lambda: sensitivity.recorded_cost(RecordedSums(11, EPSILON, branching=3))
        + 3 * sensitivity.recorded_cost(RecordedSums(7, 1.7, 3.0, branching=2)),
        0.0, _ELEMENT,
    )  # fmt: skip
    yield from _every_step()


def _every_step() -> Iterator[Entry]:
    always, mixed = np.zeros(8, dtype=int), np.array([0, 0, 0, 7, 7, 2**40, 7, 0])  # one user sends everything, or does not
    for split in ("even", "harmonic"):
        yield entry(
            f"per_step_{split}", f"noise at every step, {split} shares", (PerStepLaplace,), SENSITIVITY, EPSILON,
            lambda split=split: sensitivity.per_step_cost(PerStepLaplace(8, EPSILON, split), always),
        )  # fmt: skip
    yield entry(
        "per_step_several", "noise at every step, several users", (PerStepLaplace,), SENSITIVITY, EPSILON,
        lambda: sensitivity.per_step_cost(PerStepLaplace(8, EPSILON), mixed),
    )  # fmt: skip
