"""The registry's entries for answers about a threshold, and for histograms in every step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.audit.registry.entry import FINITE, Case, Door, Mechanism, Walk, public
from evolvingdp.core.noise import DiscreteLaplace, IntegerNoise, MonitorNoise
from evolvingdp.core.seeds import stream
from evolvingdp.sparse_vector import calibration
from evolvingdp.sparse_vector.above_threshold import KINDS, AboveThreshold
from evolvingdp.sparse_vector.histograms import HISTOGRAMS, Histogram, histogram
from evolvingdp.sparse_vector.stable import NOISES, stable_monitor
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving

Rng = np.random.Generator
Pair = tuple[NDArray[Any], NDArray[Any]]
_DOMAIN = "public: of what users can hold"
_DELETED = {
    "reports": "whoever has counted so many is deleted; the monitor itself never ends",
    "moved": "whoever has been in so many queries is deleted",
}


def mechanisms() -> Iterator[Mechanism]:
    def entry(
        id: str, covers: tuple[Any, ...], walk: Walk, made_by: tuple[Any, ...], *doors: Door, **named: Any
    ) -> Mechanism:
        unit, neighbours = named.pop("units", ("a user in all steps", "its data in all steps, replaced"))

        def every(rng: Rng) -> list[Door]:
            return [*walk.doors(rng), *doors]

        return Mechanism(
            id, "sparse_vector", covers, unit, neighbours, FINITE, walk.trial, every, made_by, steps=(walk.steps,), **named
        )

    svt = Walk(_threshold, lambda made, rng, _: made.start(rng), _ask, _values)
    covers: tuple[Any, ...] = (AboveThreshold, AboveThreshold.start, AboveThreshold.step, AboveThreshold.step_elements)
    made_by: tuple[Any, ...] = (AboveThreshold, AboveThreshold.calibrated, AboveThreshold.stable_gaussian)
    made_by = (*made_by, AboveThreshold.stable_one)
    plain = AboveThreshold.calibrated(1.0, 1e-6, 2, 0.0)
    moving = AboveThreshold.calibrated(1.0, 0.01, 9, 1e9, kind="gaussian", moved=3)
    paired = AboveThreshold.stable_one(1.0, 0.01, 9, 5)
    counted: dict[str, Any] = {
        "reports": partial(svt.beyond, plain, [1e9] * 3),
        "moved": lambda rng: [one for made in (moving, paired) for rows in _MOVED for one in svt.beyond(made, rows, rng)],
    }
    door = _elements("step_elements", lambda noise, held: _ask(plain, plain.start(stream(0, "start")), held, noise))
    units = ("a user in all queries", "every query changes by at most 1")
    sizes = {"n_elements": _DOMAIN}
    yield entry("above_threshold", covers, svt, made_by, door, units=units, counted=counted, public=sizes, cost=1)

    every_step = Walk(_histogram, _start, Histogram.step, _held)
    told = histogram(1.0, 0.01, 2, 3, kind="stable")
    covers, made_by = (Histogram, Histogram.step, Histogram.count, Histogram.noisy), (Histogram, histogram)
    doors = (
        _elements("count", lambda noise, held: told.count(told.start(4), held, noise), loose={}),
        _elements("noisy", lambda noise, held: told.noisy(held, noise)),
    )
    yield entry("histograms", covers, every_step, made_by, *doors, counted={"horizon": _histogram_more}, public=sizes)

    monitor = Walk(_monitor, _start, _monitored, _monitor_data)
    covers = (ThresholdMonitorEvolving, ThresholdMonitorEvolving.step, ThresholdMonitorEvolving.step_elements)
    covers = (*covers, MonitorNoise, MonitorNoise.draw)
    made_by = (ThresholdMonitorEvolving, calibration.calibrate)
    silent = {"queries": "values in {0, 1} are in [0, 1], too; `calibrate` pays for one report more"}
    listed = ThresholdMonitorEvolving.calibrated(calibration.calibrate(1.0, 0.01, 1), 2.0)
    door = _elements("step_elements", lambda noise, held: listed.step_elements(listed.start(4), held, 3, noise), loose={})
    yield entry("threshold_monitor", covers, monitor, made_by, door, public=_DELETED, metadata=silent)

    stable = Walk(_stable, _start, ThresholdMonitorEvolving.step_held, _held)
    covers = (ThresholdMonitorEvolving.step_held, stable_monitor, IntegerNoise, IntegerNoise.draw)
    sizes = _DELETED | {"n_events": "by which the noise is chosen"}
    silent = {
        "queries": "elements are held or not",
        "limit": "of the noise, of which sums of one come near: the ledger enumerates it",
    }
    yield entry("stable_monitor", covers, stable, (stable_monitor,), public=sizes, metadata=silent)


def _elements(name: str, call: Any, loose: Any = None) -> Door:
    """A door for what four users hold, or for the weights of elements."""
    loose = {"held": "a user more or less is a neighbour, too"} if loose is None else loose
    return Door(name, call, lambda drawn: {"held": drawn.integers(0, 2, 4)}, loose=loose)


def _start(made: Any, _: Any, row: Any) -> Any:
    return made.start(len(row))


def _promise(rng: Rng) -> tuple[float, float]:
    epsilon = float(np.round(np.exp(rng.uniform(-0.5, 2.5)), 3))  # not small: a noisy threshold is followed in cells of 1
    return epsilon, float(rng.choice([1e-6, 1e-3, 0.05]))


def _held(made: Any, rng: Rng, steps: int) -> Pair:
    """Of two elements; user 0 holds the first in one world, and the second in the other, in turns or always; of few users,
    or of so many that about every second answer is yes."""
    users = int(public(made).choice([2, 2 * max(1, int(made.threshold))]))
    others = rng.integers(0, 2, (steps, users))
    own = np.arange(steps) % 2 if rng.random() < 0.5 else np.zeros(steps, dtype=np.int64)
    one, other = others.copy(), others.copy()
    one[:, 0], other[:, 0] = own, 1 - own
    return one, other


_MOVED = ([0.0, 0.0, [0, 1]], [0.0, [0, 1], 0.0])  # a step of elements counts for two queries


def _threshold(rng: Rng) -> Case:
    (epsilon, delta), reports, queries = _promise(rng), int(rng.choice([1, 1, 2])), int(rng.integers(1, 4))
    kind = str(rng.choice(KINDS))
    plain = kind == "gaussian"
    if kind == "one" and rng.random() < 0.5:
        lone = AboveThreshold.stable_one(epsilon, delta, reports, 2 * queries, split=float(rng.uniform(0.2, 0.8)))
        return Case(lone, epsilon, delta, queries)
    if plain and rng.random() < 0.5:
        return Case(AboveThreshold.stable_gaussian(epsilon, delta, reports, queries), epsilon, delta, queries)
    split = None if plain or rng.random() < 0.5 else float(rng.uniform(0.2, 0.8))
    made = AboveThreshold.calibrated(epsilon, delta, reports, 0.0, kind=kind, split=split, moved=queries if plain else 0)
    return Case(made, epsilon, 0.0 if kind == "one" or (reports == 1 and not plain) else delta, queries)


def _ask(made: AboveThreshold, state: Any, held: Any, rng: Any) -> Any:
    """A query's value, or what users hold."""
    return made.step_elements(state, held, 2, rng) if np.ndim(held) else made.step(state, held, rng)


def _values(made: AboveThreshold, rng: Rng, steps: int) -> Pair:
    """Near the threshold and near 0; all move alike, or all but the last."""
    whole = made.stable or rng.random() < 0.5
    offsets = rng.integers(-2, 2, steps).astype(float) if whole else rng.uniform(-2, 2, steps)
    values = rng.choice([0.0, np.floor(made.threshold) if made.stable else made.threshold], steps) + offsets
    if made.stable:
        values = np.maximum(values, 0.0)
        return values, np.where(values > 0, values + rng.choice([-1.0, 1.0], steps), values + 1.0)
    moves = np.full(steps, rng.choice([-1.0, 1.0]))
    moves[-1] *= rng.choice([-1.0, 1.0])  # noes get likelier, or less so, and then a yes
    return values, values + moves


def _histogram(rng: Rng) -> Case:
    (epsilon, delta), horizon = _promise(rng), int(rng.integers(1, 3))
    made = histogram(epsilon, delta, horizon, 2, kind=str(rng.choice(HISTOGRAMS)))
    return Case(made, epsilon, delta, horizon + 1)


def _histogram_more(rng: Any) -> Any:
    calls: list[Any] = []
    for kind in HISTOGRAMS:
        made = histogram(1.0, 0.01, 2, 3, kind=kind)
        for step in (Histogram.step, Histogram.count):
            calls += Walk(_histogram, _start, step, _held).beyond(made, [[0, 0, 1]] * 3, rng)
    return calls


def _monitor(rng: Rng) -> Case:
    if rng.random() < 0.3:  # the adversary that attains the bound, with integers
        epsilon, delta = float(rng.uniform(0.5, 2.0)), 0.2
        noise: Any = DiscreteLaplace(calibration.calibrate(epsilon, delta, 1).scale)
        return Case(ThresholdMonitorEvolving(noise, float(rng.integers(1, 4)), 1), epsilon, delta, 8)
    (epsilon, delta), reports, queries = _promise(rng), int(rng.integers(1, 3)), int(rng.integers(1, 6))
    threshold = float(rng.integers(0, 4))
    if rng.random() < 0.3:
        moved = int(rng.integers(1, 4))
        kept = calibration.calibrate(epsilon, delta, reports, moved=moved)
        return Case(ThresholdMonitorEvolving.calibrated(kept, threshold), epsilon, delta, queries)
    method, asked = str(rng.choice(calibration.METHODS)), str(rng.choice(calibration.QUERIES))
    kept = calibration.calibrate(epsilon, delta, reports, method=method, queries=asked)
    if method == "exact" and rng.random() < 0.5:  # the paper's noise, which loses what its outer part does
        kept = replace(kept, noise=MonitorNoise(kept.scale / 10, float(rng.uniform(0.5, 3.0))))
    return Case(ThresholdMonitorEvolving.calibrated(kept, threshold), epsilon, delta, queries)


def _monitored(made: ThresholdMonitorEvolving, state: Any, held: Any, rng: Any) -> Any:
    """Elements that users hold, integers, or their values."""
    if np.asarray(held).dtype.kind == "i":
        return made.step_elements(state, held, 2, rng)
    return made.step(state, held, lambda values: values, rng)


def _monitor_data(made: ThresholdMonitorEvolving, rng: Rng, steps: int) -> Pair:
    """Of user 0's values or elements each is the other world's turned around."""
    if isinstance(made.noise, DiscreteLaplace):
        return _waiting(int(made.threshold), steps)
    binary, users, elements = made.queries == "binary", int(public(made).integers(1, 4)), public(made).random() < 0.3
    others = rng.integers(0, 2, (steps, users)) if binary else rng.integers(0, 5, (steps, users)) / 4
    one, other = others.astype(float), others.astype(float)
    own = rng.integers(0, 2, steps)
    one[:, 0], other[:, 0] = own, 1 - own
    if elements:
        one, other = (held.round().astype(np.int64) for held in (one, other))
    return one, other


def _waiting(threshold: int, steps: int) -> Pair:
    """Queries that user 0 meets in the first world alone, then as many in the other; others, who have not counted yet, are
    one below the threshold."""
    places = np.arange(steps * threshold)
    fresh = (places // threshold == np.arange(steps)[:, None]) & (places % threshold > 0)
    first = (np.arange(steps) < steps // 2)[:, None]
    one, other = (np.hstack([own, fresh]).astype(float) for own in (first, ~first))
    return one, other


def _stable(rng: Rng) -> Case:
    (epsilon, delta), reports, moved = _promise(rng), int(rng.integers(1, 3)), int(rng.integers(1, 4))
    return Case(stable_monitor(epsilon, delta, reports, moved, str(rng.choice(NOISES))), epsilon, delta, 1 + moved)
