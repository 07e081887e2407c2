"""The colours of lines: legible on white, and told apart."""

from __future__ import annotations

from itertools import combinations

import pytest
from colours import contrast
from matplotlib.colors import to_hex, to_rgb

from evolvingdp.book.style import INKS, PALETTE

LINES = {"inks": list(INKS)}


@pytest.mark.parametrize("figure", LINES)
def test_lines_are_legible_and_told_apart(figure):
    colours = LINES[figure]
    assert min(contrast(to_hex(colour), "#ffffff") for colour in colours) >= 4.5
    for one, other in combinations(colours, 2):
        apart = max(abs(a - b) for a, b in zip(to_rgb(one), to_rgb(other), strict=True))
        assert apart > 0.2, (one, other)


def test_every_colour_of_the_palette_may_write_a_name():
    assert min(contrast(colour, "#ffffff") for colour in PALETTE) >= 4
    assert len(set(PALETTE)) == len(PALETTE) == 10


def test_contrast_is_that_of_the_guidelines():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#ffff00", "#ffffff") < 1.8 < 3
