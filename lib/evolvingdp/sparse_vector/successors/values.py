"""A value with each yes of ThresholdMonitor, at no cost: the noisy sum that was compared.

**Computes** for queries in {0, 1} yes or no as `ThresholdMonitorEvolving.step`, and with a yes the sum over active users
plus the noise of that answer.

**Guarantee.** That of the monitor's calibration, unchanged: the value is free (chapter). It would not be with noise on the
threshold, which all answers share: AboveThreshold must not show its values (Lyu, Su and Li 2017, their Algorithm 3).

**Error.** The sum leaves out whoever is deleted, which nobody can undo. And the noise is that of a yes: it is larger than 0
on average by `selection_bias`, the more the closer the sum is to the threshold; below it the value says nothing of the sum.
`corrected` inverts the mean. For Laplace and integer noise; the inner noise of the paper is ignored by both.

**Source.** Ours; the state is **secret**, the release public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from evolvingdp.core import checks
from evolvingdp.sparse_vector.threshold_monitor import Query, State, ThresholdMonitorEvolving


@dataclass(frozen=True)
class Valued:
    """What everybody sees: `value` is nan where the answer is no."""

    above: bool
    value: float


NO = Valued(False, math.nan)


def step_with_value(
    monitor: ThresholdMonitorEvolving, state: State, data: Any, query: Query, rng: np.random.Generator
) -> tuple[State, Valued]:
    """`monitor.step`, with the value.  Raises ValueError for queries in [0, 1], which the proof does not cover."""
    if monitor.queries != "binary":
        raise ValueError(f"queries must be 'binary' for a value with each yes, got {monitor.queries!r}")
    checks.state(state, State)
    values = monitor.values(state, query(data))
    noisy = float(np.count_nonzero(values & state.active) + monitor.noise.draw(rng))
    if noisy < monitor.threshold:
        return state, NO
    return monitor.counted(state, values), Valued(True, noisy)


def selection_bias(above: float, scale: float) -> float:
    """E[noise | yes] of Laplace noise where the sum is `above` the threshold by this; -above + scale below it."""
    checks.positive(scale=scale)
    if above <= 0:
        return scale - above
    share = math.exp(-above / scale)
    return (above + scale) * share / (2 - share)


def corrected(value: float, threshold: float, scale: float) -> float:
    """The sum whose yes has this `value` on average; the threshold where the value is less than `scale` above it."""
    checks.positive(scale=scale)
    if not value >= threshold:
        raise ValueError(f"value must be >= threshold = {threshold!r}, got {value!r}")
    excess = value - threshold
    if excess <= scale:
        return threshold
    return threshold + float(brentq(lambda above: above + selection_bias(above, scale) - excess, 0.0, excess))
