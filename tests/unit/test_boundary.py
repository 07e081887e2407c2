"""What arrives from outside: numpy's numbers, truth values, complex numbers; and the states of other mechanisms."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from evolvingdp import continual_mean, evolving, heavy_hitters, sparse_vector
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import protocol
from evolvingdp.evolving.rivals import once

MONITOR = sparse_vector.ThresholdMonitorEvolving.calibrated(sparse_vector.calibrate(1.0, 1e-6, 2), 10.0)
SEARCH = sparse_vector.AboveThreshold.calibrated(1.0, 1e-6, 2, 10.0)
HISTOGRAMS = sparse_vector.histogram(1.0, 1e-6, 4, 3)
BINARY = continual_mean.BinaryMechanism(8, 1.0)
MEAN = continual_mean.UserMean(4, 4, 1.0, batch=3)
THRESH = evolving.Thresh(500, 8, 400, 4.0, 0.5, 0.5, 2, 4, 0.2)
WORDS = evolving.HeavyThresh(THRESH, 2)
ONCE = evolving.Once(500, 8, 4.0)


def rng():
    return stream(0, "boundary")


MECHANISMS = {  # start, and a step from a state
    "ThresholdMonitorEvolving": (lambda: MONITOR.start(3), lambda state: MONITOR.step(state, [1, 0, 0], np.asarray, rng())),
    "AboveThreshold": (lambda: SEARCH.start(rng()), lambda state: SEARCH.step(state, 3.0, rng())),
    "Histogram": (lambda: HISTOGRAMS.start(3), lambda state: HISTOGRAMS.step(state, [0, 1, 1], rng())),
    "BinaryMechanism": (lambda: BINARY.start(rng()), lambda state: BINARY.step(state, 1.0)),
    "UserMean": (lambda: MEAN.start(rng()), lambda state: MEAN.step(state, 0, 1)),
    "Thresh": (
        lambda: protocol.start(THRESH),
        lambda state: protocol.step(THRESH, state, np.zeros(500, dtype=int), rng(), rng()),
    ),
    "HeavyThresh": (
        lambda: protocol.start(WORDS),
        lambda state: protocol.step(WORDS, state, np.full((500, 2), 200), rng(), rng()),
    ),
    "Once": (
        lambda: once.start(ONCE, rng()),
        lambda state: once.step(ONCE, state, np.tile([400, 0], (500, 1)), rng(), rng()),
    ),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_state_can_be_pickled_and_is_refused_by_all_other_mechanisms(name):
    start, step = MECHANISMS[name]
    kept = pickle.dumps(start())
    (_, first), (_, second) = step(start()), step(pickle.loads(kept))
    assert repr(first) == repr(second)
    for other in set(MECHANISMS) - {name}:
        with pytest.raises((TypeError, ValueError), match="state must be "):
            step(MECHANISMS[other][0]())


NUMBERS = {  # calls with a number of a kind that numpy makes, and with Python's
    "calibrate": lambda number: sparse_vector.calibrate(number(1), number(1e-6), 3),
    "plan": lambda number: sparse_vector.smallest_moved_scale(number(2), number(1e-3), 1, 2),
    "loss": lambda number: sparse_vector.delta_attained(number(1), MONITOR.noise, 3, 1),
    "histogram": lambda number: sparse_vector.histogram(number(1), number(1e-30), 3, 4, kind="stable"),
    "binary": lambda number: continual_mean.BinaryMechanism(8, number(90), delta=0.0).noise,
    "recommended": lambda number: continual_mean.recommended(50, 8, number(1)),
    "report": lambda number: evolving.epsilon_of_report(number(1), 40, "optimal", number(1e-6)),
    "hashtogram": lambda number: heavy_hitters.hashtogram(3, 8, number(90), rng()).epsilon,
    "thresh": lambda number: evolving.Thresh(500, 8, 400, number(4), 0.5, 0.5, 2, 4, number(0.25)).privacy_loss,
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("kind", [np.float32, np.float16, lambda value: np.array(value, np.float32)])
def test_numpy_s_numbers_give_what_the_same_numbers_of_python_give(name, kind):
    """float16(1e-30) is 0 and float16(1e-6) another number: what arrives is what counts."""
    call = NUMBERS[name]
    try:
        wanted = call(lambda value: float(kind(value)))
    except ValueError:
        with pytest.raises(ValueError, match="must"):
            call(kind)
    else:
        assert repr(call(kind)) == repr(wanted)
