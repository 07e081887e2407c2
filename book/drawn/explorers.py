"""Explorers: a method's error at settings that the reader chooses, from a sweep that the library computes at build time.

    ```{explorer} heavy_hitters
    ```

Sliders move dots on a logarithmic axis; a table says the same in numbers.  Without a script, and on paper, it shows its
first settings.  `book/_static/explorers.js` looks values up and computes nothing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from html import escape
from itertools import product
from pathlib import Path

from drawn.svg import WIDTH, Drawing
from evolvingdp.continual_mean.binary_mechanism import best_tree
from evolvingdp.continual_mean.binary_mechanism import calibrate as calibrate_noise
from evolvingdp.continual_mean.prefix_sums import Buffered, PrefixSums, Tree
from evolvingdp.core.noise import DiscreteLaplace
from evolvingdp.core.olh import OLH
from evolvingdp.evolving import choose
from evolvingdp.heavy_hitters import theory
from evolvingdp.sparse_vector.calibration import calibrate

Numbers = dict[str, float]  # of each method; a method that does not work there is left out
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)
LEFT, RIGHT, STEP = 14, WIDTH - 84, 40  # of the axis, and from one method to the next
TEN = math.log(10)


@dataclass(frozen=True)
class Explorer:
    """`axes` maps a slider's label to its values; `of` takes one of each; `start` are the places of the first settings."""

    title: str
    axes: dict[str, tuple[float, ...]]
    of: Callable[..., Numbers]
    start: tuple[int, ...]

    def sweep(self) -> Iterator[tuple[str, Numbers]]:
        """The places of the sliders, as one name, and the numbers there."""
        for places in product(*(range(len(values)) for values in self.axes.values())):
            settings = (values[place] for values, place in zip(self.axes.values(), places, strict=True))
            yield "-".join(map(str, places)), self.of(*settings)


def _word_counts(epsilon: float, n_users: float) -> Numbers:
    n = int(n_users)
    return {
        "one bit a user, median": theory.noise_standard_error(n, epsilon, 285),
        "one bit a user, mean": theory.mean_standard_error(n, epsilon),
        "OLH, nearly the least": OLH(epsilon).standard_error(n),
        "a trusted server, one word": math.sqrt(DiscreteLaplace(1 / epsilon).variance),
    }


_METHODS = {
    "once": "each user once, the best period",
    "detected": "once, changes detected afterwards",
    "tuned": "THRESH, tuned",
}


def _means(epsilon: float, n_users: float, horizon: float) -> Numbers:
    n, steps = int(n_users), int(horizon)
    predicted = choose(n_users=n, horizon=steps, epoch_length=10**6, epsilon=epsilon, changes=3, promised=True).predicted
    return {name: predicted[method]["planned"] for method, name in _METHODS.items() if method in predicted}


def _sums(epsilon: float, cap: float, horizon: float) -> Numbers:
    steps = int(horizon)
    ways: dict[str, tuple[PrefixSums, float]] = {"binary tree": (Tree(steps), 0.0), "best tree": (best_tree(steps), 0.0)}
    ways["eight buffers, delta = 10⁻⁶"] = Buffered(steps), 1e-6
    lengths = range(steps // 2, steps + 1)
    noises = {name: calibrate_noise(sums, epsilon, delta, 1.0, uses=int(cap)) for name, (sums, delta) in ways.items()}
    return {
        name: math.sqrt(noises[name].variance * float(sums.relative_variance(lengths).mean()))
        for name, (sums, _) in ways.items()
    }


def _noise(epsilon: float, reports: float) -> Numbers:
    methods = {"theorem": "the theorem", "epochs": "in epochs", "exact": "exact"}
    return {name: calibrate(epsilon, 1e-6, int(reports), method=method).scale for method, name in methods.items()}


USERS = tuple(10.0**power for power in range(3, 10))
EXPLORERS = {
    "heavy_hitters": Explorer(
        "Standard error of the count of a rare word, in users", {"epsilon": EPSILONS, "users": USERS}, _word_counts, (2, 4)
    ),
    "evolving": Explorer(
        "Predicted mean error of a mean of bits, with three changes and a million bits a user and epoch",
        {"epsilon": EPSILONS, "users": USERS[2:6], "epochs": (16, 64, 256, 1024)},
        _means,
        (2, 1, 2),
    ),
    "continual_mean": Explorer(
        "Standard error of a running sum over the second half, in samples",
        {"epsilon": EPSILONS, "samples of a user that count": (1, 4, 16, 64), "steps": (64, 256, 1024)},
        _sums,
        (2, 2, 2),
    ),
    "sparse_vector": Explorer(
        "Scale of the noise that one promise takes, in users, at delta = 10⁻⁶",
        {"epsilon": EPSILONS[:4], "reports of one user": (1, 3, 10, 30, 100)},
        _noise,
        (2, 1),
    ),
}


def short(number: float) -> str:
    """Three digits, without powers of ten."""
    rounded = float(f"{number:.2e}")
    return f"{rounded:,.{max(0, 2 - math.floor(math.log10(rounded)))}f}"


def page(root: Path, name: str, *rest: object) -> str:
    """The explorer as HTML; raises KeyError for a name that is none's."""
    explorer = EXPLORERS[name]
    sweep = dict(explorer.sweep())
    methods = list(dict.fromkeys(method for numbers in sweep.values() for method in numbers))
    every = [number for numbers in sweep.values() for number in numbers.values()]
    low, high = math.log(min(every)), math.log(max(every))
    places: dict[str, list[tuple[float, str] | None]] = {
        key: [
            (_place(numbers[method], low, high), short(numbers[method])) if method in numbers else None for method in methods
        ]
        for key, numbers in sweep.items()
    }
    shown = places["-".join(map(str, explorer.start))]
    says = "Dots on a logarithmic axis, a row a method; the table below has the numbers."
    drawing = Drawing(explorer.title, says, STEP * len(methods) + 12)
    marks = [
        (_place(10.0**power, low, high), 10.0**power) for power in range(math.ceil(low / TEN), math.floor(high / TEN) + 1)
    ]
    for row, (method, spot) in enumerate(zip(methods, shown, strict=True)):
        y = STEP * row + 28
        drawing.text(LEFT, y - 12, method, "small")
        drawing.line(LEFT, y, RIGHT, y)
        for x, _ in marks:
            drawing.line(x, y - 3, x, y + 3)
        x, number = spot or (LEFT, "not possible")
        drawing.dot(x, y, "ours" if spot else "faint", 6)
        drawing.text(x + 10, y + 4, number, "strong halo number")
    for place, (x, value) in enumerate(marks):
        if place % math.ceil(len(marks) / 5) == 0:
            drawing.text(x, STEP * len(methods) + 6, f"{value:,.{max(0, -round(math.log10(value)))}f}", "small", at="middle")
    axes = zip(explorer.axes.items(), explorer.start, strict=True)
    rows = (
        f'<tr><th scope="row">{escape(method)}</th><td>{spot[1] if spot else "not possible"}</td></tr>'
        for method, spot in zip(methods, shown, strict=True)
    )
    return (
        f'<div class="explorer" id="explorer-{name}"><p><strong>{escape(explorer.title)}</strong> (logarithmic axis)</p>'
        f"{''.join(_slider(label, values, start) for (label, values), start in axes)}{drawing.svg(f'explorer-{name}')}"
        '<table><caption>The same in numbers</caption><thead><tr><th scope="col">method</th><th scope="col">value</th></tr>'
        f'</thead><tbody aria-live="polite">{"".join(rows)}</tbody></table>'
        f'<script type="application/json">{json.dumps(places)}</script></div>'
    )


def _place(number: float, low: float, high: float) -> float:
    """Where `number` is on an axis from exp(low) to exp(high)."""
    return round(LEFT + (RIGHT - LEFT) * (math.log(number) - low) / (high - low), 1)


def _slider(label: str, values: tuple[float, ...], start: int) -> str:
    said = [f"{value:,g}" if value < 1 else f"{value:,.0f}" for value in values]
    return (
        f'<label>{label} <input type="range" min="0" max="{len(values) - 1}" step="1" value="{start}" autocomplete="off" '
        f'data-values="{escape("|".join(said))}" aria-valuetext="{said[start]}"><output>{said[start]}</output></label>'
    )
