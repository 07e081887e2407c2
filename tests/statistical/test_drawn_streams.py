"""Words drawn afresh in every step: the simulation by counts of users against the monitor run user by user."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from evolvingdp.core.seeds import stream
from evolvingdp.sparse_vector import ThresholdMonitorEvolving
from evolvingdp.sparse_vector.noise import MonitorNoise
from evolvingdp.sparse_vector.streams import drawn
from support import ALPHA, pvalue

LAWS = np.array([[0.5, 0.2], [0.6, 0.1], [0.3, 0.6], [0.5, 0.3]])  # the rest holds neither
USERS, RUNS = 40, 1500
MONITOR = ThresholdMonitorEvolving(MonitorNoise(0.3, 1.0), 14.0, 2)


def literally(rng):
    """Reports and active users of every step, from `step_elements` with a third element for those who hold neither."""
    state, seen = MONITOR.start(USERS), []
    for law in LAWS:
        held = rng.choice(3, size=USERS, p=[*law, 1 - law.sum()])
        weights = np.bincount(held[state.active], minlength=3)[:2]
        above = weights + MONITOR.noise.draw(2, rng) >= MONITOR.threshold
        state = MONITOR._asked(state, 1, np.append(above, False)[held] if above.any() else None)
        seen += [*above.tolist(), int(state.active.sum()) // 8]
    return tuple(seen[3:])


def simulated(rng, laws=LAWS):
    above, active = drawn.simulate(MONITOR, USERS, laws, rng)
    return tuple(np.column_stack([above, active // 8])[1:].astype(int).ravel().tolist())


def test_counts_of_users_have_the_law_of_users():
    one = Counter(tuple(map(int, literally(stream(0, "literal", run)))) for run in range(RUNS))
    assert pvalue(one, Counter(simulated(stream(0, "counted", run)) for run in range(RUNS))) > ALPHA
    wrong = Counter(simulated(stream(0, "wrong", run), 0.9 * LAWS) for run in range(RUNS))
    assert pvalue(one, wrong) < ALPHA, "probabilities 10 % too small are rejected"


def test_laws_that_are_none_are_refused():
    with pytest.raises(ValueError, match="laws must hold rows of probabilities that sum to 1 at most"):
        drawn.simulate(MONITOR, USERS, [[0.7, 0.4]], stream(0, "refused"))
