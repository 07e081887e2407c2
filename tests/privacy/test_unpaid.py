"""What nothing has been paid for is refused: what neither the doors of the registry (`test_refusals`) nor the tables of the
rooms' own tests ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from generators import refusal

from evolvingdp.continual_mean import algorithms, private_median, windows
from evolvingdp.continual_mean.binary_mechanism import BinaryMechanism
from evolvingdp.continual_mean.prefix_sums import Tree
from evolvingdp.continual_mean.user_mean import UserMean
from evolvingdp.core.noise import Laplace, Tape
from evolvingdp.core.olh import OLH
from evolvingdp.core.seeds import stream
from evolvingdp.evolving.thresh import Thresh

Calls = Iterator[Callable[[], Any]]


def of_reports() -> Calls:
    """Hash values that a report does not hold, reports that cost nothing or more than there is."""
    for values in (2**15, 2**16):
        yield partial(OLH, 1.0, values)
    for vote, estimate, votes, estimates in ((1.0, 0.0, 5, 1), (0.0, 0.6, 0, 2), (1.0, 0.6, 1, 1)):
        yield partial(Thresh, 3, 1, 2, 1.0, vote, estimate, votes, estimates, unit=0.01, beta=0.05)


def of_sums() -> Calls:
    """Fractions beside integer noise, users whom nobody knows or who go too far."""
    rng, fine, full = stream(0, "refusals"), algorithms.naive(2, 2, 1.0), algorithms.full(2, 2, 1.0)
    whole = BinaryMechanism(2, 1.0, integer=True)
    yield partial(whole.release, [0.5, 1.0], rng)
    yield partial(whole.step, whole.start(rng), 0.5)
    for who in ([0, 2], [0, 0, 0]):
        yield partial(algorithms.per_step, fine, who, np.ones(len(who)), rng)
        yield partial(full.release, who, np.ones(len(who)), rng)
    yield partial(UserMean(2, 9, 1.0, 1e-6, reach=2.0).release, [0] * 4, [1.0] * 4, rng)
    yield partial(UserMean(2, 2, 1.0, dimensions=2).release_all, [0, 1], np.array([[1.0, 1.0], [1.0, 1.5]]), rng)
    yield partial(Tree(2).all, 4, Tape(Laplace(1.0), rng))
    days = windows.Days(fine, 2, 1)
    yield partial(days.day, days.start(rng), [0], [1.5])
    yield partial(days.day, days.start(rng), [2], [1.0])
    yield partial(private_median.draw, np.array([0.5, 0.5]), 0.0, 4, rng)


@pytest.mark.parametrize("calls", [of_reports, of_sums])
def test_what_is_not_paid_for_is_refused(calls):
    refused = [refusal(call) for call in calls()]
    assert len(refused) >= 5
    assert [number for number, kind in enumerate(refused) if not kind] == []
