"""Entries of the ledger for running sums: trees and factorizations, of one element of a person and of several."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from evolvingdp.audit.exact import sensitivity
from evolvingdp.audit.exact.laws import gaussian_epsilon
from evolvingdp.audit.ledger.entry import FORMULA, SENSITIVITY, Entry
from evolvingdp.audit.ledger.mutant import broken
from evolvingdp.continual_mean.binary_mechanism import BinaryMechanism
from evolvingdp.continual_mean.prefix_sums import Anytime, BalancedTree, Banded, Buffered, PrefixSums, Toeplitz, Tree
from evolvingdp.continual_mean.sums.recorded import RecordedSums
from evolvingdp.continual_mean.sums.trees import BLOCK
from evolvingdp.core import accounting
from evolvingdp.core.noise import DiscreteGaussian

EPSILON, DELTA = 1.0, 1e-6
_ELEMENT = ("an element", "change by at most 1")


def entry(
    id: str, name: str, covers: tuple[Any, ...], how: str, promised: float, measure: Any, mutant: str,
    change: tuple[str, str, str], delta: float = 0.0, who: tuple[str, str] = ("all samples of a user", "any two of them; arrivals public"),
) -> Entry:  # fmt: skip
    return Entry(id, "continual_mean", name, covers, *who, how, promised, measure, mutant, broken(measure, *change), delta)


def entries() -> Iterator[Entry]:
    path = "continual_mean/binary_mechanism.py"
    less = (
        path,
        "normal(sums, sensitivity * sums.l2_of(uses, gap)",
        "normal(sums, 0.9 * sensitivity * sums.l2_of(uses, gap)",
    )

    def loss(**options: Any) -> float:
        mechanism = BinaryMechanism(8, EPSILON, **options)
        cost = sensitivity.binary_cost(mechanism, mechanism.horizon)
        return gaussian_epsilon(cost, mechanism.delta) if mechanism.delta else cost

    for id, name, options, mutant, change in (
        ("binary", "BinaryMechanism", {}, "10 % less noise",
         (path, "return DiscreteLaplace(scale) if integer else Laplace(scale)",
          "return DiscreteLaplace(scale) if integer else Laplace(0.9 * scale)")),
        ("binary_integer", "BinaryMechanism, integer noise", {"integer": True}, "sensitivity of a tree that is a level lower",
         (path, "scale = finite_scale(uses * sensitivity * sums.l1, epsilon)",
          "scale = finite_scale(uses * sensitivity * (sums.l1 - 1), epsilon)")),
        ("binary_gaussian", "BinaryMechanism, Gaussian noise", {"delta": DELTA}, "10 % less noise", less),
    ):  # fmt: skip
        yield entry(
            id, name, (BinaryMechanism,), SENSITIVITY, EPSILON, partial(loss, **options), mutant, change,
            options.get("delta", 0.0), _ELEMENT,
        )  # fmt: skip
    close = ("up to 3 elements of a person", "each changes by at most 1")
    for id, name, options, change in (
        ("binary_several", "BinaryMechanism, several elements of a person", {},
         (path, "uses * sensitivity * sums.l1, epsilon", "sensitivity * sums.l1, epsilon")),
        ("binary_several_gaussian", "BinaryMechanism, several elements of a person, Gaussian noise", {"delta": DELTA},
         ("continual_mean/sums/trees.py", "(uses % held) ** 2 for", "uses % held for")),
    ):  # fmt: skip
        yield entry(
            id, name, (BinaryMechanism, Tree), SENSITIVITY, EPSILON, partial(loss, uses=3, **options),
            "elements of a person are taken for one", change, options.get("delta", 0.0), close,
        )  # fmt: skip
    apart = ((2, 3, 3), (3, 2, 5), (3, 3, 2), (2, 2, 4))  # branching, uses and gap
    yield entry(
        "binary_apart", "BinaryMechanism, elements apart, four settings, Gaussian", (BinaryMechanism, Tree),
        SENSITIVITY, 4 * EPSILON,
        lambda: sum(loss(delta=DELTA, uses=uses, gap=gap, sums=Tree(8, base)) for base, uses, gap in apart),
        "elements in a block rounded down",
        ("continual_mean/sums/trees.py", "-(-size // gap) for size", "max(1, size // gap) for size"), DELTA, close,
    )  # fmt: skip
    several = ("up to 3 elements of a person", "each changes by at most 1; at least 3 steps apart")
    factorizations: tuple[tuple[str, str, Callable[[int], PrefixSums], tuple[str, str]], ...] = (
        ("toeplitz", "square-root factorization", Toeplitz, _ELEMENT),
        ("buffered", "buffered factorization", Buffered, _ELEMENT),
        ("anytime_one", "factorization without an end, one element of a person", lambda steps: Anytime(), _ELEMENT),
        ("banded", "banded factorization", lambda steps: Banded(steps, 3), several),
        ("banded_best", "banded factorization, optimized", lambda steps: Banded(steps, 3, True), several),
        ("anytime", "factorization without an end", lambda steps: Anytime(), several),
    )
    for id, name, make, who in factorizations:
        uses: dict[str, Any] = {"uses": 3, "gap": 3} if who is several else {}
        yield entry(
            id, name, (BinaryMechanism, type(make(8))), SENSITIVITY, EPSILON,
            lambda make=make, uses=uses: loss(delta=DELTA, sums=make(8), **uses),
            "elements of a person are taken for one" if uses else "10 % less noise",
            (path, "sums.l2_of(uses, gap), budget", "sums.l2_of(1, gap), budget") if uses else less, DELTA, who,
        )  # fmt: skip

    for id, name, make, _ in factorizations[:2] + factorizations[-1:]:
        yield entry(
            f"{id}_long", f"{name}, more than a block of steps", (BinaryMechanism, type(make(8))), SENSITIVITY, EPSILON,
            lambda make=make: gaussian_epsilon(sensitivity.long_cost(
                BinaryMechanism(BLOCK + 2, EPSILON, delta=DELTA, sums=make(BLOCK + 2))), DELTA),
            "a block of steps forgets those before it" if id == "buffered" else "10 % less noise",
            ("continual_mean/sums/toeplitz.py", "part, held[place] = lfilter(", "part, _ = lfilter(") if id == "buffered"
            else less, DELTA, _ELEMENT,
        )  # fmt: skip

    def whole() -> float:
        return sensitivity.discrete_gaussian_epsilon(BinaryMechanism(8, EPSILON, delta=DELTA, integer=True))

    yield Entry(
        "binary_discrete_gaussian", "continual_mean", "BinaryMechanism, discrete Gaussian noise",
        (BinaryMechanism, DiscreteGaussian, accounting.concentrated_rho), *_ELEMENT, FORMULA, EPSILON, whole,
        "10 % less noise than Gaussian",
        broken(whole, path, "return math.sqrt(2 * accounting.concentrated_rho(epsilon, delta))",
               "return 1.1 * accounting.gaussian_mu(epsilon, delta)"),
        DELTA, sampler_test="test_discrete_gaussian_has_its_law",
    )  # fmt: skip
    yield entry(
        "balanced", "tree with negative digits", (BinaryMechanism, BalancedTree), SENSITIVITY, EPSILON,
        lambda: sensitivity.balanced_cost(BinaryMechanism(12, EPSILON, sums=BalancedTree(12, 5))), "a level fewer",
        (path, "scale = finite_scale(uses * sensitivity * sums.l1, epsilon)",
         "scale = finite_scale(uses * sensitivity * (sums.l1 - 1), epsilon)"), 0.0, _ELEMENT,
    )  # fmt: skip
    yield entry(
        "recorded", "consistent tree of a recorded stream", (RecordedSums,), SENSITIVITY, EPSILON,
        lambda: sensitivity.recorded_cost(RecordedSums(11, EPSILON, branching=3)), "a level fewer",
        ("continual_mean/sums/recorded.py", "finite_scale(len(self.blocks) *", "finite_scale((len(self.blocks) - 1) *"),
        0.0, _ELEMENT,
    )  # fmt: skip
