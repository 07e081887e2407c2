"""What the chapters open with, one stop at a time; `drawn.live` makes them move.

A number in a sentence is a mean over runs or a formula, so that stops come in order; the drawing is one run.
"""

from __future__ import annotations

import csv
import gzip
import json
import math
from functools import cache
from pathlib import Path

import numpy as np

from drawn.svg import WIDTH, Drawing
from evolvingdp.book.checkout import Project
from evolvingdp.continual_mean import BinaryMechanism
from evolvingdp.core.seeds import stream
from evolvingdp.evolving import BitStream, Once
from evolvingdp.evolving.rivals import once
from evolvingdp.sparse_vector import calibrate

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


# How many users does it take to see a word?  The words of Brown, one bit a user.

USERS = (10**4, 10**5, 10**6, 10**7, 10**8, 10**9)
CROWDS = ("ten thousand", "a hundred thousand", "a million", "ten million", "a hundred million", "a billion")
NAMED = (1, 4, 12, 40, 130, 500)  # ranks of words that the picture names
ERRORS = 5  # standard errors above which a count is no noise


@cache
def _brown(root: Path) -> list[tuple[str, float]]:
    with gzip.open(root / "data" / "brown_words.csv.gz", "rt", newline="") as table:
        rows = [(row["whole"], int(row["count"])) for row in csv.DictReader(table)]
    total = sum(count for _, count in rows)
    return [(word, count / total) for word, count in rows]


def words(root: Path, place: int) -> tuple[Drawing, str]:
    """Shares of words by rank, on two logarithmic axes, and the share above which a word is no noise."""
    epsilon = _values(root, "heavy_hitters/frequency_oracle")["epsilon"]
    seen = ERRORS / math.tanh(epsilon / 2) / math.sqrt(USERS[place])
    brown = _brown(root)
    found = sum(share > seen for _, share in brown)
    drawing = Drawing("The words of a language, and those that a crowd can reveal", "", 214)

    def x(rank: float) -> float:
        return LEFT + 14 + (RIGHT - LEFT - 14) * math.log(rank) / math.log(3000)

    def y(share: float) -> float:
        return 24 + 160 * math.log(0.1 / share) / math.log(0.1 / 3e-5)

    for share, said in ((0.1, "10 %"), (0.01, "1 %"), (0.001, "0.1 %"), (1e-4, "0.01 %")):
        drawing.line(LEFT + 14, y(share), RIGHT, y(share), "level")
        drawing.text(LEFT + 8, y(share) + 4, said, "small", at="end")
    ranks = sorted({round(10 ** (step / 40)) for step in range(140)})
    for kind, low, high in (("other", max(found, 1), 3000), ("ours", 1, found)):
        course = [f"{x(rank):.0f} {y(brown[rank - 1][1]):.0f}" for rank in {low, *ranks, high} if low <= rank <= high]
        course.sort(key=lambda point: float(point.split()[0]))
        drawing.path("M" + "L".join(course or ["0 0"]), kind)
    for rank in NAMED:
        word, share = brown[rank - 1]
        drawing.text(x(rank) + 5, y(share) - 5, word, "small ours halo" if share > seen else "small halo")
    drawing.line(LEFT + 14, y(seen), RIGHT, y(seen), "axis")
    drawing.text(RIGHT, y(seen) - 9 if seen < 0.05 else y(seen) + 12, "what noise hides", "small halo", at="end")
    drawing.text(RIGHT, 204, "words, the most frequent first", "small", at="end")
    drawing.text(LEFT + 14, 204, f"found: {found:,}", "strong")
    drawing.says = (
        f"The share of each word falls along a line from 7 % for “the”. A level line stands at {100 * seen:.2g} %; "
        f"above it are {found:,} words."
    )
    verb = "word stands" if found == 1 else "words stand"
    said = (
        f"One random bit from each of {CROWDS[place]} users, at a privacy loss of {epsilon:g}: {found:,} {verb} out of the "
        f"noise, those that more than {100 * seen:.2g} % of the users hold."
    )
    return drawing, said


# How many readings of a user count?  A running mean that slowly rises, from users in random order.

CAPS = (1, 4, 16, 32, 128, 1024)
COUNTED = tuple(f"the first {cap:,}" if cap > 1 else "the first one" for cap in CAPS)
READERS, READINGS, PRICE = 5_000, 100_000, 2.0  # users, their readings in all, and the epsilon of a user


@cache
def _readings(run: int) -> tuple[np.ndarray, np.ndarray]:
    """Bits whose share rises from 0.3 to 0.6, and each one's place among those of its user."""
    rng = stream(0, "live", "continual_mean", run)
    users = rng.integers(0, READERS, READINGS)
    order = np.argsort(users, kind="stable")
    starts = np.searchsorted(users[order], np.arange(READERS))
    place = np.empty(READINGS, int)
    place[order] = np.arange(READINGS) - starts[users[order]]
    return (rng.random(READINGS) < np.linspace(0.3, 0.6, READINGS)).astype(int), place


def _running(cap: int, run: int) -> tuple[np.ndarray, np.ndarray, float]:
    """The mean of all readings at each step, what is released of those that count, and the share that does not."""
    bits, place = _readings(run)
    counts = place < cap
    mechanism = BinaryMechanism(horizon=READINGS, epsilon=PRICE, uses=cap)
    released = mechanism.release(np.where(counts, bits, 0), stream(0, "live", "continual_mean", cap, run))
    return bits.cumsum() / np.arange(1, READINGS + 1), released / counts.cumsum().clip(1), 1 - float(counts.mean())


def readings(root: Path, place: int) -> tuple[Drawing, str]:
    """The mean of all readings so far, and what is published of it if so many readings of each user count."""
    runs = [_running(CAPS[place], run) for run in range(RUNS)]
    late = slice(READINGS // 2, None)
    error = float(np.mean([np.abs(released - truth)[late].mean() for truth, released, _ in runs]))
    truth, released, left_out = runs[0]
    drawing = Drawing("The mean so far, and what is published of it", "", 206)
    steps = np.linspace(READINGS / 180, READINGS - 1, 180).astype(int)
    xs = LEFT + (RIGHT - LEFT) * steps / READINGS
    for share in (0, 0.5, 1):
        drawing.line(LEFT, 180 - 150 * share, RIGHT, 180 - 150 * share, "level")
        drawing.text(LEFT - 5, 184 - 150 * share, f"{share:g}", "small", at="end")
    drawing.path(path(xs, 180 - 150 * released[steps].clip(-0.05, 1.05)), "ours")
    drawing.path(path(xs, 180 - 150 * truth[steps]), "truth")
    drawing.text(LEFT, 15, "the mean of all readings so far", "small")
    drawing.text(RIGHT, 15, "what is published", "small ours", at="end")
    drawing.text(RIGHT, 200, f"{READINGS:,} readings", "small", at="end")
    drawing.says = (
        "A dashed line, the mean of all readings, rises slowly. The published line differs from it by "
        f"{short(error)} on average in the second half."
    )
    said = (
        f"{COUNTED[place].capitalize()} of each user's readings count, {left_out:.0%} of all are left out: in the second "
        f"half the published mean is off by {short(error)} on average."
    )
    return drawing, said


# How many reports may a user take part in?  Hours, some of them with a crowd, and the hours in which the monitor says so.

REPORTS = (1, 3, 10, 30, 100, 1000)
TAKEN = tuple(f"{reports:,} report{'s' * (reports > 1)}" for reports in REPORTS)
HOURS, VISITORS, USUAL, EPSILON, DELTA = 48, 4_000, 15, 1.0, 1e-6
CROWDED = tuple(range(2, HOURS, 3))  # the hours with an event
SIZES = tuple(round(150 * 12 ** ((7 * place % 16) / 15)) for place in range(len(CROWDED)))  # from 150 to 1,800 users


def _monitored(reports: int, run: int) -> tuple[list[bool], float]:
    """In which hours the answer is yes, and the threshold, which one of twenty runs of quiet hours would exceed."""
    scale = calibrate(EPSILON, DELTA, reports).scale
    threshold = USUAL + scale * math.log(HOURS / (2 * 0.05))
    rng, counters, answers = stream(0, "live", "sparse_vector", reports, run), np.zeros(VISITORS, int), []
    for hour in range(HOURS):
        size = SIZES[CROWDED.index(hour)] if hour in CROWDED else USUAL
        there = rng.choice(VISITORS, size, replace=False)
        yes = bool(np.count_nonzero(counters[there] < reports) + rng.laplace(0, scale) >= threshold)
        counters[there] += yes
        answers.append(yes)
    return answers, threshold


def alarms(root: Path, place: int) -> tuple[Drawing, str]:
    """A bar an hour, as high as there are visitors, with the threshold and the hours that are reported."""
    runs = [_monitored(REPORTS[place], run) for run in range(25)]
    answers, threshold = runs[0]
    found = float(np.mean([[one[hour] for hour in CROWDED] for one, _ in runs])) * len(CROWDED)
    drawing = Drawing("Visitors an hour, and the hours that are reported", "", 214)
    wide = (RIGHT - LEFT - 10) / HOURS

    def y(visitors: float) -> float:
        return max(8.0, 180 - 160 * visitors / 1_900)

    for visitors in (0, 500, 1000, 1500):
        drawing.line(LEFT + 10, y(visitors), RIGHT, y(visitors), "level")
        drawing.text(LEFT + 5, y(visitors) + 4, f"{visitors:,}", "small", at="end")
    for hour, yes in enumerate(answers):
        size = SIZES[CROWDED.index(hour)] if hour in CROWDED else USUAL
        kind = "ours" if yes else "other" if hour in CROWDED else "faint"
        drawing.box(LEFT + 10 + wide * hour, y(size), 0.8 * wide, 180 - y(size), kind)
    drawing.line(LEFT + 10, y(threshold), RIGHT, y(threshold), "axis")
    drawing.text(LEFT + 10, 202, "reported", "small ours")
    drawing.text(LEFT + 74, 202, "missed", "small other")
    drawing.text(LEFT + 126, 202, "line: the threshold", "small")
    drawing.text(RIGHT, 202, f"{HOURS} hours", "small", at="end")
    drawing.says = (
        f"Bars for {HOURS} hours, {len(CROWDED)} of them with crowds of {min(SIZES)} to {max(SIZES):,} users; the threshold "
        f"is at {threshold:,.0f}, and {sum(answers)} hours are reported."
    )
    said = (
        f"At a privacy loss of {EPSILON:g} a user may take part in {TAKEN[place]} before being left out: the threshold is "
        f"{threshold:,.0f} users, and {found:.1f} of {len(CROWDED)} crowds are reported on average."
    )
    return drawing, said
