"""Entries of the ledger for running sums and means of users who come back."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from evolvingdp.audit.exact import sensitivity
from evolvingdp.audit.exact.draws import loss_of
from evolvingdp.audit.exact.laws import composed_epsilon, gaussian_epsilon
from evolvingdp.audit.ledger.entry import EXACT, FORMULA, SENSITIVITY, Entry
from evolvingdp.audit.ledger.mutant import broken
from evolvingdp.continual_mean import algorithms, choosing, coordinates, offline, online, private_median, windows
from evolvingdp.continual_mean.binary_mechanism import BinaryMechanism
from evolvingdp.continual_mean.per_step import PerStepLaplace
from evolvingdp.continual_mean.prefix_sums import Anytime, BalancedTree, Banded, Buffered, PrefixSums, Toeplitz, Tree
from evolvingdp.continual_mean.sums.recorded import RecordedSums
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core import accounting
from evolvingdp.core.noise import DiscreteGaussian

_EPSILON, _DELTA = 1.0, 1e-6
_USER, _ALL = "all samples of a user", "any two of them; arrivals public"
_ELEMENT = ("an element", "change by at most 1")


def entries() -> Iterator[Entry]:
    yield from _running_sums()
    yield from _user_means()
    yield from _for_any_users()
    yield from _days()
    yield from _others()


def _entry(
    id: str, name: str, covers: tuple[Any, ...], how: str, promised: float, measure: Any, mutant: str,
    change: tuple[str, str, str], delta: float = 0.0, who: tuple[str, str] = (_USER, _ALL),
) -> Entry:  # fmt: skip
    return Entry(id, "continual_mean", name, covers, *who, how, promised, measure, mutant, broken(measure, *change), delta)


def _running_sums() -> Iterator[Entry]:
    path = "continual_mean/binary_mechanism.py"
    less = (
        path,
        "normal(sums, sensitivity * sums.l2_of(uses, gap)",
        "normal(sums, 0.9 * sensitivity * sums.l2_of(uses, gap)",
    )

    def loss(**options: Any) -> float:
        mechanism = BinaryMechanism(8, _EPSILON, **options)
        cost = sensitivity.binary_cost(mechanism, mechanism.horizon)
        return gaussian_epsilon(cost, mechanism.delta) if mechanism.delta else cost

    for id, name, options, mutant, change in (
        ("binary", "BinaryMechanism", {}, "10 % less noise",
         (path, "return DiscreteLaplace(scale) if integer else Laplace(scale)",
          "return DiscreteLaplace(scale) if integer else Laplace(0.9 * scale)")),
        ("binary_integer", "BinaryMechanism, integer noise", {"integer": True}, "sensitivity of a tree that is a level lower",
         (path, "scale = finite_scale(uses * sensitivity * sums.l1, epsilon)",
          "scale = finite_scale(uses * sensitivity * (sums.l1 - 1), epsilon)")),
        ("binary_gaussian", "BinaryMechanism, Gaussian noise", {"delta": _DELTA}, "10 % less noise", less),
    ):  # fmt: skip
        yield _entry(
            id, name, (BinaryMechanism,), SENSITIVITY, _EPSILON, partial(loss, **options), mutant, change,
            options.get("delta", 0.0), _ELEMENT,
        )  # fmt: skip
    several = ("up to 3 elements of a person", "each changes by at most 1; at least 3 steps apart")
    factorizations: tuple[tuple[str, str, Callable[[int], PrefixSums], tuple[str, str]], ...] = (
        ("toeplitz", "square-root factorization", Toeplitz, _ELEMENT),
        ("buffered", "buffered factorization", Buffered, _ELEMENT),
        ("banded", "banded factorization", lambda steps: Banded(steps, 3), several),
        ("banded_best", "banded factorization, optimized", lambda steps: Banded(steps, 3, True), several),
        ("anytime", "factorization without an end", lambda steps: Anytime(), several),
    )
    for id, name, make, who in factorizations:
        uses: dict[str, Any] = {"uses": 3, "gap": 3} if who is several else {}
        yield _entry(
            id, name, (BinaryMechanism, type(make(8))), SENSITIVITY, _EPSILON,
            lambda make=make, uses=uses: loss(delta=_DELTA, sums=make(8), **uses),
            "elements of a person are taken for one" if uses else "10 % less noise",
            (path, "sums.l2_of(uses, gap), budget", "sums.l2_of(1, gap), budget") if uses else less, _DELTA, who,
        )  # fmt: skip

    def whole() -> float:
        return sensitivity.discrete_gaussian_epsilon(BinaryMechanism(8, _EPSILON, delta=_DELTA, integer=True))

    yield Entry(
        "binary_discrete_gaussian", "continual_mean", "BinaryMechanism, discrete Gaussian noise",
        (BinaryMechanism, DiscreteGaussian, accounting.concentrated_rho), *_ELEMENT, FORMULA, _EPSILON, whole,
        "10 % less noise than Gaussian",
        broken(whole, path, "return math.sqrt(2 * accounting.concentrated_rho(epsilon, delta))",
               "return 1.1 * accounting.gaussian_mu(epsilon, delta)"),
        _DELTA, sampler_test="test_discrete_gaussian_has_its_law",
    )  # fmt: skip
    yield _entry(
        "balanced", "tree with negative digits", (BinaryMechanism, BalancedTree), SENSITIVITY, _EPSILON,
        lambda: sensitivity.balanced_cost(BinaryMechanism(12, _EPSILON, sums=BalancedTree(12, 5))), "a level fewer",
        (path, "scale = finite_scale(uses * sensitivity * sums.l1, epsilon)",
         "scale = finite_scale(uses * sensitivity * (sums.l1 - 1), epsilon)"), 0.0, _ELEMENT,
    )  # fmt: skip
    yield _entry(
        "recorded", "consistent tree of a recorded stream", (RecordedSums,), SENSITIVITY, _EPSILON,
        lambda: sensitivity.recorded_cost(RecordedSums(11, _EPSILON, branching=3)), "a level fewer",
        ("continual_mean/sums/recorded.py", "finite_scale(len(self.blocks) *", "finite_scale((len(self.blocks) - 1) *"),
        0.0, _ELEMENT,
    )  # fmt: skip


def _user_means() -> Iterator[Entry]:
    narrow: dict[str, Any] = {"beta": 0.9, "prior_deviations": 0.2}  # so that intervals are narrow in a stream this short
    few, choose = (4, 4, _EPSILON), choosing.users_alike
    path = "continual_mean/user_mean.py"
    unscaled = (
        path,
        "return calibrate(sums, self._tree_budget(tree), 0.0, sensitivity,",
        "return calibrate(sums, self._tree_budget(tree), 0.0, sensitivity / 2,",
    )
    once = (
        path,
        "def user_sensitivity(self, tree: int) -> float:",
        "def user_sensitivity(self, tree: int) -> float:\n        return 1.0\n\n    def _real(self, tree: int) -> float:",
    )
    free = (
        "continual_mean/online.py",
        "tree.total += min(max(total, interval.low), interval.high) if interval else total",
        "tree.total += total",
    )
    gauss = (
        path,
        "return self._mu * math.sqrt(self._share(tree) / self.dimensions)",
        "return self._mu * math.sqrt(1 / self.dimensions)",
    )
    outwards = (
        path,
        "math.ceil(center - half), math.floor(center + half)",
        "math.floor(center - half), math.ceil(center + half)",
    )
    kept = (
        "continual_mean/online.py",
        "state.counts[user] < settings.samples_per_user",
        "state.counts[user] <= settings.samples_per_user",
    )
    cases: list[tuple[str, str, Any, Callable[[], UserMean], str, tuple[str, str, str]]] = [
        ("naive", "Algorithm 2", algorithms.naive, lambda: algorithms.naive(*few), "noise for one sample of a user", once),
        ("naive_dropped", "Algorithm 2, more samples than the cap", algorithms.naive,
         lambda: algorithms.naive(*few, excess="drop"), "a sample beyond the cap is let in, step by step", kept),
        ("wishful", "Algorithm 3", algorithms.wishful, lambda: algorithms.wishful(*few, 0.4), "noise for one sample of a user", once),
        ("wishful_narrow", "Algorithm 3, an interval that binds at both ends", algorithms.wishful,
         lambda: algorithms.wishful(4, 64, _EPSILON, 0.41, beta=0.9), "an interval rounded outwards", outwards),
        ("single_tree", "Algorithm 4", algorithms.single_tree, lambda: algorithms.single_tree(*few, 0.4),
         "noise for one sample of a user", once),
        ("multiple_trees", "Algorithm 5", algorithms.multiple_trees, lambda: algorithms.multiple_trees(*few, 0.4),
         "half the noise", unscaled),
        ("full", "Algorithm 6", algorithms.full, lambda: algorithms.full(4, 8, 1000.0, beta=0.9), "half the noise", unscaled),
        ("recommended", "users alike, pure", choose, lambda: choose(8, 4, _EPSILON), "half the noise", unscaled),
        ("recommended_long", "users alike, narrow intervals", choose, lambda: choose(4, 64, 400.0, honaker=True, **narrow),
         "sums are not projected, step by step", free),
        ("recommended_fine", "users alike, narrow intervals, fine values", choose,
         lambda: choose(4, 64, 400.0, resolution=16, **narrow), "half the noise", unscaled),
        ("recommended_real", "users alike, narrow intervals, real noise", choose,
         lambda: choose(4, 64, 400.0, integer=False, **narrow), "half the noise", unscaled),
        ("recommended_gaussian", "users alike, Gaussian", choose, lambda: choose(8, 4, _EPSILON, _DELTA),
         "each tree has all of mu", gauss),
    ]  # fmt: skip
    for id, name, make, settings, mutant, change in cases:
        covers = (UserMean, online.start, online.step, offline.release, make)
        yield _entry(
            f"user_mean_{id}", f"UserMean: {name}", covers, SENSITIVITY, {"full": 1000.0}.get(id, 400.0 if "_" in id and
            id.rsplit("_")[-1] in ("long", "fine", "real") else _EPSILON),
            lambda settings=settings, id=id: user_mean_epsilon(settings(), 2 * (id == "naive_dropped")), mutant, change,
            _DELTA if id.endswith("gaussian") else 0.0,
        )  # fmt: skip

    def medians() -> float:
        return sensitivity.median_loss(algorithms.full(6, 8, 64.0, beta=0.9))

    yield _entry(
        "user_mean_medians", "UserMean: the medians of Algorithm 6", (algorithms.full, private_median.draw), EXACT, 64 / 6, medians,
        "medians at twice their epsilon",
        ("continual_mean/online.py", "private_median.draw(means, settings.median_epsilon, level, rng)",
         "private_median.draw(means, 2 * settings.median_epsilon, level, rng)"),
    )  # fmt: skip
    for id, composition_delta in (("basic", 0.0), ("optimal", _DELTA)):

        def loss(composition_delta: float = composition_delta) -> float:
            all_of_three = choosing.users_alike(8, 4, _EPSILON, integer=False)
            one = user_mean_epsilon(coordinates.of_one(all_of_three, 3, composition_delta))
            return composed_epsilon(one, 3, composition_delta) if composition_delta else 3 * one

        yield _entry(
            f"coordinates_{id}", f"means of vectors, {id} composition", (coordinates.release, coordinates.of_one), SENSITIVITY,
            _EPSILON, loss, "a coordinate is not paid for",
            ("continual_mean/coordinates.py", *(
                ("composition_delta, n_dimensions)", "composition_delta, n_dimensions - 1)") if composition_delta
                else ("settings.epsilon / n_dimensions", "settings.epsilon / (n_dimensions - 1)")
            )), composition_delta,
        )  # fmt: skip

    def gaussian() -> float:
        one = coordinates.of_one(choosing.users_alike(8, 4, _EPSILON, _DELTA), 3)
        return gaussian_epsilon(3 * sensitivity.worst_user_mean_cost(one, who=(0,)), _DELTA)

    yield _entry(
        "coordinates_gaussian", "means of vectors, Gaussian noise", (coordinates.release, coordinates.of_one), SENSITIVITY,
        _EPSILON, gaussian, "coordinates are not paid for",
        ("continual_mean/user_mean.py", "math.sqrt(self._share(tree) / self.dimensions)", "math.sqrt(self._share(tree))"), _DELTA,
    )  # fmt: skip


def _for_any_users() -> Iterator[Entry]:
    """What is recommended: several elements of a user in one stream, streams for bands, better running sums."""
    path, make = "continual_mean/user_mean.py", choosing.recommended
    cases: list[tuple[str, str, Any, Callable[[], UserMean], str, tuple[str, str, str]]] = [
        ("any_users", "recommended, pure", make, lambda: make(4, 4, _EPSILON, excess="error"),
         "noise for one sample of a user", (path, "return self.samples_per_user\n        return len", "return 1\n        return len")),
        ("any_users_gaussian", "recommended, Gaussian", make, lambda: make(4, 4, _EPSILON, _DELTA, excess="error"),
         "noise for one sample of a user", (path, "self.uses(tree) * sums.l2_of(self.uses(tree))", "self.uses(tree) * sums.l2_of(1)")),
        ("bands", "bands", algorithms.bands, lambda: algorithms.bands(4, 4, _EPSILON, branching=3),
         "half the noise", (path, "return calibrate(sums, self._tree_budget(tree), 0.0, sensitivity,",
                            "return calibrate(sums, self._tree_budget(tree), 0.0, sensitivity / 2,")),
        ("bands_gaussian", "bands, Gaussian", algorithms.bands,
         lambda: algorithms.bands(4, 4, _EPSILON, delta=_DELTA, buffered=True), "each band has all of mu",
         (path, "math.sqrt(self._share(tree) / self.dimensions)", "math.sqrt(1 / self.dimensions)")),
    ]  # fmt: skip
    for id, name, maker, settings, mutant, change in cases:
        yield _entry(
            f"user_mean_{id}", f"UserMean: {name}", (UserMean, online.step, offline.release, maker), SENSITIVITY, _EPSILON,
            lambda settings=settings: user_mean_epsilon(settings()), mutant, change, _DELTA if "gaussian" in id else 0.0,
        )  # fmt: skip


def _days() -> Iterator[Entry]:
    """One user, who has 3 samples in all and 2 a day at most and sends up to 3 a day: from all zeros to all ones."""

    def loss(sums: PrefixSums | None, delta: float) -> float:
        days, worst = windows.Days(algorithms.naive(1, 3, _EPSILON, delta=delta), 4, 2, sums), 0.0
        for held in itertools.product(range(4), repeat=4):
            when = np.repeat(np.arange(4), held)

            def shown(ones: Any, rng: Any, when: Any = when) -> list[float]:
                bits = np.full(len(when), int(ones.any()))
                return [closed.total for closed in days.release(np.zeros_like(when), bits, when, rng)]

            worst = max(worst, sensitivity.solved(shown, 4, [np.array(held, dtype=float)]))
        return gaussian_epsilon(worst, delta) if delta else worst

    path, capped = "continual_mean/windows.py", "or state.today.get(user, 0) >= self.per_day:"
    for id, name, sums, delta, mutant, old, new in (
        ("days", "each with noise of its own", None, 0.0, "noise for one sample", "made.resolution * held *", "made.resolution *"),
        ("days_tree", "in a tree", Tree(4), 0.0, "noise for one sample", "made.resolution * held *", "made.resolution *"),
        ("days_gaussian", "Gaussian noise", None, _DELTA, "no cap a day", capped, "or False:"),
        ("days_buffered", "eight buffers", Buffered(4), _DELTA, "noise for a sample a day", "made.resolution * most *", "made.resolution *"),
    ):  # fmt: skip
        yield _entry(
            id, f"sums of days, {name}", (windows.Days, windows.between), SENSITIVITY, _EPSILON,
            lambda sums=sums, delta=delta: loss(sums, delta), mutant, (path, old, new), delta,
        )  # fmt: skip


def user_mean_epsilon(settings: UserMean, extra: int = 0) -> float:
    """What a full stream costs: all trees, and the medians of the levels that wait for one, each at its own epsilon."""
    order = "contiguous" if extra else "round_robin"
    cost = sensitivity.worst_user_mean_cost(settings, order, (0,), extra)
    if settings.delta:
        return gaussian_epsilon(cost, settings.delta)
    medians = sum(settings.waits_for(level) > 0 for level in range(len(settings.sizes)))
    return cost + medians * settings.median_epsilon


def _others() -> Iterator[Entry]:
    def median(epsilon: float, level: int = 4) -> float:
        """All ways in which one user, who fills parts of two arrays, can move them between bins."""
        middles, worst = private_median.bins(level), 0.0
        places = list(itertools.product(range(len(middles)), repeat=2))
        for rest in itertools.product((0, len(middles) - 1), repeat=4):
            inputs = [middles[[*rest, *mine]] for mine in places]
            worst = max(worst, loss_of(lambda means, rng: private_median.draw(means, epsilon, level, rng), inputs))
        return worst

    yield _entry(
        "private_median", "PrivateMedian", (private_median.draw, private_median.probabilities), EXACT, 0.8, lambda: median(0.8),
        "a cost that changes by 2 is taken for 1",
        ("continual_mean/private_median.py", "np.exp(-epsilon / 4 * (cost", "np.exp(-epsilon / 2 * (cost"),
    )  # fmt: skip

    def between(epsilon: float, moved: int, width: float) -> float:
        """All ways to move values between a few places; the law of the cell between all edges that there can be."""
        short, worst = width + 2.0**-40, 0.0  # a gap that is hardly ever hit
        places = np.array([0.0, short, 0.25, 0.5, 1.0])
        edges = sorted({*places, *(places - width), *(places + width)})

        def cell(values: Any, rng: Any) -> int:
            drawn = private_median.draw_between(values, epsilon, rng, moved, width)
            return sum(bool(drawn > edge) for edge in edges)

        for rest in itertools.product((short, 0.5), repeat=moved):
            worst = max(worst, loss_of(cell, [[*rest, *mine] for mine in itertools.product(places, repeat=moved)]))
        return worst

    for id, who, moved, width in (("arrays", "two values move", 2, 2.0**-30), ("records", "one value moves", 1, 0.0)):
        yield _entry(
            f"median_between_{id}", f"median between order statistics, {who}",
            (private_median.draw_between, private_median.law_between), EXACT, 4.0,
            lambda moved=moved, width=width: between(4.0, moved, width), "an epsilon a tenth too large",
            ("continual_mean/private_median.py", "epsilon / (2 * moved) * np", "epsilon / (1.8 * moved) * np"),
        )  # fmt: skip
    always, path = np.zeros(8, dtype=int), "continual_mean/per_step.py"  # one user sends everything
    for split in ("even", "harmonic"):
        yield _entry(
            f"per_step_{split}", f"noise at every step, {split} shares", (PerStepLaplace,), SENSITIVITY, _EPSILON,
            lambda split=split: sensitivity.per_step_cost(PerStepLaplace(8, _EPSILON, split), always),
            "horizon off by one" if split == "even" else "half of the noise, step by step",
            (path, "self.horizon / np.asarray(steps)", "(self.horizon - 1) / np.asarray(steps)") if split == "even"
            else (path, "state.rng.laplace(0.0, 1.0) *", "state.rng.laplace(0.0, 0.5) *"),
        )  # fmt: skip
