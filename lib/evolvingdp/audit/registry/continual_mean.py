"""The registry's entries for running sums and means of users who come back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.audit.registry.entry import FINITE, NOISE, Door, Mechanism, Steps, Trial, settled
from evolvingdp.continual_mean import algorithms, blocks, private_median, windows
from evolvingdp.continual_mean.binary_mechanism import BinaryMechanism
from evolvingdp.continual_mean.blocks import KINDS, Blocks
from evolvingdp.continual_mean.prefix_sums import Buffered, Tree
from evolvingdp.continual_mean.user_mean import UserMean

Rng = np.random.Generator
_GRID = {
    "branching": "of trees, whose levels `noise` counts",
    "resolution": "steps of the grid, in whose units all is computed",
}
_MOST = 9  # steps
TYPES = (np.float16, np.float32, np.float64, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint64, np.bool_)


def mechanisms() -> Iterator[Mechanism]:
    def entry(
        id: str,
        covers: tuple[Any, ...],
        trial: Any,
        doors: Any,
        made_by: tuple[Any, ...] = (),
        counted: Any = None,
        **named: Any,
    ) -> Mechanism:
        unit, neighbours = named.pop("units", ("all samples of a user", "any two of them; arrivals public"))
        return Mechanism(
            id, "continual_mean", covers, unit, neighbours, NOISE, trial, doors, made_by, counted=counted or {}, **named
        )

    units = ("up to `uses` elements of a person", "each changes by at most `sensitivity`; how many is public")
    public = {"uses": "which elements are a person's is the caller's word, and no step can see it"}
    steps = Steps(
        lambda rng: settled(partial(_binary, rng)), BinaryMechanism.start, lambda made, state, _: made.step(state, 0)
    )
    covers: tuple[Any, ...] = (BinaryMechanism, BinaryMechanism.release, BinaryMechanism.start)
    more: dict[str, Any] = {"horizon": partial(_more, BinaryMechanism(3, 1.0), [np.ones(4)])}
    yield entry(
        "binary", covers, _binary_trial, _binary_doors, (BinaryMechanism,), more, public=public, steps=(steps,), units=units
    )

    small: Any = algorithms.naive(3, 2, 1.0)
    yield entry(
        "per_step",
        (algorithms.per_step,),
        partial(_trial, _naive, algorithms.per_step),
        _doors(partial(algorithms.per_step, small)),
    )

    made_by: tuple[Any, ...] = (UserMean, algorithms.naive)
    covers = (UserMean, UserMean.release, UserMean.release_all, UserMean.start)
    more = _beyond(algorithms.naive(2, 2, 1.0, horizon=3))
    steps = Steps(_mean, UserMean.start, lambda made, state, _: made.step(state, 0, made.low))
    door = Door("step", partial(_first_step, small), lambda drawn: {"sample": np.array(1.0)})
    public = _GRID | {
        "dimensions": "how many coordinates `release_all` has, which share the budget",
        "batch": "samples of the stream in an element, which moves by no more than they do",
        "alike": "the sum is divided by how many samples are in it, which arrivals decide",
        "reach": "samples that reach further are dropped or refused, and say nothing",
    }
    yield entry("user_mean", covers, _mean_trial, _doors(small.release, door), made_by, more, public=public, steps=(steps,))

    small = algorithms.multiple_trees(3, 2, 1.0, 0.4)
    covers = (Blocks, Blocks.release, blocks.median, private_median.draw)
    made_by = (Blocks, algorithms.wishful, algorithms.single_tree, algorithms.multiple_trees, algorithms.full)
    more = _beyond(algorithms.multiple_trees(2, 2, 1.0, 0.4, horizon=3))
    silent = {"beta": "of projections"}
    yield entry(
        "blocks",
        covers,
        partial(_trial, _blocks, Blocks.release),
        _doors(small.release),
        made_by,
        more,
        public=_GRID,
        metadata=silent,
    )

    columns = _doors(UserMean(3, 2, 1.0, dimensions=2).release_all, columns=2)
    yield entry("coordinates", (UserMean.release_all,), _coordinates_trial, columns)

    days = windows.Days(algorithms.naive(3, 2, 1.0), 3, 2)
    covers, more = (windows.Days, windows.Days.start, windows.Days.release), {"n_days": _days_more}
    steps = Steps(_days, windows.Days.start, lambda made, state, _: _day(made, state))
    public = {"per_day": "further samples of a day are dropped, and say nothing"}
    silent = dict.fromkeys(("branching", "decay"), "how a mean would sum samples, which a day does in its own way")
    silent |= dict.fromkeys(("low", "high", "clip"), "of means, which are computed from what is released")
    silent |= {"excess": "what is beyond a cap is always dropped"}
    named: dict[str, Any] = {"public": public, "steps": (steps,), "metadata": silent}
    yield entry(
        "days", covers, _days_trial, _doors(days.release, days=np.array([0, 0, 1, 1, 2])), (windows.Days,), more, **named
    )

    unit, neighbours = "all samples of a user", "two of the arrays' means change"
    covers = (private_median.draw,)
    yield Mechanism("private_median", "continual_mean", covers, unit, neighbours, FINITE, _median_trial)


def _doors(release: Any, *others: Door, columns: int = 0, **public: Any) -> Any:
    """`release(users, samples, rng)` of three users, and other doors; `public`: what else it takes before the generator."""
    known = {"users": np.array([0, 1, 2, 0, 1]), **public}

    def call(noise: Any, samples: Any, users: Any, **public: Any) -> Any:
        return release(users, samples, *public.values(), noise)

    def draw(drawn: Rng) -> dict[str, Any]:
        return {**known, "samples": drawn.integers(0, 2, (5, columns) if columns else 5).astype(float)}

    return lambda rng: [Door("release", call, draw, tuple(known)), *others]


def _epsilon(rng: Rng) -> float:
    return float(np.round(np.exp(rng.uniform(-2.5, 1.5)), 3))


def _delta(rng: Rng) -> float:
    return float(rng.choice([1e-9, 1e-6, 1e-3, 0.05]))


def _binary(rng: Rng) -> BinaryMechanism:
    if rng.random() < 0.05:  # long enough for a filter's decay to show
        return BinaryMechanism(40, _epsilon(rng), 1.0, _delta(rng), sums=Buffered(40, 0.9), uses=int(rng.integers(1, 4)))
    horizon, delta = int(rng.integers(1, _MOST + 1)), _delta(rng) if rng.random() < 0.5 else 0.0
    more, base = horizon + int(rng.integers(0, 3)), int(rng.integers(2, 5))
    trees = [Tree(more, base), Tree(more, base, True), Tree(more, more + 1)]
    filters = [Buffered(more), Buffered(more, 0.9)]
    sums = rng.choice(np.array([None, *trees, *filters], dtype=object))
    sensitivity, integer, uses = float(rng.choice([1.0, 1.0, 0.5, 3.0])), bool(rng.random() < 0.5), int(rng.integers(1, 4))
    return BinaryMechanism(horizon, _epsilon(rng), sensitivity, delta, integer, sums, uses)


def _binary_trial(rng: Rng) -> Trial:
    made = settled(partial(_binary, rng))
    length = made.horizon if made.horizon > _MOST or rng.random() < 0.5 else int(rng.integers(1, made.horizon + 1))
    kind = np.dtype(rng.choice(np.array([*TYPES, *[np.float64, np.int64] * 4], dtype=object)))
    whole = kind.kind != "f"
    if whole and made.sensitivity < 1:
        made = replace(made, sensitivity=1.0)
    change = float(np.floor(made.sensitivity)) if whole or made.integer else made.sensitivity
    if kind.kind == "b":
        change = 1.0
    places = _places(rng, length, made.uses)
    held = _elements(rng, kind, length)
    if made.integer:
        held = np.floor(held).astype(kind)
    other = held.copy()
    signs = np.ones(len(places)) if rng.random() < 0.7 else rng.choice([-1.0, 1.0], len(places))
    for place, sign in zip(places, signs, strict=True):
        up = held[place] + kind.type(change) if sign > 0 else held[place] - kind.type(change) if kind.kind != "b" else 0
        other[place] = ~held[place] if kind.kind == "b" else up
    pair: tuple[Any, ...] = ()
    if others := sorted({*range(length)} - {*places}):
        pair = held.copy(), other.copy()
        if kind.kind != "b":
            at, large = rng.choice(others), min(_large(rng, held), int(np.iinfo(kind).max) if whole else 2**1000)
            for one in pair:
                one[at] = large
    way = rng.choice(["release", "step"])

    def run(elements: Any, noise: Any) -> Any:
        return made.release(elements, noise) if way == "release" else _walked(made, zip(elements), noise)[1]

    shown = made, kind.name, str(way), held.tolist(), other.tolist(), [one.tolist() for one in pair]
    return Trial(shown, run, (held, other), made.epsilon, made.delta, pair)


def _elements(rng: Rng, kind: np.dtype[Any], length: int) -> NDArray[Any]:
    if kind.kind == "b":
        return rng.integers(0, 2, length).astype(bool)
    return np.asarray(
        rng.integers(4, 9, length).astype(kind) + kind.type(0.25 if kind.kind == "f" and rng.random() < 0.3 else 0)
    )


def _large(rng: Rng, held: NDArray[Any]) -> int:
    """A number at which running sums in its type, or in double precision, lose their last bits or overflow."""
    kind = held.dtype
    if kind.kind == "f":
        digits, most = np.finfo(kind).nmant, float(np.finfo(kind).maxexp) - 2
    else:
        digits, most = 53, float(np.iinfo(kind).bits - (kind.kind == "i") - 1)
        if rng.random() < 0.2:
            return int(np.iinfo(kind).max) - int(held.sum()) + int(rng.integers(-2, 9))
    exponent = min(rng.uniform(digits, digits + 4) if rng.random() < 0.7 else rng.uniform(4, most), most)
    return int(2.0**exponent) + (int(rng.integers(0, 256)) if kind.kind != "f" and exponent > 9 else 0)


def _places(rng: Rng, length: int, uses: int) -> list[int]:
    """Next to each other or nearly, where a change costs most; from the first on, which fills a tree's blocks."""
    first = 0 if rng.random() < 0.5 else int(rng.integers(0, max(1, length // 2) + 1)) % length
    steps = 1 + (rng.random(uses) < 0.15)
    places: list[int] = (first - 1 + np.cumsum(np.append(1, steps))[:uses]).tolist()
    return [place for place in places if place < length]


def _binary_doors(rng: Rng) -> list[Door]:
    made = BinaryMechanism(6, 1.0, integer=bool(rng.random() < 0.5))
    few = {"elements": "a shorter stream is a stream"}
    return [
        Door("release", lambda noise, elements: made.release(elements, noise), _six_elements, loose=few),
        Door("step", lambda noise, element: made.step(made.start(noise), element), lambda drawn: {"element": np.array(1.0)}),
    ]


def _six_elements(rng: Rng) -> dict[str, Any]:
    return {"elements": rng.integers(0, 5, 6)}


def _walked(made: Any, rows: Iterable[Any], noise: Any) -> tuple[Any, list[Any]]:
    """The state after these rows, and what was released."""
    state, told = made.start(noise), []
    for row in rows:
        state, release = made.step(state, *row)
        told.append(release)
    return state, told


def _more(made: Any, columns: Any, rng: Any) -> Any:
    """The last of these rows is not paid for, step by step or all at once."""
    calls, rows = [lambda: made.release(*columns, rng)], list(zip(*columns, strict=True))
    if hasattr(made, "step"):
        state, _ = _walked(made, rows[:-1], rng)
        calls.append(lambda: made.step(state, *rows[-1]))
    return calls


def _common(rng: Rng) -> dict[str, Any]:
    users, each = int(rng.integers(1, 4)), int(rng.integers(1, 6))
    return {
        "n_users": users,
        "samples_per_user": each,
        "epsilon": _epsilon(rng),
        "horizon": None if rng.random() < 0.7 else int(rng.integers(1, users * each + 1)),
        "integer": bool(rng.random() < 0.4),
        "low": float(rng.choice([0.0, -2.0])),
        "high": float(rng.choice([1.0, 5.0])),
        "resolution": int(rng.choice([1, 3, 100])),
        "excess": str(rng.choice(["error", "drop"])),
    }


def _naive(rng: Rng) -> UserMean:
    return algorithms.naive(**_common(rng) | {"integer": False})


def _mean(rng: Rng) -> UserMean:
    def draw() -> UserMean:
        how: dict[str, Any] = _common(rng) | {"batch": int(rng.choice([1, 1, 2, 3])), "alike": bool(rng.random() < 0.3)}
        if rng.random() < 0.5:
            return UserMean(**how, branching=int(rng.choice([0, 2, 3])))
        reach = None if rng.random() < 0.5 else float(rng.uniform(1.5, 4.0))
        return UserMean(**how, delta=_delta(rng), decay=float(rng.choice([0.6, 1.0])), reach=reach)

    made: UserMean = settled(draw)
    return made


def _blocks(rng: Rng) -> Blocks:
    kind, common = str(rng.choice(KINDS)), _common(rng)
    if kind == "wishful" and rng.random() < 0.8:  # blocks so long that their interval is shorter than their range
        common |= {"n_users": int(rng.integers(1, 3)), "samples_per_user": 64, "horizon": None}
    prior = None if kind == "full" else common["low"] + 0.4 * (common["high"] - common["low"])
    options: dict[str, Any] = {
        "beta": float(rng.choice([0.05, 0.9])),
        "branching": int(rng.choice([0, 2, 3])),
        "prior_mean": prior,
    }
    return Blocks(**common, kind=kind, **options)


def _arrivals(rng: Rng, made: UserMean | Blocks) -> NDArray[np.int64]:
    """Of users within their caps; where others are dropped, beyond them, too."""
    order = rng.permutation(np.repeat(np.arange(made.n_users), made.samples_per_user))[: made.max_steps]
    if isinstance(made, UserMean) and made.reach is not None and made.excess == "error":
        order = order[: next((k for k in range(len(order)) if not _goes(made, order[: k + 1])), len(order))]
    if made.excess == "drop" and rng.random() < 0.5:
        order = np.concatenate([order, rng.integers(0, made.n_users, 3)])
    return np.asarray(order[: 128 if isinstance(made, Blocks) else 12])


def _worst_samples(
    rng: Rng, made: UserMean | Blocks, users: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """All of one user's values lowest, and highest; the others' at random grid points."""
    others = made.low + (made.high - made.low) * rng.integers(0, made.resolution + 1, len(users)) / made.resolution
    user = int(rng.choice(users))
    return np.where(users == user, made.low, others), np.where(users == user, made.high, others)


def _goes(made: UserMean, users: NDArray[np.int64]) -> bool:
    """Whether all of these samples are kept."""
    return bool(made.but(excess="drop").keeps(users).all())


def _mean_trial(rng: Rng) -> Trial:
    made = _mean(rng)
    users = _arrivals(rng, made)
    way = str(rng.choice(["release", "step"]))

    def run(samples: Any, noise: Any) -> Any:
        if way == "step":
            return _walked(made, zip(users.tolist(), samples.tolist(), strict=True), noise)[1]
        return made.release(users, samples, noise)

    return Trial((made, users.tolist(), way), run, _worst_samples(rng, made, users), made.epsilon, made.delta)


def _trial(make: Any, release: Any, rng: Rng) -> Trial:
    """`release(made, users, samples, rng)` of arrivals."""
    made = settled(partial(make, rng))
    users = _arrivals(rng, made)
    release = partial(release, made, users)
    return Trial((made, users.tolist()), release, _worst_samples(rng, made, users), made.epsilon, made.delta)


def _first_step(made: UserMean, noise: Any, sample: Any) -> Any:
    return made.step(made.start(noise), 0, sample)


def _beyond(made: Any) -> dict[str, Any]:
    """Of two users with two samples each, three in all."""
    streams = {"n_users": [0, 2], "samples_per_user": [0, 0, 0], "horizon": [0, 1, 0, 1]}
    return {name: partial(_more, made, [users, np.ones(len(users))]) for name, users in streams.items()}


def _coordinates_trial(rng: Rng) -> Trial:
    made, columns = _mean(rng), int(rng.integers(1, 4))
    users = _arrivals(rng, made)
    made = made.but(dimensions=columns)
    user = rng.choice(users)
    others = np.stack([_worst_samples(child, made, users)[0] for child in rng.spawn(columns)], axis=1)
    one, other = (np.where((users == user)[:, None], value, others) for value in (made.low, made.high))
    return Trial(
        (made, users.tolist()),
        lambda samples, noise: made.release_all(users, samples, noise),
        (one, other),
        made.epsilon,
        made.delta,
    )


def _days(rng: Rng) -> windows.Days:
    made: windows.Days = settled(lambda: windows.Days(_mean(rng), int(rng.integers(1, 6)), int(rng.integers(1, 4))))
    return made


def _days_trial(rng: Rng) -> Trial:
    made = _days(rng)
    users = _arrivals(rng, made.settings.but(excess="drop"))
    when = np.sort(rng.integers(0, made.n_days, len(users)))
    one, other = _worst_samples(rng, made.settings, users)
    columns = made.settings.dimensions

    def run(samples: Any, noise: Any) -> Any:
        return [made.release(users, samples, when, part) for part in noise.spawn(columns)]

    return Trial((made, users.tolist(), when.tolist()), run, (one, other), made.settings.epsilon, made.settings.delta)


def _day(made: windows.Days, state: Any) -> Any:
    """Two samples of each user."""
    users = [*range(made.settings.n_users)] * 2
    return made.day(state, users, [made.settings.high] * len(users))


def _days_more(rng: Any) -> Any:
    made = windows.Days(algorithms.naive(2, 2, 1.0), 2, 1)
    state = made.start(rng)
    for _ in range(2):
        state, _ = made.day(state, [0], [1.0])
    return [lambda: made.day(state, [0], [1.0]), lambda: made.release([0, 0], [1.0, 1.0], [0, 2], rng)]


def _median_trial(rng: Rng) -> Trial:
    count, level, epsilon = int(rng.integers(2, 7)), int(rng.integers(1, 5)), _epsilon(rng)
    means, moved = rng.choice([0.0, float(rng.random()), 1.0], count), rng.choice(count, 2, replace=False)
    other = means.copy()
    means[moved], other[moved] = 0.0, 1.0
    return Trial(
        (epsilon, level), lambda held, noise: private_median.draw(held, epsilon, level, noise), (means, other), epsilon
    )
