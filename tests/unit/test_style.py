"""The colours of lines: legible on white, and told apart."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from colours import contrast
from matplotlib.colors import to_hex, to_rgb
from scipy import stats

from evolvingdp.book.style import COLUMN, INCHES, INKS, PALETTE, canvas, lines, names_beside


def test_lines_are_legible_and_told_apart():
    assert min(contrast(to_hex(colour), "#ffffff") for colour in INKS) >= 4.5
    for one, other in combinations(INKS, 2):
        apart = max(abs(a - b) for a, b in zip(to_rgb(one), to_rgb(other), strict=True))
        assert apart > 0.2, (one, other)


def test_every_colour_of_the_palette_may_write_a_name():
    assert min(contrast(colour, "#ffffff") for colour in PALETTE) >= 4
    assert len(set(PALETTE)) == len(PALETTE) == 10


def test_contrast_is_that_of_the_guidelines():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#ffff00", "#ffffff") < 1.8 < 3


RUNS = pd.DataFrame({"n": [10] * 3 + [1000] * 3, "error": [1.0, 10.0, 100.0, 2.0, 20.0, 200.0], "method": "m"})


@pytest.mark.parametrize("axis", ["x", "y"])
def test_lines_refuse_to_average_on_an_axis_that_is_logarithmic_already(axis):
    _, ax = canvas()
    ax.set(**{f"{axis}scale": "log"})
    with pytest.raises(ValueError, match="lines must be drawn on linear axes, before any scale is set"):
        lines(RUNS, "n", "error", ax, looks={"m": {"color": "black"}})


def test_lines_show_the_mean_of_the_runs_and_its_interval_whatever_the_scale_is_afterwards():
    """Of 1, 10 and 100 the mean is 37; on a logarithmic axis seaborn would draw the mean of logarithms, 10."""
    _, ax = canvas()
    lines(RUNS, "n", "error", ax, looks={"m": {"color": "black"}}, xscale="log", yscale="log")
    (line,), (band,) = ax.lines, ax.collections
    assert line.get_xydata().tolist() == [[10, 37], [1000, 74]]
    high = stats.t.interval(0.95, 2, 37, stats.sem([1, 10, 100]))[1]
    assert band.get_paths()[0].vertices[:, 1].max() == pytest.approx(2 * high)
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")


def test_for_a_printed_column_panels_stand_below_each_other_and_names_wait_for_the_legend():
    token = COLUMN.set("some-figure")
    try:
        figure, axes = canvas(10.0, 4.0, rows=2, columns=3, sharey=True, width_ratios=(1, 2, 1))
        names_beside(axes[0, 0], {"ours": 1.0, "theirs": 2.0}, {"ours": "black", "theirs": "tab:red"})
        one = canvas()[1]
    finally:
        COLUMN.reset(token)
    assert axes.shape == (2, 3)
    assert one.get_title() == "", "one panel comes alone"
    assert figure.get_size_inches()[0] == INCHES
    tops = [ax.get_position().y0 for ax in axes.flat]
    assert tops == sorted(tops, reverse=True)
    assert len(set(np.round(tops, 6))) == 6
    assert {name: line.get_color() for name, line in figure.named.items()} == {"theirs": "tab:red", "ours": "black"}


def test_a_name_that_is_pushed_away_is_led_to_the_end_of_its_line():
    _, ax = canvas()
    ax.plot([1, 10, 1000], [95, 99, 99.9], label="near")
    ax.plot([1, 10, 100], [95, 96, 97], label="apart")
    ax.axhline(100, label="across")
    ax.set(xscale="log", ylim=(95, 101))
    names_beside(ax, {"across": 100, "near": 99.9, "apart": 97}, dict.fromkeys(("across", "near", "apart"), "black"))
    led = {text.get_text()[2:] if " " in text.get_text() else text.get_text(): text for text in ax.texts}
    assert {name for name, text in led.items() if text.arrow_patch} == {"across"}
    assert led["across"].xy == pytest.approx((ax.get_xlim()[1], 100))  # as it goes on to the panel's end
