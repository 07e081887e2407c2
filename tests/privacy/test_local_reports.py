"""Local reports where doubles hardly hold them, and what is refused before any draw."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evolvingdp.core.hashing import MultiplyShift
from evolvingdp.core.olh import OLH
from evolvingdp.core.randomizers import SignFlip
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters.count_sketch import FreqOracle
from evolvingdp.heavy_hitters.rappor import Rappor
from evolvingdp.heavy_hitters.sketches.projective import ProjectiveOracle

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
