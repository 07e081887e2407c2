"""Entries of the ledger for simulations of shifting heavy hitters: they must have the exact law of the methods' own steps.

Streams of two or three users, in one step or two; `exact.shifted` says which.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from evolvingdp.audit.exact import shifted
from evolvingdp.audit.exact.shifted import one_family, shifted_loss, small, two_users
from evolvingdp.audit.ledger.entry import EXACT, Entry
from evolvingdp.audit.ledger.mutant import broken
from evolvingdp.audit.ledger.threshold_monitor import LARGE
from evolvingdp.sparse_vector import baselines, shifting_simulation
from evolvingdp.sparse_vector.above_threshold import AboveThreshold
from evolvingdp.sparse_vector.find_step import FindStep
from evolvingdp.sparse_vector.histograms import HISTOGRAMS, HistogramEveryStep
from evolvingdp.sparse_vector.noise import MonitorNoise
from evolvingdp.sparse_vector.streams import drawn, general
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving

_SIX, _MANY = 6.0, 30.0
_ONE, _TWO = (small(2, horizon=1), small(3, horizon=1)), (small(2), small(3))


def entries() -> Iterator[Entry]:
    yield from _monitors()
    yield from _rivals()


def _entry(
    id: str, name: str, covers: tuple[Any, ...], promised: float, measure: Callable[[], float], mutant: str,
    change: tuple[str, str, str],
) -> Entry:  # fmt: skip
    return Entry(
        f"simulated_{id}", "sparse_vector", f"{name}, simulated", covers, "how many are reported, a user in all steps",
        "replacement of a user", EXACT, promised, measure, mutant, broken(measure, *change), LARGE,
    )  # fmt: skip


def _monitors() -> Iterator[Entry]:
    path, covers = "sparse_vector/shifting_simulation.py", (ThresholdMonitorEvolving, shifting_simulation.simulate)
    for id, cap, inner, mutant, old, new in (
        ("", 0.05, 0.0, "the noise of an event is drawn once a family",
         "noise.sample(len(events), rng)", "noise.sample(len(stream.families), rng)[stream.family[events]]"),
        ("_events", 0.05, 0.01, "the events of a family that are found are its first",
         "events[rng.choice(len(events), size=rarer, replace=False, shuffle=False)]", "events[:rarer]"),
    ):  # fmt: skip
        noise = MonitorNoise(cap, inner)

        def loss(noise: MonitorNoise = noise, id: str = id) -> float:
            if id:
                on = small(2, horizon=1)
                alike = shifted.crossing_alike(noise, 2.4) and shifted.crossing_alike(noise, 2.9)
                monitor = ThresholdMonitorEvolving(MonitorNoise(noise.cap, 0.0), 2.4, 1)
                return shifted_loss(monitor, shifting_simulation.simulate, (on, _ONE[1]), LARGE) if alike else math.inf
            monitor = ThresholdMonitorEvolving(noise, 1.5, 1)
            others = (two_users(0), two_users(1), two_users(0, 1), one_family())
            return shifted_loss(monitor, shifting_simulation.simulate, _ONE, LARGE, others)

        yield _entry(
            f"shifting{id}", f"shifting heavy hitters{id.replace('_', ', ')}", covers, 2 / noise.scale, loss, mutant, (path, old, new),
        )  # fmt: skip

    for id, name, loss_of_users, module, mutant, old, new in (
        ("drawn", "words drawn afresh", shifted.drawn_loss, drawn, "nobody is deleted",
         "        counted[1:] += moved\n", "        counted[0] += moved.sum()\n"),
        ("general", "any streams", shifted.general_loss, general, "who is deleted still counts in that step",
         "sums[by_type.indices[by_type.indptr[gone] : by_type.indptr[gone + 1]]] -= users[gone]", "pass"),
    ):  # fmt: skip
        noise = MonitorNoise(0.05, 0.0)
        yield _entry(
            f"stream_{id}", f"ThresholdMonitor, {name}", (ThresholdMonitorEvolving, module.simulate), 2 / noise.scale,
            partial(loss_of_users, ThresholdMonitorEvolving(noise, 1.5, 1), LARGE), mutant,
            (f"sparse_vector/streams/{id}.py", old, new),
        )  # fmt: skip


def _rivals() -> Iterator[Entry]:
    path = "sparse_vector/baselines.py"
    for kind in HISTOGRAMS:
        every = HistogramEveryStep.calibrated(_SIX, LARGE, 2, 4, kind=kind)
        yield _entry(
            f"histogram_{kind}".replace(" ", "_"), f"histogram in every step, {kind}", (HistogramEveryStep, baselines.simulate_histogram),
            _SIX, partial(shifted_loss, every, baselines.simulate_histogram, _TWO, LARGE), "elements of one user by the law of none",
            (path, "single = rare_count(stream.single_queries, float(method.sf(method.threshold - 1)), rng)",
             "single = rare_count(stream.single_queries, float(method.sf(method.threshold)), rng)"),
        )  # fmt: skip
    still = (
        path,
        "np.resize(method.threshold + shifts, method.reports)",
        "np.full(method.reports, float(method.threshold))",
    )
    made = AboveThreshold.calibrated
    covers = (AboveThreshold, baselines.simulate_threshold)
    for id, method, pair, mutant, change in (
        ("once", made(_MANY, LARGE, 1, 1.5, composition="basic", split=2 / 3), _TWO, "the threshold has no noise", still),
        ("basic", made(2 * _MANY, LARGE, 2, 1.5, composition="basic", split=2 / 3), _ONE, "the threshold has no noise", still),
        ("single", made(2 * _MANY, LARGE, 2, 1.5, composition="single", split=2 / 3), _ONE, "the threshold has no noise", still),
        ("exponential", made(_MANY, LARGE, 1, 2.4, composition="basic", noise="exponential", split=2 / 3), _TWO,
         "the threshold has no noise", still),
        ("stable", AboveThreshold.stable_gaussian(_SIX, LARGE, 2, 4), _TWO, "elements of nobody are reported",
         (path, "low = np.zeros_like(low)", "low = low / 2")),
    ):  # fmt: skip
        yield _entry(
            f"above_threshold_{id}", f"AboveThreshold, {id}", covers, method.reports * _MANY if id != "stable" else _SIX,
            partial(shifted_loss, method, baselines.simulate_threshold, pair, LARGE, keeps=True), mutant, change,
        )  # fmt: skip
    yield _entry(
        "find_step", "find the step, then histogram", (FindStep, baselines.simulate_find_step), 2 * _MANY,
        partial(shifted_loss, FindStep.calibrated(2 * _MANY, LARGE, 1, 1.5, 4), baselines.simulate_find_step, _TWO, LARGE, keeps=True),
        "the threshold has no noise", still,
    )  # fmt: skip
