"""Entries of the ledger for running sums and means of users who come back."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from evolvingdp.audit.exact import medians, sensitivity
from evolvingdp.audit.exact.draws import loss_of
from evolvingdp.audit.exact.laws import composed_epsilon, gaussian_epsilon
from evolvingdp.audit.exact.probes import Chosen
from evolvingdp.audit.ledger import running_sums
from evolvingdp.audit.ledger.entry import EXACT, SENSITIVITY, Entry
from evolvingdp.audit.ledger.running_sums import DELTA, EPSILON, entry
from evolvingdp.continual_mean import algorithms, choosing, coordinates, offline, online, private_median, windows
from evolvingdp.continual_mean.prefix_sums import Tree
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core.seeds import stream


def entries() -> Iterator[Entry]:
    yield from running_sums.entries()
    yield from _user_means()
    yield from _with_options()
    yield from _for_any_users()
    yield from _days()
    yield from _snapshots()
    yield from _others()


def _user_means() -> Iterator[Entry]:
    narrow: dict[str, Any] = {"beta": 0.9, "prior_deviations": 0.2}  # so that intervals are narrow in a stream this short
    few, choose = (4, 4, EPSILON), choosing.users_alike
    cases: list[tuple[str, str, Any, Callable[[], UserMean]]] = [
        ("naive", "Algorithm 2", algorithms.naive, lambda: algorithms.naive(*few)),
        ("naive_dropped", "Algorithm 2, more samples than the cap", algorithms.naive,
         lambda: algorithms.naive(*few, excess="drop")),
        ("wishful", "Algorithm 3", algorithms.wishful, lambda: algorithms.wishful(*few, 0.4)),
        ("wishful_narrow", "Algorithm 3, an interval that binds at both ends", algorithms.wishful,
         lambda: algorithms.wishful(4, 64, EPSILON, 0.41, beta=0.9)),
        ("single_tree", "Algorithm 4", algorithms.single_tree, lambda: algorithms.single_tree(*few, 0.4)),
        ("multiple_trees", "Algorithm 5", algorithms.multiple_trees, lambda: algorithms.multiple_trees(*few, 0.4)),
        ("full", "Algorithm 6", algorithms.full, lambda: algorithms.full(4, 8, 1000.0, beta=0.9)),
        ("full_narrow", "Algorithm 6, intervals that bind", algorithms.full, lambda: algorithms.full(4, 64, 1e4, beta=0.9)),
        ("recommended", "users alike, pure", choose, lambda: choose(8, 4, EPSILON)),
        ("recommended_long", "users alike, narrow intervals", choose, lambda: choose(4, 64, 400.0, honaker=True, **narrow)),
        ("recommended_fine", "users alike, narrow intervals, fine values", choose,
         lambda: choose(4, 64, 400.0, resolution=16, **narrow)),
        ("recommended_real", "users alike, narrow intervals, real noise", choose,
         lambda: choose(4, 64, 400.0, integer=False, **narrow)),
        ("recommended_gaussian", "users alike, Gaussian", choose, lambda: choose(8, 4, EPSILON, DELTA)),
    ]  # fmt: skip
    for id, name, make, settings in cases:
        covers = (UserMean, online.start, online.step, offline.release, make)
        yield entry(
            f"user_mean_{id}", f"UserMean: {name}", covers, SENSITIVITY, {"full": 1000.0, "full_narrow": 1e4}.get(id, 400.0 if "_" in id and
            id.rsplit("_")[-1] in ("long", "fine", "real") else EPSILON),
            lambda settings=settings, id=id: user_mean_epsilon(settings(), 2 * (id == "naive_dropped")),
            DELTA if id.endswith("gaussian") else 0.0,
        )  # fmt: skip

    def medians_told() -> float:
        short, long = algorithms.full(6, 8, 64.0, beta=0.9), algorithms.full(6, 16, 100.0, beta=0.9)
        two = max(medians.median_loss(short, order) for order in ("random", "contiguous"))
        return two + medians.median_loss(long, "contiguous")

    yield entry(
        "user_mean_medians", "UserMean: the medians of Algorithm 6, two of them together", (algorithms.full, private_median.draw), EXACT, 2 / 6 * 64 + 3 / 8 * 100, medians_told,
    )  # fmt: skip
    for id, composition_delta in (("basic", 0.0), ("optimal", DELTA)):

        def loss(composition_delta: float = composition_delta) -> float:
            all_of_three = choosing.users_alike(8, 4, EPSILON, integer=False)
            one = user_mean_epsilon(coordinates.of_one(all_of_three, 3, composition_delta))
            whole = composed_epsilon(one, 3, composition_delta) if composition_delta else 3 * one
            return whole if sensitivity.hides_coordinates(all_of_three, 3, composition_delta) else math.inf

        yield entry(
            f"coordinates_{id}", f"means of vectors, {id} composition", (coordinates.release, coordinates.of_one), SENSITIVITY,
            EPSILON, loss,
            composition_delta,
        )  # fmt: skip

    def gaussian() -> float:
        all_of_three = choosing.users_alike(8, 4, EPSILON, DELTA)
        one = coordinates.of_one(all_of_three, 3)
        if not sensitivity.hides_coordinates(all_of_three, 3):
            return math.inf
        return gaussian_epsilon(3 * sensitivity.worst_user_mean_cost(one, who=(0,)), DELTA)

    yield entry(
        "coordinates_gaussian", "means of vectors, Gaussian noise", (coordinates.release, coordinates.of_one), SENSITIVITY,
        EPSILON, gaussian,
        DELTA,
    )  # fmt: skip


def _with_options() -> Iterator[Entry]:
    """Sums of what many settings cost, so that a change of any shows."""
    makers = (algorithms.wishful, algorithms.single_tree, algorithms.multiple_trees)
    options: dict[str, dict[str, Any]] = {
        "capped": {"capped": True}, "exact_start": {"exact_start": True}, "integer": {"integer": True},
        "honaker": {"honaker": True, "branching": 3}, "fine": {"resolution": 4, "capped": True, "integer": True},
    }  # fmt: skip

    def loss(option: str) -> float:
        made = [make(4, 4, EPSILON, 0.4, beta=0.9).but(**options[option]) for make in makers]
        made.append(algorithms.full(4, 4, EPSILON, beta=0.9).but(**options[option]))
        costs = list(map(user_mean_epsilon, made))
        return sum(costs) if max(costs) <= EPSILON * (1 + 1e-9) else math.inf

    for option in options:
        yield entry(
            f"user_mean_with_{option}", f"UserMean: Algorithms 3 to 6, {option.replace('_', ' ')}, together", makers, SENSITIVITY,
            4 * EPSILON, lambda option=option: loss(option),
        )  # fmt: skip


def _for_any_users() -> Iterator[Entry]:
    """What is recommended: several elements of a user in one stream, streams for bands, better running sums."""
    _path, make = "continual_mean/user_mean.py", choosing.recommended
    cases: list[tuple[str, str, Any, Callable[[], UserMean]]] = [
        ("any_users", "recommended, pure", make, lambda: make(4, 4, EPSILON, excess="error")),
        ("any_users_gaussian", "recommended, Gaussian", make, lambda: make(4, 4, EPSILON, DELTA, excess="error")),
        ("bands", "bands", algorithms.bands, lambda: algorithms.bands(4, 4, EPSILON, branching=3)),
        ("bands_gaussian", "bands, Gaussian", algorithms.bands,
         lambda: algorithms.bands(4, 4, EPSILON, delta=DELTA, buffered=True)),
    ]  # fmt: skip
    for id, name, maker, settings in cases:
        yield entry(
            f"user_mean_{id}", f"UserMean: {name}", (UserMean, online.step, offline.release, maker), SENSITIVITY, EPSILON,
            lambda settings=settings: user_mean_epsilon(settings()), DELTA if "gaussian" in id else 0.0,
        )  # fmt: skip


def _days() -> Iterator[Entry]:
    """One of two users, who has 3 samples in all and 2 a day at most and sends up to 3 a day: from one end of their range to the other."""

    def loss(sums: Tree | None, delta: float) -> float:
        made = algorithms.naive(2, 3, EPSILON, delta=delta, resolution=4, low=-1.0, high=3.0)
        days, worst = windows.Days(made, 4, 2, sums), 0.0
        for held in itertools.product(range(4), repeat=4):
            when = np.repeat(np.arange(4), held)

            def shown(ones: Any, rng: Any, when: Any = when) -> list[float]:
                ends = np.full(len(when), made.high if ones.any() else made.low)
                return [closed.total for closed in days.release(np.zeros_like(when), ends, when, rng)]

            worst = max(worst, sensitivity.solved(shown, 4, [np.array(held, dtype=float)]))
        return gaussian_epsilon(worst, delta) if delta else worst

    _path, _capped = "continual_mean/windows.py", "or state.today.get(user, 0) >= self.per_day:"
    for id, name, sums, delta in (
        ("days", "each with noise of its own", None, 0.0),
        ("days_tree", "in a tree", Tree(4), 0.0),
        ("days_gaussian", "Gaussian noise", None, DELTA),
        ("days_tree_gaussian", "in a tree, Gaussian noise", Tree(4), DELTA),
    ):  # fmt: skip
        yield entry(
            id, f"sums of days, {name}", (windows.Days, windows.between), SENSITIVITY, EPSILON,
            lambda sums=sums, delta=delta: loss(sums, delta), delta,
        )  # fmt: skip


def _snapshots() -> Iterator[Entry]:
    """One of two users with 3 samples each, from zeros to ones: the totals after each step, online."""
    settings = algorithms.naive(2, 3, EPSILON, integer=False)

    def totals(bits: Any, rng: Any) -> list[float]:
        state, shown = online.start(settings, rng), []
        for step in range(6):
            state, _ = online.step(settings, state, step % 2, float(bits[step // 2] if step % 2 == 0 else 0.0))
            shown.append(windows.snapshot(settings, state).total)
        return shown

    def loss() -> float:
        silent, noisy = (totals(np.zeros(3), rng) for rng in (Chosen(), Chosen(stream(0, "snapshots"))))
        seed: Any = Chosen(stream(0, "snapshots"))
        at_once = [shown.total for shown in windows.snapshots(settings, [0, 1] * 3, np.zeros(6), seed, range(1, 7))]
        return user_mean_epsilon(settings) if np.allclose(at_once, noisy) and not np.allclose(silent, noisy) else math.inf

    yield entry(
        "snapshots", "snapshots of a mean", (windows.snapshot, windows.snapshots), SENSITIVITY, EPSILON, loss,
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

    for id, name, epsilon, level in (("", "", 0.8, 4), ("_four", ", of four bins", 1.3, 6)):
        yield entry(
            f"private_median{id}", f"PrivateMedian{name}", (private_median.draw, private_median.probabilities), EXACT, epsilon,
            lambda epsilon=epsilon, level=level: median(epsilon, level),
        )  # fmt: skip
