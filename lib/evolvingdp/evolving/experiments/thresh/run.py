"""THRESH, recomputation and the rivals that split users on the same streams, a row a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from evolvingdp.core.seeds import stream
from evolvingdp.evolving import baselines, streams
from evolvingdp.evolving.experiments.split_users import CREWS, HINDSIGHT, ONCE, ONLINE, SIXTEEN, errors, reported_once
from evolvingdp.evolving.experiments.thresh.claims import claims, values
from evolvingdp.evolving.experiments.thresh.params import HORIZON_SWEEP_USERS, NOTEBOOK, Params
from evolvingdp.evolving.experiments.thresh.scenarios import (
    BASELINES,
    METHODS,
    OPTIMAL,
    PAPER,
    START,
    TUNED,
    bits,
    by_lot,
    protocols,
    scenarios,
)
from evolvingdp.evolving.experiments.thresh.tables import DELTA, predicted_delay, recomputed
from evolvingdp.evolving.rivals import crew_thresh
from evolvingdp.evolving.rivals.crew_thresh import CrewThresh
from evolvingdp.evolving.streams import BitStream
from evolvingdp.evolving.thresh import Thresh
from evolvingdp.evolving.thresh_simulation import Trace, simulate
from evolvingdp.experiment import Result, engine

# A run of THRESH averages the errors of a few estimates, one of each user once those of its epochs: what a claim reads is
# run so often that its bound lies about four standard errors from what is expected.
MORE = {("time", PAPER): 4, ("time", TUNED): 4, ("n_users", PAPER): 4}  # times as many runs
ERRORS = 1024  # of each user once, at least, at each horizon


def run(params: Params, seed: int) -> Result[Params]:
    """A row per run (part: time, horizon, n_users, size, drift or scenario): errors of the clipped estimates, and more."""
    compared = [(_compared, params, seed, part) for part in ("time", "horizon", "n_users")]
    others = [(part, params, seed) for part in (_sizes, _drifts, _scenarios)]
    table = pd.DataFrame(engine.rows([*compared, *others]))
    return Result(NOTEBOOK, params, seed, table, claims(params, table), values(params, table))


def trace(params: Params, seed: int, method: str, repetition: int) -> Trace:
    """One run over time."""
    data = bits(params.n_users, params.horizon, params.epoch_length)
    settings = protocols(params, params.n_users, params.horizon)[method]
    return simulate(settings, data, stream(seed, "time", method, repetition))


def _run(settings: Thresh, data: BitStream, rng: np.random.Generator) -> dict[str, Any]:
    result = simulate(settings, data, rng)
    updates = int(result.updated.sum())
    return errors(result.estimate, data.truth) | {
        "updates": updates,
        "frozen": int(result.frozen.sum()),
        "spent": 2 * int(result.max_votes[-1]) * settings.vote_epsilon + updates * settings.estimate_epsilon,
        "bound": settings.error_bound,
    }


def _rivals(
    params: Params, data: BitStream, crews: CrewThresh | None, rng: np.random.Generator, *methods: str
) -> Iterator[dict[str, Any]]:
    """Users split instead of epsilon: roles by lot, over epochs as reported and averaged, and over 16 periods."""
    found = reported_once(data, params.epsilon, rng, *methods)
    if CREWS in methods and crews is not None:
        found[CREWS] = np.array([release.estimate for release in crew_thresh.simulate(crews, data, rng)])
    if SIXTEEN in methods:
        found[SIXTEEN] = baselines.recompute(data, params.epsilon, rng, every=max(1, data.horizon // 16), split="users")
    for method, estimates in found.items():
        yield {"method": method} | errors(estimates, data.truth)


def _compared(params: Params, seed: int, part: str) -> Iterator[dict[str, Any]]:
    """Every method on the three changes: over time, and for each horizon or number of users of a sweep."""
    points: dict[str, list[tuple[int, int, tuple[int, ...]]]] = {  # users, horizon, and what names the point's streams
        "time": [(params.n_users, params.horizon, ())],
        "horizon": [(HORIZON_SWEEP_USERS, horizon, (horizon,)) for horizon in params.horizon_sweep],
        "n_users": [(n_users, params.horizon, (n_users,)) for n_users in params.n_users_sweep],
    }
    for n_users, horizon, point in points[part]:
        data, both = bits(n_users, horizon, params.epoch_length), protocols(params, n_users, horizon)
        crews, setting = by_lot(params, n_users, horizon), {"part": part, "horizon": horizon, "n_users": n_users}
        runs = params.repetitions if part == "time" else params.sweep_repetitions
        for method in METHODS:
            for repetition in range(runs * MORE.get((part, method), 1)):
                row, rng = (
                    setting | {"method": method, "repetition": repetition},
                    stream(seed, part, method, *point, repetition),
                )
                if method in both:
                    yield row | _run(both[method], data, rng)
                    continue
                estimates = baselines.recompute(data, params.epsilon, rng, composition=BASELINES[method], delta=DELTA)
                yield row | errors(estimates, data.truth)
        for repetition in range(runs if part != "horizon" else max(runs, ERRORS // horizon)):
            row, rng = setting | {"repetition": repetition}, stream(seed, part, ONCE, *point, repetition)
            others = (ONLINE, HINDSIGHT, CREWS, SIXTEEN) if repetition < runs else ()
            yield from (row | found for found in _rivals(params, data, crews, rng, ONCE, *others))


def _sizes(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    """One change right after a quarter of the horizon: how many epochs until an update, against its size in top thresholds."""
    settings = protocols(params, params.n_users, params.horizon)[TUNED]
    top = settings.threshold(1)
    change = params.horizon // 4 + 1
    for share in np.round(np.geomspace(0.05, 2.0, 16), 3):
        size = float(share * top)
        if START + size > 1:
            continue
        means = streams.steps(params.horizon, START, {change: START + size})
        data = BitStream.make([params.n_users], means, params.epoch_length)
        for repetition in range(params.sweep_repetitions):
            result = simulate(settings, data, stream(seed, "size", str(share), repetition))
            after = np.flatnonzero(result.updated[change - 1 :])
            delay = int(after[0]) if len(after) else params.horizon - change
            yield {
                "part": "size",
                "repetition": repetition,
                "size": size,
                "share": float(share),
                "delay": delay,
                "found": int(len(after) > 0),
                "predicted": predicted_delay(settings, size, change),
                **errors(result.estimate, data.truth),
            }


def _drifts(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    """A mean that moves by `size` over the horizon: THRESH, recomputation 16 times, and the rivals that split users."""
    settings, every = protocols(params, params.n_users, params.horizon)[TUNED], params.horizon // 16
    crews = by_lot(params, params.n_users, params.horizon)
    for size in (0.0, 0.05, 0.1, 0.2, 0.4):
        means = streams.drift(params.horizon, START, START + size)
        data = BitStream.make([params.n_users], means, params.epoch_length)
        for repetition in range(params.sweep_repetitions):
            setting = {"part": "drift", "repetition": repetition, "size": size}
            yield setting | {"method": TUNED} | _run(settings, data, stream(seed, "drift", str(size), "thresh", repetition))
            rng = stream(seed, "drift", str(size), every, repetition)
            estimates = baselines.recompute(data, params.epsilon, rng, every=every)
            yield setting | {"method": recomputed(every)} | errors(estimates, data.truth)
            rng = stream(seed, "drift", str(size), ONCE, repetition)
            yield from (setting | row for row in _rivals(params, data, crews, rng, ONLINE, HINDSIGHT, CREWS, SIXTEEN))


def _scenarios(params: Params, seed: int) -> Iterator[dict[str, Any]]:
    """Other streams: THRESH, tuned for each, recomputation in every epoch, and the rivals that split users."""
    for scenario in scenarios(params):
        for repetition in range(params.sweep_repetitions):
            setting = {"part": "scenario", "repetition": repetition, "scenario": scenario.name}
            rng = stream(seed, "scenario", scenario.name, repetition)
            yield setting | {"method": TUNED} | _run(scenario.settings, scenario.data, rng)
            estimates = baselines.recompute(scenario.data, params.epsilon, rng, composition="optimal", delta=DELTA)
            yield setting | {"method": OPTIMAL} | errors(estimates, scenario.data.truth)
            rng = stream(seed, "scenario", scenario.name, ONCE, repetition)
            found = _rivals(params, scenario.data, scenario.crews, rng, ONLINE, HINDSIGHT, CREWS)
            yield from (setting | row for row in found)
