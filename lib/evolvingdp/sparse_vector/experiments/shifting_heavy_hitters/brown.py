"""Rows of the Brown experiment: ThresholdMonitor at several k, and AboveThreshold with the reports in all that suit it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from evolvingdp.core.seeds import stream
from evolvingdp.sparse_vector import baselines
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.methods import (
    MONITOR,
    RENYI,
    REPEATED,
    TEXTBOOK,
    calibrated,
)
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.params import Target
from evolvingdp.sparse_vector.general_streams import GeneralStream, brown_stream, simulate
from evolvingdp.sparse_vector.shifting import plan


def brown_rows(target: Target, copies: int, sweep: tuple[int, ...], repetitions: int, seed: int) -> Iterator[dict[str, Any]]:
    """Words found, of which heavy, at each k of `sweep`; and by AboveThreshold at many c, its best one among them."""
    data = brown_stream(copies)
    weights = np.concatenate(data.weights)
    for reports in sweep:
        own = plan(calibrated(target, reports), len(data.held), data.n_elements, 1000, target.beta)
        heavy = weights >= own.error
        setting = {"part": "brown", "reports": reports, "error": own.error, "participation": data.participation(own.error)}
        for repetition in range(repetitions):
            steps, absent = simulate(own.monitor, data, stream(seed, "brown", reports, repetition))
            found = np.concatenate(steps)
            yield setting | {
                "method": MONITOR, "repetition": repetition, "found": int(found.sum()), "absent": absent,
                "heavy_share": int((found & heavy).sum()) / max(1, int(heavy.sum())),
            }  # fmt: skip
    for name, kinds in ((REPEATED, TEXTBOOK), (RENYI, ("renyi",))):
        yield from _threshold_rows(target, data, name, kinds, sweep, repetitions, seed)


def _threshold_rows(
    target: Target,
    data: GeneralStream,
    name: str,
    kinds: tuple[str, ...],
    sweep: tuple[int, ...],
    repetitions: int,
    seed: int,
) -> Iterator[dict[str, Any]]:
    """A grid of c, and a finer one around the best: the choice looks at the runs, which favours this rival.

    So does it that words which nobody holds are not asked for: they could only use up reports.
    """
    queries, weights = len(data.held) * data.n_elements, np.concatenate(data.weights)

    def words(total: int) -> list[int]:
        method = baselines.best_composition(target.epsilon, target.delta, total, queries, total, kinds, target.beta)[1]
        runs = (stream(seed, "brown", name, total, repetition) for repetition in range(repetitions))
        return [int(baselines.ask(method, weights, rng).sum()) for rng in runs]

    found = {total: words(total) for total in coarse_totals(sweep)}
    found |= {total: words(total) for total in finer_totals(found)}
    for total in sorted(found):
        for repetition, count in enumerate(found[total]):
            yield {"part": "brown", "method": name, "total": total, "repetition": repetition, "found": count}


def coarse_totals(sweep: tuple[int, ...]) -> list[int]:
    """Numbers of reports in all, c: from 10 times the least k to 10 times the largest, each a third more than the last."""
    low, high = min(sweep), max(sweep)
    between = np.geomspace(low, high, 2 + int(8 * np.log10(high / low)))
    return sorted({10 * int(k) for k in (*sweep, *np.round(between))})


def finer_totals(found: dict[int, list[int]]) -> list[int]:
    """Ten more around that with the most words in all its runs, up to its neighbours; multiples of 10."""
    tried = sorted(found)
    best = tried.index(max(tried, key=lambda total: sum(found[total])))
    low, high = tried[max(0, best - 1)], tried[min(best + 1, len(tried) - 1)]
    return sorted({10 * round(total / 10) for total in np.linspace(low, high, 12)} - set(tried))
