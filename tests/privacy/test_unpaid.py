"""What nothing has been paid for, and what random doubles cannot keep, is refused: what neither the doors of the registry
(`test_refusals`) nor the tables of the rooms' own tests ask."""

from __future__ import annotations

import math
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
from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.noise import Laplace, Tape
from evolvingdp.core.olh import OLH
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.seeds import stream
from evolvingdp.evolving.thresh import Thresh
from evolvingdp.heavy_hitters.count_sketch import FreqOracle
from evolvingdp.heavy_hitters.rappor import Rappor
from evolvingdp.heavy_hitters.sketches.projective import ProjectiveOracle

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


KEYS = np.arange(12, dtype=np.uint64)


def test_what_random_doubles_cannot_keep_is_refused():
    for noise in (1e-16, 1e-300, 1 - 2.0**-53):
        with pytest.raises(ValueError, match="permanent_noise must be 0 or lie in"):
            Rappor(permanent_noise=noise)
    with pytest.raises(ValueError, match="one_from_one must be above one_from_zero by"):
        Rappor(one_from_zero=1e-20, one_from_one=2e-20)
    for epsilon, values in ((36.4, 3), (37.0, 1000), (1e-17, 3)):
        with pytest.raises(ValueError, match="epsilon must be"):
            OLH(epsilon, values=values)
    with pytest.raises(ValueError, match="epsilon must be at least 1e-14"):
        SignFlip(1e-15)


class Untouched:
    """A generator that must not be drawn from."""

    def __getattr__(self, name):
        raise AssertionError(f"{name} was drawn before the input was refused")


@pytest.mark.parametrize("entry", [0, 2, -3])
def test_a_sign_that_is_none_is_refused_before_any_draw(entry):
    with pytest.raises(ValueError, match=f"x must hold [+]1 or -1, got {entry} at position 1"):
        SignFlip(1.0).randomize(np.array([1, entry]), Untouched())
    with pytest.raises(TypeError, match="x must be an array of signed integers"):
        SignFlip(1.0).randomize(np.array([1, 255], dtype=np.uint8), Untouched())  # -1 has no sign there


@pytest.mark.parametrize("share", [-0.01, 1.01, math.nan, math.inf])
def test_a_share_outside_of_0_to_1_is_refused_before_any_draw(share):
    with pytest.raises(ValueError, match=r"shares must lie in \[0, 1\], got .* at position 1"):
        SignFlip(1.0).draw_reports(np.array([0.5, share]), Untouched())


def test_one_user_s_word_is_not_repeated_for_many_rows():
    """Else one user would send as many reports of one word, each for the stated epsilon."""
    hashes, rows = MultiplyShift.draw(3, 8, stream(0, "hashes")), np.arange(3)
    oracle = ProjectiveOracle.draw(3, 8, 1.0, stream(0, "hashes"))
    for send in (FreqOracle(hashes, 1.0).report, oracle.report):
        with pytest.raises(ValueError, match="must have one entry per report, got 1, 3"):
            send(KEYS[:1], rows, Untouched())
