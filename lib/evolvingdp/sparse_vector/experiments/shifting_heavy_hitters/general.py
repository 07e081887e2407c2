"""Rows of the general stream: ThresholdMonitor at several k, up to the stream's own k*."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from evolvingdp.core.seeds import stream
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.methods import MONITOR, calibrated
from evolvingdp.sparse_vector.experiments.shifting_heavy_hitters.params import Target
from evolvingdp.sparse_vector.general_streams import GeneralStream, random_stream, simulate
from evolvingdp.sparse_vector.shifting import Plan, plan

TYPES, STEPS, EXPONENT = 1000, 100, 0.7
SMALLER = (3, 10, 30)  # k, beside k*


def general_rows(target: Target, n_users: int, repetitions: int, seed: int) -> Iterator[dict[str, Any]]:
    """Of the elements of at least the error at k*, the share that is found (nan: there are none); and all that is found."""
    data = random_stream(
        n_users, TYPES, STEPS, target.n_elements, stream(seed, "general", "stream"), held=2, exponent=EXPONENT
    )
    enough, own = participation(target, data)
    heavy = np.concatenate(data.weights) >= own.error
    events = int(heavy.sum())
    for reports in sorted({*SMALLER, enough}):
        monitor = _plan(target, data, reports).monitor
        for repetition in range(repetitions):
            steps, absent = simulate(monitor, data, stream(seed, "general", reports, repetition))
            found = np.concatenate(steps)
            share = int((found & heavy).sum()) / events if events else math.nan
            yield {
                "part": "general", "method": MONITOR, "reports": reports, "repetition": repetition, "error": own.error,
                "participation": enough, "held": data.n_entries, "events": events, "heavy_share": share,
                "found": int(found.sum()), "absent": absent,
            }  # fmt: skip


def participation(target: Target, data: GeneralStream) -> tuple[int, Plan]:
    """The smallest k for which nobody is in more than k elements that may be reported, with its plan.

    An element of less than twice the threshold less the error is reported with probability beta / 2 at most.
    """
    reports = 1
    while True:
        found = _plan(target, data, reports)
        needed = data.participation(2 * found.monitor.threshold - found.error)
        if needed <= reports:
            return reports, found
        reports = needed


def _plan(target: Target, data: GeneralStream, reports: int) -> Plan:
    """All elements that are held count as events: none of them is missed, or reported far below the threshold."""
    events = sum(len(one) for one in data.elements)
    return plan(calibrated(target, reports), len(data.held), target.n_elements, events, target.beta)
