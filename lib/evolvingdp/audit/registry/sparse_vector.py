"""The registry's entries for answers about a threshold, and for histograms in every step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.audit.registry.entry import FINITE, Door, Mechanism, Steps, Trial, settled, until_refused
from evolvingdp.core.noise import DiscreteLaplace, Gaussian
from evolvingdp.core.seeds import stream
from evolvingdp.sparse_vector import calibration, histograms
from evolvingdp.sparse_vector.above_threshold import KINDS, AboveThreshold
from evolvingdp.sparse_vector.find_step import FindStep
from evolvingdp.sparse_vector.histograms import HISTOGRAMS, Histogram, HistogramEveryStep
from evolvingdp.sparse_vector.moved_queries import smallest_moved_scale
from evolvingdp.sparse_vector.noise import IntegerNoise, MonitorNoise
from evolvingdp.sparse_vector.stable import NOISES, stable_monitor
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving

Rng = np.random.Generator
_USER = ("a user in all steps", "its data in all steps, replaced")
_DELTAS = (1e-6, 1e-3, 0.05)
_DOMAIN = "public: of what users can hold"
_CALIBRATED = "the noise of `Calibration`, which states its promise"


def mechanisms() -> Iterator[Mechanism]:
    yield Mechanism(
        "above_threshold",
        "sparse_vector",
        (AboveThreshold, AboveThreshold.start, AboveThreshold.step, AboveThreshold.step_elements),
        "a user in all queries",
        "every query changes by at most 1",
        FINITE,
        _threshold_trial,
        _threshold_doors,
        (AboveThreshold, AboveThreshold.calibrated, AboveThreshold.stable_gaussian),
        {"reports": _threshold_more, "moved": _threshold_moved},
        {"n_elements": _DOMAIN},
        (
            Steps(
                _threshold,
                lambda made, rng: made.start(rng),
                lambda made, state, rng: made.step(state, 0.0, rng),
                lambda made: made.reports,
            ),
        ),
    )
    yield Mechanism(
        "find_step",
        "sparse_vector",
        (FindStep, FindStep.start, FindStep.step),
        *_USER,
        FINITE,
        _find_trial,
        _find_doors,
        (FindStep, FindStep.calibrated),
        {"reports": _find_more, "horizon": _find_longer},
        {"n_elements": _DOMAIN},
        (
            Steps(
                _find,
                lambda made, rng: made.start(8, rng),
                lambda made, state, rng: made.step(state, [0] * 5 + [1] * 3, rng),
                lambda made: 1,
            ),
        ),
        {"stable": "the largest weight is never 0", "refreshed": "its search has no noise on the threshold"},
    )
    yield Mechanism(
        "histograms",
        "sparse_vector",
        (
            HistogramEveryStep,
            HistogramEveryStep.step,
            HistogramEveryStep.count,
            Histogram,
            Histogram.reported,
            Histogram.noisy,
        ),
        *_USER,
        FINITE,
        _histogram_trial,
        _histogram_doors,
        (Histogram, histograms.histogram, HistogramEveryStep, HistogramEveryStep.calibrated),
        {"horizon": _histogram_more},
        {"n_elements": _DOMAIN},
        (
            Steps(
                _histogram,
                lambda made, rng: made.start(3),
                lambda made, state, rng: made.step(state, [0, 0, 1], rng),
                lambda made: made.horizon,
            ),
        ),
    )
    yield Mechanism(
        "threshold_monitor",
        "sparse_vector",
        (
            ThresholdMonitorEvolving,
            ThresholdMonitorEvolving.step,
            ThresholdMonitorEvolving.step_elements,
            MonitorNoise,
            MonitorNoise.draw,
        ),
        *_USER,
        FINITE,
        _monitor_trial,
        _monitor_doors,
        (ThresholdMonitorEvolving, calibration.calibrate, smallest_moved_scale),
        {},
        {
            "reports": "whoever has counted so many is deleted; the monitor itself never ends",
            "moved": "whoever has been in so many queries is deleted",
        },
        (
            Steps(
                _monitor,
                lambda made, rng: made.start(3),
                lambda made, state, rng: made.step(state, [1, 0, 0], _same, rng),
                lambda made: 9,
            ),
        ),
        {"queries": "values in {0, 1} are in [0, 1], too; `calibrate` pays for one report more"},
    )
    yield Mechanism(
        "stable_monitor",
        "sparse_vector",
        (
            ThresholdMonitorEvolving.step_held,
            stable_monitor,
            IntegerNoise,
            IntegerNoise.draw,
        ),
        *_USER,
        FINITE,
        _stable_trial,
        _stable_doors,
        (stable_monitor,),
        {},
        {
            "reports": "whoever has counted so many is deleted",
            "moved": "whoever has been in so many steps is deleted",
            "n_events": "by which the noise is chosen",
        },
        (
            Steps(
                _stable,
                lambda made, rng: made.start(24),
                lambda made, state, rng: made.step_held(state, [0] * 24, rng),
                lambda made: 9,
            ),
        ),
        {
            "queries": "elements are held or not",
            "limit": "of the noise, of which sums of one come near: the ledger enumerates it",
        },
    )


def _same(value: Any) -> Any:
    return value


def _epsilon(rng: Rng) -> float:
    return float(np.round(np.exp(rng.uniform(-0.5, 2.5)), 3))  # not small: a noisy threshold is followed in cells of 1


def _threshold(rng: Rng, queries: int = 3) -> AboveThreshold:
    def draw() -> AboveThreshold:
        return _with_promise(rng, queries)[0]

    made: AboveThreshold = settled(draw)
    return made


def _with_promise(rng: Rng, queries: int) -> tuple[AboveThreshold, float, float]:
    epsilon, delta, reports = _epsilon(rng), float(rng.choice(_DELTAS)), int(rng.choice([1, 1, 2]))
    kind = str(rng.choice(KINDS))
    if kind == "gaussian" and rng.random() < 0.5:
        return AboveThreshold.stable_gaussian(epsilon, delta, reports, queries), epsilon, delta
    plain = kind == "gaussian"
    split = None if plain or rng.random() < 0.5 else float(rng.uniform(0.2, 0.8))
    made = AboveThreshold.calibrated(epsilon, delta, reports, 0.0, kind=kind, split=split, moved=queries if plain else 0)
    return made, epsilon, 0.0 if kind == "one" or (reports == 1 and not plain) else delta


def _threshold_trial(rng: Rng) -> Trial:
    queries = int(rng.integers(1, 4))
    made, epsilon, delta = settled(lambda: _with_promise(rng, queries))
    whole = made.stable or rng.random() < 0.5
    offsets = rng.integers(-2, 2, queries).astype(float) if whole else rng.uniform(-2, 2, queries)
    if made.stable:
        low = rng.choice([0.0, np.floor(made.threshold)], queries)
        values = np.maximum(low + offsets, 0.0)
        other = np.where(values > 0, values + rng.choice([-1.0, 1.0], queries), values + 1.0)
    else:
        values = made.threshold + offsets
        other = values + rng.choice(np.array([[1.0] * queries, [-1.0] * queries, rng.choice([-1.0, 1.0], queries)]))

    def run(held: Any, noise: Any) -> Any:
        return until_refused(lambda state, value: made.step(state, value, noise), made.start(noise), held.tolist(), queries)

    return Trial((made, values.tolist(), other.tolist()), run, (values, other), epsilon, delta)


def _threshold_doors(rng: Rng) -> list[Door]:
    made = AboveThreshold.calibrated(1.0, 1e-6, 1, 0.0)
    return [
        Door(
            "step",
            lambda noise, value: made.step(made.start(stream(0, "start")), value, noise),
            lambda drawn: {"value": np.array(0.5)},
        ),
        Door(
            "step_elements",
            lambda noise, inputs: made.step_elements(made.start(stream(0, "start")), inputs, 3, noise),
            lambda drawn: {"inputs": drawn.integers(0, 3, 4)},
            loose={"inputs": "a user more or less is a neighbour, too"},
        ),
    ]


def _threshold_more(rng: Any) -> Any:
    made = AboveThreshold.calibrated(1.0, 1e-6, 2, 0.0)
    state = made.start(rng)
    while state.left:
        state, _ = made.step(state, 1e9, rng)
    return [lambda: made.step(state, 1e9, rng)]


def _threshold_moved(rng: Any) -> Any:
    made = AboveThreshold.calibrated(1.0, 0.01, 9, 1e9, kind="gaussian", moved=3)
    state, _ = made.step(made.start(rng), 0.0, rng)
    calls = [partial(made.step_elements, made.step(state, 0.0, rng)[0], [0, 1], 2, rng)]
    state, _ = made.step_elements(state, [0, 1], 2, rng)
    return [*calls, partial(made.step, state, 0.0, rng)]


def _find(rng: Rng) -> FindStep:
    made, *_ = settled(lambda: _find_promise(rng))
    return made  # type: ignore[no-any-return]


def _find_promise(rng: Rng) -> tuple[FindStep, float, float, int]:
    epsilon, delta, horizon = _epsilon(rng), float(rng.choice(_DELTAS)), int(rng.integers(1, 3))
    reports, threshold = int(rng.integers(1, horizon + 1)), float(rng.integers(2, 6))
    ratio = float(rng.choice([0.5, 1.0]))
    return FindStep.calibrated(epsilon, delta, reports, threshold, 2, horizon, ratio=ratio), epsilon, delta, horizon


def _held(rng: Rng, steps: int, users: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of two elements; user 0 holds the first in one world, and the second in the other, in turns or always."""
    others = rng.integers(0, 2, (steps, users))
    own = np.arange(steps) % 2 if rng.random() < 0.5 else np.zeros(steps, dtype=np.int64)
    one, other = others.copy(), others.copy()
    one[:, 0], other[:, 0] = own, 1 - own
    return one, other


def _find_trial(rng: Rng) -> Trial:
    made, epsilon, delta, horizon = settled(lambda: _find_promise(rng))
    steps = 2 * horizon
    users = int(rng.choice([3, max(3, int(made.shown.threshold))]))
    one, other = _held(rng, steps, users)

    def run(held: Any, noise: Any) -> Any:
        return until_refused(lambda state, inputs: made.step(state, inputs, noise), made.start(users, noise), held, steps)

    return Trial((made, one.tolist(), other.tolist()), run, (one, other), epsilon, delta)


def _find_doors(rng: Rng) -> list[Door]:
    made = FindStep.calibrated(1.0, 0.01, 1, 2.0, 3, 9)
    return [
        Door(
            "step",
            lambda noise, inputs: made.step(made.start(4, stream(0, "start")), inputs, noise),
            lambda drawn: {"inputs": drawn.integers(0, 3, 4)},
        )
    ]


def _find_more(rng: Any) -> Any:
    made = FindStep.calibrated(1.0, 0.01, 1, -1e9, 3, 9)
    state, _ = made.step(made.start(3, rng), [0, 0, 1], rng)
    return [lambda: made.step(state, [0, 0, 1], rng)]


def _find_longer(rng: Any) -> Any:
    made = FindStep.calibrated(1.0, 1e-6, 1, 1e9, 3, 2)
    state = made.start(3, rng)
    for _ in range(2):
        state, _ = made.step(state, [0, 0, 1], rng)
    return [partial(made.step, state, [0, 0, 1], rng)]


def _histogram(rng: Rng) -> HistogramEveryStep:
    kind = str(rng.choice(HISTOGRAMS))
    made: HistogramEveryStep = settled(
        lambda: HistogramEveryStep.calibrated(
            _epsilon(rng), float(rng.choice(_DELTAS)), int(rng.integers(1, 3)), 2, kind=kind
        )
    )
    return made


def _histogram_trial(rng: Rng) -> Trial:
    kind, epsilon, delta, horizon = (
        str(rng.choice(HISTOGRAMS)),
        _epsilon(rng),
        float(rng.choice(_DELTAS)),
        int(rng.integers(1, 3)),
    )
    made = HistogramEveryStep.calibrated(epsilon, delta, horizon, 2, kind=kind)
    users = int(rng.choice([2, 2 * max(1, int(made.one.threshold))]))
    one, other = _held(rng, horizon + 1, users)

    def run(held: Any, noise: Any) -> Any:
        return until_refused(lambda state, inputs: made.step(state, inputs, noise), made.start(users), held, horizon + 1)

    return Trial((made, one.tolist(), other.tolist()), run, (one, other), epsilon, delta)


def _histogram_doors(rng: Rng) -> list[Door]:
    made = HistogramEveryStep.calibrated(1.0, 0.01, 2, 3, kind="stable")
    return [
        Door(
            name,
            lambda noise, inputs, name=name: getattr(made, name)(made.start(4), inputs, noise),
            lambda drawn: {"inputs": drawn.integers(0, 3, 4)},
        )
        for name in ("step", "count")
    ] + [
        Door(
            name,
            lambda noise, weights, name=name: getattr(made.one, name)(weights, noise),
            lambda drawn: {"weights": drawn.integers(0, 9, 3)},
            loose={"weights": "a weight an element, of as many as there are"},
        )
        for name in ("noisy",)
    ]


def _histogram_more(rng: Any) -> Any:
    calls: list[Any] = []
    for kind in HISTOGRAMS:
        made = HistogramEveryStep.calibrated(1.0, 0.01, 2, 3, kind=kind)
        state = made.start(3)
        for _ in range(2):
            state, _ = made.step(state, [0, 0, 1], rng)
        calls.append(partial(made.step, state, [0, 0, 1], rng))
        if kind in histograms.SHOWN:
            calls.append(partial(made.count, state, [0, 0, 1], rng))
    return calls


def _monitor(rng: Rng) -> ThresholdMonitorEvolving:
    made: tuple[ThresholdMonitorEvolving, float, float] = settled(lambda: _monitor_promise(rng))
    return made[0]


def _monitor_promise(rng: Rng) -> tuple[ThresholdMonitorEvolving, float, float]:
    epsilon, delta, reports = _epsilon(rng), float(rng.choice(_DELTAS)), int(rng.integers(1, 3))
    if rng.random() < 0.3:
        moved = int(rng.integers(1, 4))
        noise = Gaussian(smallest_moved_scale(epsilon, delta, reports, moved))
        return ThresholdMonitorEvolving(noise, float(rng.integers(0, 4)), reports, moved=moved), epsilon, delta
    method, asked = str(rng.choice(calibration.METHODS)), str(rng.choice(calibration.QUERIES))
    kept = calibration.calibrate(epsilon, delta, reports, method=method, queries=asked)
    if method == "exact" and rng.random() < 0.5:  # the paper's noise, which loses what its outer part does
        kept = replace(kept, noise=MonitorNoise(kept.scale / 10, float(rng.uniform(0.5, 3.0))))
    return ThresholdMonitorEvolving.calibrated(kept, float(rng.integers(0, 4))), epsilon, delta


def _monitor_trial(rng: Rng) -> Trial:
    if rng.random() < 0.3:
        return _waiting_trial(rng)
    made, epsilon, delta = settled(lambda: _monitor_promise(rng))
    users, queries = int(rng.integers(1, 4)), int(rng.integers(1, 6))
    others = rng.integers(0, 2, (queries, users)) if made.queries == "binary" else rng.integers(0, 5, (queries, users)) / 4
    one, other = others.astype(float), others.astype(float)
    own = rng.integers(0, 2, queries)
    one[:, 0], other[:, 0] = own, 1 - own
    if elements := bool(rng.random() < 0.3):
        one, other = (held.round().astype(np.int64)[: (queries + 1) // 2] for held in (one, other))

    def run(values: Any, noise: Any) -> Any:
        def step(state: Any, row: Any) -> Any:
            return made.step_elements(state, row, 2, noise) if elements else made.step(state, row, _same, noise)

        return until_refused(step, made.start(users), values, queries)

    return Trial((made, elements, one.tolist(), other.tolist()), run, (one, other), epsilon, delta)


def _waiting_trial(rng: Rng) -> Trial:
    """The adversary that attains the bound, with integers: queries that the first input alone meets, others one below the
    threshold, then as many of the second."""
    epsilon, delta, users = float(rng.uniform(0.5, 2.0)), 0.2, int(rng.integers(1, 4))
    noise = DiscreteLaplace(calibration.calibrate(epsilon, delta, 1).scale)
    made = ThresholdMonitorEvolving(noise, float(users), 1)
    one, other = np.zeros((8, 1)), np.zeros((8, 1))
    one[:4], other[4:] = 1.0, 1.0

    def run(values: Any, noise: Any) -> Any:
        state = made.start(1 + 8 * users)  # in each query others who have not counted yet
        told = []
        for number, row in enumerate(values):
            fresh = np.arange(8 * users) // users == number
            state, release = made.step(state, np.append(row, fresh & (np.arange(8 * users) % users > 0)), _same, noise)
            told.append(release)
        return told

    return Trial((made, one.tolist(), other.tolist()), run, (one, other), epsilon, delta)


def _monitor_doors(rng: Rng) -> list[Door]:
    made = ThresholdMonitorEvolving.calibrated(calibration.calibrate(1.0, 0.01, 1), 2.0)
    return [
        Door(
            "step",
            lambda noise, values: made.step(made.start(4), values, _same, noise),
            lambda drawn: {"values": drawn.integers(0, 2, 4)},
        ),
        Door(
            "step_elements",
            lambda noise, inputs: made.step_elements(made.start(4), inputs, 3, noise),
            lambda drawn: {"inputs": drawn.integers(0, 3, 4)},
        ),
    ]


def _stable(rng: Rng) -> ThresholdMonitorEvolving:
    made: tuple[ThresholdMonitorEvolving, float, float] = settled(lambda: _stable_promise(rng))
    return made[0]


def _stable_promise(rng: Rng) -> tuple[ThresholdMonitorEvolving, float, float]:
    epsilon, delta = _epsilon(rng), float(rng.choice(_DELTAS))
    sizes = int(rng.integers(1, 3)), int(rng.integers(1, 4))
    return stable_monitor(epsilon, delta, *sizes, str(rng.choice(NOISES))), epsilon, delta


def _stable_trial(rng: Rng) -> Trial:
    made, epsilon, delta = settled(lambda: _stable_promise(rng))
    users, steps = int(rng.choice([2, 2 * max(1, int(made.threshold))])), 1 + int(made.moved)
    one, other = _held(rng, steps, users)

    def run(held: Any, noise: Any) -> Any:
        return until_refused(lambda state, inputs: made.step_held(state, inputs, noise), made.start(users), held, steps)

    return Trial((made, one.tolist(), other.tolist()), run, (one, other), epsilon, delta)


def _stable_doors(rng: Rng) -> list[Door]:
    made = stable_monitor(1.0, 0.01, 1, 2)
    return [
        Door(
            "step_held",
            lambda noise, inputs: made.step_held(made.start(4), inputs, noise),
            lambda drawn: {"inputs": drawn.integers(0, 3, 4)},
        )
    ]
