"""What the chapters open with, one stop at a time; `drawn.live` makes them move.

A number in a sentence is a mean over runs or a formula, so that stops come in order; the drawing is one run.
"""

from __future__ import annotations

import csv
import json
import math
from functools import cache
from pathlib import Path

import numpy as np

from drawn.svg import WIDTH, Drawing
from evolvingdp.book.checkout import Project
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import BitStream, Once
from evolvingdp.evolving.rivals import once

LEFT, RIGHT = 34, WIDTH - 8
RUNS = 4


def short(number: float) -> str:
    """Two digits, without powers of ten."""
    return f"{number:,.{max(0, 1 - math.floor(math.log10(number)))}f}" if number else "0"


@cache
def _values(root: Path, notebook: str) -> dict[str, float]:
    return dict(json.loads((Project(root).results / notebook / "values.json").read_text()))


@cache
def _column(root: Path, file: str, name: str) -> tuple[float, ...]:
    with (Project(root).results / file).open(newline="") as table:
        return tuple(float(row[name]) for row in csv.DictReader(table))


def path(xs: np.ndarray, ys: np.ndarray) -> str:
    """A line through the points; of those between the ends of a level stretch none."""
    keep = [
        place for place in range(len(ys)) if not 0 < place < len(ys) - 1 or not ys[place - 1] == ys[place] == ys[place + 1]
    ]
    return "M" + "L".join(f"{xs[place]:.0f} {ys[place]:.0f}" for place in keep)


# How often is a user asked?  The stream of `ev-thresh-time`.

TIMES = (1024, 256, 64, 16, 4, 1)
ANSWERS = tuple(f"{times:,} times" if times > 1 else "once" for times in TIMES)


def _asked(root: Path, times: int, run: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Truth, estimates of each epoch, and their means between the changes found, if every user answers `times` times."""
    told, truth = _values(root, "evolving/thresh"), np.array(_column(root, "evolving/thresh/ev-thresh-time.csv", "truth"))
    users = times * int(told["n_users"])  # `times` lots of each, each with its share of epsilon
    settings = Once(n_users=users, horizon=len(truth), epsilon=told["epsilon"] / times)
    tally = once.simulate(settings, BitStream.make([users], truth, 1), stream(0, "live", "evolving", times, run))
    fit = settings.detect(tally)
    return truth, settings.estimates(tally)[:, 1].clip(0, 1), fit.estimates[:, 1].clip(0, 1)


def answers(root: Path, place: int) -> tuple[Drawing, str]:
    """Estimates of a mean over time, and their averages between the changes that are found."""
    told, times = _values(root, "evolving/thresh"), TIMES[place]
    runs = [_asked(root, times, run) for run in range(RUNS)]
    dots, averaged = (float(np.mean([np.abs(run[kind] - run[0]).mean() for run in runs])) for kind in (1, 2))
    truth, estimates, fit = runs[0]
    drawing = Drawing("A mean over time, and what is told of it", "", 206)
    xs = LEFT + (RIGHT - LEFT) * np.arange(len(truth)) / (len(truth) - 1)
    for share in (0, 0.5, 1):
        drawing.line(LEFT, 180 - 150 * share, RIGHT, 180 - 150 * share, "level")
        drawing.text(LEFT - 5, 184 - 150 * share, f"{share:g}", "small", at="end")
    seen = np.arange(3, len(truth), 6)
    drawing.path("".join(f"M{xs[one]:.0f} {180 - 150 * estimates[one]:.1f}h0" for one in seen), "other dots")
    drawing.path(path(xs, 180 - 150 * truth), "truth")
    drawing.path(path(xs, 180 - 150 * fit), "ours")
    drawing.text(LEFT, 15, "the truth", "small")
    drawing.text(LEFT + 66, 15, "an hour's estimate", "small other")
    drawing.text(RIGHT, 15, "averaged between changes", "small ours", at="end")
    drawing.text(RIGHT, 200, f"{len(truth):,} hours", "small", at="end")
    drawing.says = (
        "Dots, the estimates hour by hour, scatter around the line of a mean that changes three times. The line of their "
        f"averages between detected changes follows it: off by {short(averaged)} on average, and the dots by {short(dots)}."
    )
    price = f"1/{times:,} of the budget" if times > 1 else "the whole budget"
    said = (
        f"Each of {told['n_users']:,.0f} users answers {ANSWERS[place]}, with {price} for an answer: an hour's estimate is "
        f"off by {short(dots)} on average, and by {short(averaged)} once hours between detected changes are averaged."
    )
    return drawing, said
