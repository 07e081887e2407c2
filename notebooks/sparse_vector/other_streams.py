"""Rows of another stream than Example 1.4: the Brown corpus, where AboveThreshold gets what suits it best."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core.seeds import stream
from evolvingdp.notebooks.sparse_vector import methods
from evolvingdp.notebooks.sparse_vector.methods import target_of
from evolvingdp.sparse_vector.above_threshold import best_threshold
from evolvingdp.sparse_vector.shifting import plan
from evolvingdp.sparse_vector.shifting_simulation import ask
from evolvingdp.sparse_vector.streams.general import Counts, GeneralStream, brown_stream, simulate
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving


def _found(
    monitor: ThresholdMonitorEvolving, data: GeneralStream, heavy: NDArray[np.bool_], rng: np.random.Generator
) -> dict[str, Any]:
    """All that is found, and which share of what is `heavy` (nan: there is nothing)."""
    steps, absent = simulate(monitor, data, rng)
    found = np.concatenate(steps)
    share = float(found[heavy].mean()) if heavy.any() else math.nan
    return {"heavy_share": share, "found": int(found.sum()), "absent": absent}


def brown_rows(params: Any, seed: int) -> Iterator[dict[str, Any]]:
    """Words found, of which heavy, at each k of the sweep; and by AboveThreshold at many c, its best one among them."""
    data = brown_stream(params.copies)
    weights = np.concatenate(data.weights)
    for reports in params.brown_sweep:
        own = plan(methods.calibrated(target_of(params), reports), len(data.held), data.n_elements, 1000, params.beta)
        heavy = weights >= own.error
        setting = {"part": "brown", "reports": reports, "error": own.error, "participation": data.participation(own.error)}
        for repetition in range(params.sweep_repetitions):
            found = _found(own.monitor, data, heavy, stream(seed, "brown", reports, repetition))
            yield setting | {"method": methods.MONITOR, "repetition": repetition} | found
    for name in (methods.REPEATED, methods.GAUSSIAN):
        yield from _threshold_rows(params, weights, data, name, seed)


def _threshold_rows(params: Any, weights: Counts, data: GeneralStream, name: str, seed: int) -> Iterator[dict[str, Any]]:
    """A grid of c, and a finer one around the best: the choice looks at the runs, which favours this rival.

    So does it that words which nobody holds are not asked for: they could only use up reports. A user moves at most all
    words of two documents.
    """
    moved = 2 * max(int(held.sum(axis=0).max()) for held in data.held)
    queries = len(data.held) * data.n_elements

    def words(total: int) -> list[int]:
        method = best_threshold(
            params.epsilon, params.delta, total, queries, (methods.SEARCHES[name],), params.beta, moved=moved
        )
        runs = (stream(seed, "brown", name, total, repetition) for repetition in range(params.sweep_repetitions))
        return [int(ask(method, weights, rng).sum()) for rng in runs]

    found = {total: words(total) for total in coarse_totals(params.brown_sweep, 100 if name == methods.GAUSSIAN else 10)}
    found |= {total: words(total) for total in finer_totals(found)}
    for total in sorted(found):
        for repetition, count in enumerate(found[total]):
            yield {"part": "brown", "method": name, "total": total, "repetition": repetition, "found": count}


def coarse_totals(sweep: tuple[int, ...], factor: int = 10) -> list[int]:
    """Numbers of reports in all, c: from 10 times the least k to `factor` times the largest, each less than twice the last."""
    low, high = min(sweep), max(sweep) * factor // 10
    between = np.geomspace(low, high, 2 + int(5 * np.log10(high / low)))
    return sorted({10 * int(k) for k in (*sweep, *np.round(between))})


def finer_totals(found: dict[int, list[int]]) -> list[int]:
    """Ten more around that with the most words in all its runs, up to its neighbours; multiples of 10."""
    tried = sorted(found)
    best = tried.index(max(tried, key=lambda total: sum(found[total])))
    low, high = tried[max(0, best - 1)], tried[min(best + 1, len(tried) - 1)]
    return sorted({10 * round(total / 10) for total in np.linspace(low, high, 12)} - set(tried))
