"""Shifting heavy hitters: report, in every step, the elements that many users hold now.

**Computes** at each step the elements x whose weight, the number of users who hold x, is large: one query of
ThresholdMonitor for each x of the domain.

**Guarantee.** That of the monitor: (epsilon, delta)-differential privacy of all reports of all steps together, for one
user's inputs in all steps, whatever the streams. After `reports` reports of what a user holds the user is deleted, which is
what the noise is for. That nobody is in more events (k* <= `reports`) matters to accuracy only.

**Error.** With probability 1 - beta no element of weight zero is reported in `horizon` steps (E-SV-8), and all events of at
least `error` users are, as long as no user is in more than `reports` of what is reported (E-SV-6).

**Source.** Theorem 4.7; Definition 4.1. `shifting_simulation` has the same law at a cost that does not grow with users,
steps or domain.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.core import checks
from evolvingdp.sparse_vector.calibration import Calibration
from evolvingdp.sparse_vector.threshold_monitor import ThresholdMonitorEvolving


@dataclass(frozen=True)
class Plan:
    """A monitor for a stream, with the weight from which events are found."""

    monitor: ThresholdMonitorEvolving
    error: float  # tau


@checks.plain
def planned_monitor(law: Calibration, horizon: int, n_elements: int, n_events: int, beta: float = 0.05) -> Plan:
    """The lowest threshold at which an element of weight zero is reported with probability beta / 2 at most.

    `error` is the weight from which `n_events` events are all found with probability 1 - beta / 2.  Raises ValueError where
    `law` would delete users for the steps that they are in, and for what is out of range.
    """
    if not isinstance(law, Calibration):
        raise TypeError(f"law must be a Calibration, as calibrate makes it, got {type(law).__name__}")
    checks.integer_at_least(1, horizon=horizon, n_elements=n_elements, n_events=n_events)
    if law.moved is not None and law.moved < horizon:
        raise ValueError(f"horizon must be at most the {law.moved} queries that `moved` of the noise allows, got {horizon}")
    checks.probability(beta=beta)
    threshold = float(law.noise.isf(beta / (2 * horizon * n_elements)))
    missed = -law.noise.lower_quantile(beta / (2 * n_events))
    return Plan(ThresholdMonitorEvolving.calibrated(law, threshold), threshold + missed)


@checks.draws
def solve(
    monitor: ThresholdMonitorEvolving, inputs: Iterable[ArrayLike], n_elements: int, rng: np.random.Generator
) -> list[NDArray[np.int64]]:
    """The reported elements of each step, for `inputs` an array (n_users,) a step: the literal algorithm; where the monitor
    is for elements that are in no list, `n_elements` does not matter.

    Raises ValueError where the number of users changes.
    """
    reported, state = [], None
    for held in inputs:
        if state is None:
            state = monitor.start(len(np.asarray(held)))
        if monitor.unlisted:
            state, found = monitor.step_held(state, held, rng)
        else:
            state, above = monitor.step_elements(state, held, n_elements, rng)
            found = np.flatnonzero(above)
        reported.append(found)
    return reported
