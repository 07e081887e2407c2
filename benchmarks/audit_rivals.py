"""DP-Sniper and StatDP as their papers describe them, at the draws that `evolvingdp audit` has; written from the papers.

Neither package can be installed here, and dp_auditorium cannot either. Outputs are flattened as ours are, and what is
missing becomes a number 0 and a flag, so that both can be asked about lists of different lengths and about dicts.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import hypergeom
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evolvingdp.audit.empirical.auditor import Mechanism, lower_bound
from evolvingdp.audit.empirical.features import Outputs

Array = NDArray[np.float64]
_TARGET = 0.01  # DP-Sniper's c: the attack's probability on the other input
_FEW, _CUTS = 10, 20  # StatDP: values of which each is an event, and ends of intervals
_ALPHA = 0.05


def drawn(mechanism: Mechanism, inputs: tuple[Any, ...], rng: np.random.Generator, runs: int) -> list[Outputs]:
    return [Outputs.of([mechanism(one, rng) for _ in range(runs)]) for one in inputs[:2]]


def sniper(mechanism: Mechanism, inputs: tuple[Any, ...], promised: float, rng: np.random.Generator, runs: int) -> bool:
    """Bichsel et al. 2021: logistic regression, cut where the other input reaches it with probability .01, ties by lot."""
    taught = drawn(mechanism, inputs, rng, runs)
    width = max(side.numbers.shape[1] for side in taught)

    def features(outputs: Outputs) -> Array:
        numbers = outputs.wide(width).numbers
        missing = np.isnan(numbers)
        return np.hstack([np.where(missing, 0.0, numbers), missing])

    tables = [features(side) for side in taught]
    best: tuple[float, Callable[[Array], Array], int] | None = None
    for first in (0, 1):
        labels = np.repeat([1, 0], runs)
        model = make_pipeline(StandardScaler(), LogisticRegression()).fit(
            np.vstack([tables[first], tables[1 - first]]), labels
        )
        other = np.sort(model.decision_function(tables[1 - first]))[::-1]
        cut = other[int(_TARGET * runs)]
        above, at = np.mean(other > cut), np.mean(other == cut)
        lot = float(np.clip((_TARGET - above) / at, 0.0, 1.0))

        def power(table: Array, model: Any = model, cut: float = cut, lot: float = lot) -> Array:
            score = model.decision_function(table)
            return np.asarray((score > cut) + lot * (score == cut), float)

        ratio = power(tables[first]).mean() / max(power(tables[1 - first]).mean(), 1 / runs)
        if best is None or ratio > best[0]:
            best = (ratio, power, first)
    assert best is not None
    chances = [best[1](features(side)) for side in drawn(mechanism, inputs, rng, runs)]
    hits = [int(np.sum(rng.random(runs) < one)) for one in chances]
    return lower_bound((hits[best[2]], hits[1 - best[2]]), runs) > promised


Event = Callable[[Outputs], Array]


def _shaped(shape: str, outputs: Outputs) -> Array:
    return np.array([one == shape for one in outputs.shapes])


def _equal(whole: tuple[Any, ...], outputs: Outputs) -> Array:
    return np.array([one == whole for one in outputs.leaves])


def _counted(width: int, value: float, least: int, most: int, outputs: Outputs) -> Array:
    count = np.sum(outputs.wide(width).numbers == value, axis=1)
    return np.asarray((least <= count) & (count <= most))


def _between(width: int, place: int, low: float, high: float, outputs: Outputs) -> Array:
    column = outputs.wide(width).numbers[:, place]
    return np.asarray((low <= column) & (column <= high))


def _events(taught: list[Outputs]) -> Iterator[Event]:
    """The structure; how many leaves have a value; a leaf's value, interval or half-line; the most frequent outputs."""
    for shape in {*taught[0].shapes, *taught[1].shapes}:
        yield partial(_shaped, shape)
    width = max(side.numbers.shape[1] for side in taught)
    both = np.vstack([side.wide(width).numbers for side in taught])
    values = np.unique(both[np.isfinite(both)])
    if len(values) <= _FEW:
        for value, count in itertools.product(values, range(width + 1)):
            yield partial(_counted, width, value, count, count)
            yield partial(_counted, width, value, count, width)
    for place, column in enumerate(both.T):
        seen = np.unique(column[np.isfinite(column)])
        if len(seen) <= _FEW:
            yield from (partial(_between, width, place, value, value) for value in seen)
            continue
        ends = np.quantile(column[np.isfinite(column)], np.linspace(0, 1, _CUTS + 1))
        for low, high in itertools.combinations([-np.inf, *ends[1:-1], np.inf], 2):
            yield partial(_between, width, place, low, high)
    whole = Counter(leaves for side in taught for leaves in side.leaves)
    yield from (partial(_equal, output) for output, times in whole.most_common(_FEW) if times > 1)


def _p_value(hits: tuple[int, int], runs: int, epsilon: float, rng: np.random.Generator) -> float:
    """Of "P <= e^epsilon Q": the first count thinned by e^-epsilon, then Fisher's exact test; the mean of 10 thinnings."""
    thinned = rng.binomial(hits[0], np.exp(-epsilon), 10)
    return float(np.mean(hypergeom.sf(thinned - 1, 2 * runs, runs, thinned + hits[1])))


def statdp(mechanism: Mechanism, inputs: tuple[Any, ...], promised: float, rng: np.random.Generator, runs: int) -> bool:
    """Ding et al. 2018: the event with the smallest p-value on half of the runs is tested on the other half, at .05."""
    taught = drawn(mechanism, inputs, rng, runs)
    least = 0.001 * runs * np.exp(promised)
    best: tuple[float, Callable[[Outputs], Array], int] | None = None
    for event in _events(taught):
        counts = [int(np.sum(event(side))) for side in taught]
        if sum(counts) < least:
            continue
        for first in (0, 1):
            value = _p_value((counts[first], counts[1 - first]), runs, promised, rng)
            if best is None or value < best[0]:
                best = (value, event, first)
    if best is None:
        return False
    counts = [int(np.sum(best[1](side))) for side in drawn(mechanism, inputs, rng, runs)]
    return _p_value((counts[best[2]], counts[1 - best[2]]), runs, promised, rng) < _ALPHA
