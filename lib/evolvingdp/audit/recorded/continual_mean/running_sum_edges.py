"""Scenes of running sums: where trees grow and blocks of noise end, limits and refusals; how settings are chosen."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from evolvingdp.audit.recorded.scene import Scene, outcome, taken
from evolvingdp.continual_mean import binary_mechanism, choosing
from evolvingdp.continual_mean.algorithms import bands, naive
from evolvingdp.continual_mean.binary_mechanism import BinaryMechanism
from evolvingdp.continual_mean.sums import anytime, toeplitz, trees
from evolvingdp.continual_mean.sums.anytime import Anytime
from evolvingdp.continual_mean.sums.balanced import BalancedTree
from evolvingdp.continual_mean.sums.banded import Banded
from evolvingdp.continual_mean.sums.buffered import Buffered
from evolvingdp.continual_mean.sums.recorded import RecordedSums
from evolvingdp.continual_mean.sums.toeplitz import Toeplitz
from evolvingdp.continual_mean.sums.trees import Tree
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core.noise import DiscreteLaplace, Gaussian, Laplace, Tape

_NAN, _INFINITE = float("nan"), float("inf")


def levels(rng: np.random.Generator) -> Iterator[Any]:
    """Capacities just below, at and above those where a level is added."""
    for capacity, branching in product((1, 2, 3, 4, 7, 8, 9, 26, 27, 62, 10**6), (2, 3, 4, 5)):
        kinds: tuple[Any, ...] = (
            Tree(capacity, branching),
            Tree(capacity, branching, True),
            BalancedTree(capacity, branching),
        )
        for sums in kinds:
            yield sums.height, sums.l1, [sums.l2_of(uses, gap) for uses in (1, 3, 100) for gap in (1, 2, 9, 2 * capacity)]
            ends = np.array([0, 1, capacity // 2, capacity])
            yield sums.relative_variance(ends), sums.difference_variance(ends[:, None], np.maximum(ends, ends[:, None]))
            if capacity > 63:
                continue
            for count in (0, capacity):
                yield sums.variances(count), sums.all(count, Tape(DiscreteLaplace(9.0), rng))
            ahead = sums.online(Tape(DiscreteLaplace(9.0), rng))
            yield (
                [ahead() for _ in range(capacity)],
                outcome(ahead),
                outcome(sums.all, capacity + 1, Tape(Laplace(1.0), rng)),
            )
    wrong: tuple[tuple[Any, Any], ...] = ((0, 2), (2.0, 2), (5, 1), (5, 2.0), (5, 0), (True, 2))
    for capacity, branching in wrong:
        yield outcome(Tree, capacity, branching), outcome(BalancedTree, capacity, branching)
        yield outcome(trees.height, capacity, branching), outcome(Toeplitz, capacity), outcome(Buffered, capacity, branching)
        yield outcome(Banded, capacity, branching)
    yield (
        BalancedTree(500).l1,
        BalancedTree(500).relative_variance([0, 400]),
        [trees.height(count) for count in (1, 7, 8, 9)],
    )


def block_ends(rng: np.random.Generator) -> Iterator[Any]:
    """Step by step past where noise is worked out in blocks, and in one call past where it is cut."""
    for sums in (
        Tree(2100), Tree(1024, 3), Tree(1500, 2, True), BalancedTree(2100, 4), Banded(2100, 1), Banded(1025, 7),
        Toeplitz(1030), Toeplitz(1024), Banded(1024, 3), Buffered(1500, 2), Anytime(),
    ):  # fmt: skip
        last = min(sums.capacity, 2100)
        ahead = sums.online(Tape(Gaussian(3.0), rng))
        told = [ahead() for _ in range(last)]
        yield told[::61], told[1020:1030], told[-3:], taken(ahead) if last < 2100 or sums.capacity == 2100 else ""
        every = sums.all(last, Tape(Gaussian(3.0), rng))
        yield (
            every[::61],
            every[1020:1030],
            every[-3:],
            sums.variances(last)[[0, 1022, 1023, -1]],
            len(sums.all(0, Tape(Laplace(1.0), rng))),
        )
        pairs = np.array([[0, 1], [1, 1], [0, 1000], [1023, 1024], [500, 1000], [7, 1024]]).T
        yield (
            sums.difference_variance(*pairs),
            sums.relative_variance([[0, 1], [1023, 1024]]),
            outcome(sums.relative_variance, [0]),
            outcome(sums.relative_variance, []),
        )
        yield [sums.l2_of(uses, gap) for uses, gap in ((1, 1), (2, 1), (5, 7), (40, 100), (3, 900), (10**4, 1))]
    for sums in (Banded(40_000, 5), Buffered(40_000, 3)):
        yield sums.all(40_000, Tape(Gaussian(1.0), rng))[16_300::157], outcome(sums.all, 40_001, Tape(Gaussian(1.0), rng))
    yield Anytime().capacity, Anytime().l1, outcome(Anytime().all, (1 << 40) + 1, Tape(Gaussian(1.0), rng))
    yield Anytime().l2_of(3, 40_000), Anytime().l2_of(40_000, 1), Anytime().coefficients_of(1030)[[0, 1, 1023, 1024, 1029]]
    yield Anytime().difference_variance([0, 1023, 5], [3000, 1024, 6]), anytime._square(), Anytime().coefficients_of(3)
    for length, uses, gap in product((1, 6, 7), (1, 2, 3, 9), (1, 2, 5, 9)):
        yield toeplitz.l2_of_columns(1 / np.arange(1.0, length + 1), uses, gap)
    yield (
        Toeplitz(9).coefficients,
        Toeplitz(9).noise_coefficients,
        Banded(9, 4).coefficients,
        Banded(9, 4).noise_coefficients,
    )
    yield Banded(3, 9).coefficients, Banded(9, 1).noise_coefficients, Banded(1, 1, best=True).coefficients


def searched_bands_of_long_streams(rng: np.random.Generator) -> Iterator[Any]:
    for capacity, width in ((400, 3), (130, 2), (128, 2), (129, 2), (20, 20), (20, 30)):
        sums = Banded(capacity, width, best=True)
        yield sums.bands, sums.l2_of(1), sums.l2_of(4, 2), sums.variances(capacity)[[0, -1]]


def budgets(rng: np.random.Generator) -> Iterator[Any]:
    """Scales of noise over budgets, sensitivities, uses and gaps; what is refused."""
    for sums in (
        None,
        Tree(20, 3),
        Tree(20, 2, True),
        BalancedTree(20, 5),
        Toeplitz(25),
        Banded(20, 4),
        Buffered(20, 2),
        Anytime(),
    ):
        for epsilon, (delta, integer) in product((0.05, 12.0), ((0.0, False), (0.0, True), (1e-9, False), (1e-9, True))):
            if integer and delta and not isinstance(sums, (Tree, Toeplitz)):
                continue
            for uses, gap in ((1, 1), (2, 1), (2, 5), (25, 7))[: 3 if isinstance(sums, Anytime) else 4]:
                made = outcome(BinaryMechanism, 20, epsilon, 3.5, delta, integer, sums, uses, gap)
                yield made if isinstance(made, str) else (made.noise, made.standard_error([1, 7, 20]))
    for wrong in (
        {"gap": 0}, {"gap": 1.5}, {"uses": 2.0}, {"horizon": 2.0}, {"delta": -1e-9}, {"delta": _NAN}, {"delta": 0.999},
        {"sums": Tree(6)}, {"sums": Tree(7)}, {"epsilon": _NAN}, {"epsilon": _INFINITE}, {"epsilon": 1e-160},
        {"sensitivity": 0.0}, {"sensitivity": _INFINITE}, {"epsilon": 1e-12, "integer": True},
        {"epsilon": 1e-13, "integer": True}, {"epsilon": 1e-8, "delta": 1e-6, "integer": True},
        {"epsilon": 3e-7, "delta": 1e-6, "integer": True},
    ):  # fmt: skip
        yield taken(lambda wrong=wrong: BinaryMechanism(**({"horizon": 7, "epsilon": 1.0} | wrong)))
    for change, epsilon in ((1e150, 1.0), (1.0001e150, 1.0), (1.0, 1e-150), (_INFINITE, 1.0), (_NAN, 1.0), (0.0, 1.0)):
        yield outcome(binary_mechanism.finite_scale, change, epsilon)
    for integer in (False, True):
        made = BinaryMechanism(3, 900.0, integer=integer)
        for element in (
            1,
            0.5,
            2.0,
            True,
            _NAN,
            _INFINITE,
            -(2**60),
            2**60,
            2**60 + 2**9,
            2**61,
            "1",
            None,
            np.int8(3),
            np.float64(2),
        ):
            told = outcome(made.step, made.start(rng), element)
            yield told if isinstance(told, str) else (told[1], told[0].total, told[0].length)
            yield outcome(made.release, [element], rng), outcome(made.release, [element, element, 0], rng)
        state = made.start(rng)
        yield [taken(made.step, state, element) for element in (2**60 - 9, 8, 2, -(2**59), 0, 1)], taken(made.step, None, 1)
        for values in ([], [[1, 2]], [1, 2, 3, 4], ["a"], np.ones(3, bool), np.full(3, 2**59), np.full(2, 3 * 2**58)):
            yield outcome(made.release, values, rng)
    for nodes in ([], [1.0, 3.0, 0.2, 5.0, 7.0, 11.0, 13.0], np.arange(17.0)):
        yield binary_mechanism.printed_sums(nodes)
    for capacity, largest in product((1, 4, 9, 12, 100, 1200), (2, 3, 5, 8)):
        yield binary_mechanism.best_branching(capacity, largest=largest), binary_mechanism.best_tree(capacity, largest)


def ended_streams(rng: np.random.Generator) -> Iterator[Any]:
    for n_steps, branching in product((1, 2, 3, 4, 5, 8, 9, 17, 27, 28), (0, 2, 3, 4, 1, -1)):
        for epsilon, sensitivity in ((0.05, 1.0), (12.0, 3.0)):
            made = outcome(RecordedSums, n_steps, epsilon, sensitivity, branching)
            if isinstance(made, str):
                yield made
                continue
            yield made, made.blocks, made.noise, made.standard_error(np.arange(1, n_steps + 1)), made.standard_error([[1]])
            yield (
                made.release(rng.random(n_steps), rng),
                outcome(made.standard_error, [0]),
                outcome(made.standard_error, [n_steps + 1]),
            )
    made = RecordedSums(3, 1.0)
    for values in ([1, 2], [1, 2, 3], [[1, 2, 3]], [1, 2, _NAN], [1, _INFINITE, 2], ["a", "b", "c"], [True, False, True]):
        yield outcome(made.release, values, rng)
    for wrong in ((0, 1.0), (3, 0.0), (3, 1.0, 0.0), (3, 1.0, 1.0, 2.0), (3, 1e-160), (2.0, 1.0), (3, _NAN)):
        yield outcome(RecordedSums, *wrong)
    yield [RecordedSums(n_steps, 1.0).branching for n_steps in (64, 1000, 1025, 3000)]


def choice(rng: np.random.Generator) -> Iterator[Any]:
    """What `recommended` adds up."""
    users = rng.integers(0, 9, 40)
    for delta, more in product((0.0, 1e-6), (False, True)):
        for made in (
            naive(30, 7, 0.4, delta=delta), bands(30, 9, 3.0, delta=delta, resolution=4, horizon=50),
            UserMean(30, 9, 2.0, delta, prior="none", exact_start=more, branching=3),
        ):  # fmt: skip
            for arrivals, parts in ((None, (0.5, 1.0)), (users if more else users[:3] + 10**6, (0.3, 0.7, 1.0))):
                times = list(choosing.expected_counts(made, arrivals, parts))
                yield times, choosing.late_error(made, times)
                for _, counts in times:
                    entered = choosing.elements(made, counts)
                    yield entered, choosing.noise_variances(made, entered), choosing.noise_variances(made, 0.02 * entered)
                if made.blocks == "bands":
                    yield choosing._with_shares(made, times)
    yield [sum(counts) for _, counts in choosing.expected_counts(naive(10**6, 400, 1.0))]
    yield [
        len(counts) for _, counts in choosing.expected_counts(naive(10, 4000, 1.0, horizon=30_000), parts=(0.01, 0.3, 1.0))
    ]
    yield (
        choosing.late_error(naive(3, 2, 1.0), [(5, np.array([3.0]))]),
        choosing.late_error(naive(3, 2, 1.0), [(1, np.array([0, 9.0]))]),
    )
    for shares in ([1.0], [0.5, 0.5], [0.999, 0.001], [0.9, 0.05, 0.05, 0.0]):
        yield choosing._normal(np.array(shares))
    for most in (1, 2, 5, 30, 1000, 10**6):
        for target in (1, 2, 4, 77, 10**5):
            yield choosing._least(lambda cap, target=target: abs(np.log(cap / target)), most)
    for given in ([], [0.5], [[1]], None):
        yield outcome(lambda given=given: [counts for _, counts in choosing.expected_counts(naive(3, 2, 1.0), given)])
    given_sums: tuple[dict[str, Any], ...] = {}, {"branching": 3}, {"honaker": True}, {"toeplitz": True}, {"buffered": True}
    for delta, options in product((0.0, 1e-6), given_sums):
        yield choosing._best(delta, options)


def searched_choices(rng: np.random.Generator) -> Iterator[Any]:
    size: dict[str, Any] = {"n_users": 30, "samples_per_user": 9, "epsilon": 1.0}
    for options in (
        {"n_users": 40, "samples_per_user": 30, "epsilon": 0.3, "branching": 3},
        {"n_users": 20, "samples_per_user": 12, "epsilon": 3.0, "horizon": 60},
        size | {"excess": "error", "resolution": 4, "clip": False},
        size | {"branching": 2, "arrivals": rng.zipf(1.5, 150) % 30},
        size | {"delta": 1e-6, "toeplitz": True, "excess": "error"},
        size | {"delta": 1e-6, "branching": 3, "honaker": True},
    ):
        yield choosing.recommended(**options)
    yield choosing.users_alike(9, 5, 0.3, branching=3), choosing.users_alike(9, 4, 2.0, 1e-6, horizon=20, honaker=True)
    arrivals = np.repeat([0, 1, 2, 3], (1, 2, 9, 30))
    for delta, given in ((0.0, None), (1e-6, arrivals)):
        made = UserMean(
            50, 9, 2.0, delta, prior="bootstrap", weights="precision", resolution=4, horizon=30, prior_deviations=1.0
        )
        yield choosing.shares_for(made, given)
    yield choosing.users_alike(9, 4, 1.0, shares=(0.5, 0.3, 0.2)), outcome(choosing.users_alike, 9, 4, 1.0, shares=(1.0,))


def scenes() -> dict[str, Scene]:
    every = (levels, block_ends, budgets, ended_streams, choice)
    return {f"sums_{scene.__name__}": scene for scene in every} | {
        found.__name__: found for found in (searched_choices, searched_bands_of_long_streams)
    }
