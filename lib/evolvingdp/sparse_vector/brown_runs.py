"""Rows of the Brown experiment: ThresholdMonitor at several k, and AboveThreshold with ten times as many reports in all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evolvingdp.core.seeds import stream
from evolvingdp.sparse_vector import baselines, documents
from evolvingdp.sparse_vector.methods import MONITOR, RENYI, REPEATED, TEXTBOOK, Target, calibrated
from evolvingdp.sparse_vector.shifting import plan


def brown_rows(target: Target, copies: int, sweep: tuple[int, ...], repetitions: int, seed: int) -> Iterator[dict[str, Any]]:
    """Words found, of which heavy; the same numbers of reports per user (k) and in all (c)."""
    data = documents.brown_stream(copies)
    steps, size = len(data.steps), documents.N_ELEMENTS
    weights = [data.weights(step) for step in range(steps)]
    for reports in sweep:
        own = plan(calibrated(target, reports), steps, size, 1000, target.beta)
        heavy = [weight >= own.error for weight in weights]
        held = max(1, sum(int(one.sum()) for one in heavy))
        setting = {"part": "brown", "reports": reports, "error": own.error, "participation": data.participation(own.error)}
        for repetition in range(repetitions):
            found, absent = documents.monitor_documents(own.monitor, data, stream(seed, "brown", reports, repetition))
            share = sum(int((a & b).sum()) for a, b in zip(found, heavy, strict=True)) / held
            yield setting | {
                "method": MONITOR, "repetition": repetition, "found": sum(int(a.sum()) for a in found), "absent": absent,
                "heavy_share": share,
            }  # fmt: skip
        total = 10 * reports
        for name, kinds in ((REPEATED, TEXTBOOK), (RENYI, ("renyi",))):
            method = baselines.best_composition(
                target.epsilon, target.delta, total, steps * size, total, kinds, target.beta
            )[1]
            for repetition in range(repetitions):
                found = documents.threshold_documents(method, data, stream(seed, "brown", name, reports, repetition))
                yield setting | {
                    "method": name,
                    "repetition": repetition,
                    "found": sum(int(a.sum()) for a in found),
                    "total": total,
                }
