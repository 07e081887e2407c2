"""A lower bound on epsilon for any black box, by trying to tell two inputs apart.

**Computes** for a mechanism `(input, rng) -> output` and a few neighbouring inputs: an event E and a number that epsilon is
not below, with the stated confidence. Half of the runs choose the pair of inputs and the event; the other half, which the
choice has not seen, count how often it happens. For (epsilon, delta)-privacy P(E) <= e^epsilon Q(E) + delta, so epsilon is
at least ln((p - delta) / q) with Clopper-Pearson limits p <= P(E) and q >= Q(E), each at half of the error probability.

**What it says.** A bound above the promise refutes it. A bound below proves nothing: the event, the inputs and the number of
runs may be poor. n runs an input cannot show more than about ln(n / 3.7), at 95 %, however bad the mechanism is.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from evolvingdp.core import checks

Mechanism = Callable[[Any, np.random.Generator], Any]
Samples = tuple[list[Any], list[Any]]  # outputs of both inputs
View = Callable[[list[Any]], list[Any]]  # what is looked at of each output
Score = Callable[[Any, Any], Any]  # the bounds for arrays of hits of both inputs
_KINDS = 64  # outputs that count as one each; above, numbers are cut at quantiles
_CUTS = 64


@dataclass(frozen=True)
class Bound:
    """epsilon >= `epsilon` with probability `confidence` or more; `event` happened hits[0] of `runs` times on inputs[0]."""

    epsilon: float
    delta: float
    confidence: float
    inputs: tuple[Any, Any]
    event: str
    hits: tuple[int, int]
    runs: int

    def refutes(self, epsilon: float) -> bool:
        """Whether the mechanism is not (`epsilon`, `delta`)-private, at this confidence."""
        return self.epsilon > epsilon


@dataclass(frozen=True)
class Batch:
    """A mechanism whose runs are drawn together: `many(input, runs, rng)` are so many independent outputs, (runs, ...)."""

    many: Callable[[Any, int, np.random.Generator], Any]

    def __call__(self, input: Any, rng: np.random.Generator) -> Any:
        return self.many(input, 1, rng)[0]


@dataclass(frozen=True)
class _Event:
    """`hits` counts in how many of a list of outputs it happens; `score` is the bound on the runs that it was found on."""

    hits: Callable[[list[Any]], int]
    text: str
    score: float


def lower_bound(hits: tuple[int, int], runs: int, delta: float = 0.0, confidence: float = 0.95) -> float:
    """The bound for an event that was fixed beforehand and happened hits[0] and hits[1] times in `runs` runs each."""
    return float(_bounds(np.array([hits[0]]), np.array([hits[1]]), runs, delta, confidence)[0])


def _bounds(first: Any, second: Any, runs: int, delta: float, confidence: float) -> Any:
    """Clopper-Pearson for arrays of hits; never below 0, which holds for every mechanism."""
    error = (1 - confidence) / 2
    low = np.where(first > 0, betaincinv(np.maximum(first, 1), runs - first + 1, error), 0.0)
    high = np.where(second < runs, betaincinv(second + 1, np.maximum(runs - second, 1), 1 - error), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        bound = np.log(np.maximum(low - delta, 0.0)) - np.log(high)
    return np.maximum(bound, 0.0)


def audit(
    mechanism: Mechanism,
    inputs: Sequence[Any],
    rng: np.random.Generator,
    *,
    runs: int = 10_000,
    delta: float = 0.0,
    confidence: float = 0.95,
    statistic: Callable[[Any], Any] | None = None,
) -> Bound:
    """Lower bound on the epsilon of `mechanism` over `inputs`, every two of which are neighbours.

    `runs` runs of each input choose pair and event, `runs` more of the chosen pair decide. `statistic` maps an output to
    what events are made of, where it is not the output itself. The runs of a `Batch` are drawn at once. Raises ValueError
    for arguments that allow no conclusion.
    """
    checks.integer_at_least(10, runs=runs)
    if len(inputs) < 2:
        raise ValueError(f"inputs must hold two neighbouring inputs or more, got {len(inputs)}")
    if not 0 <= delta < 1:
        raise ValueError(f"delta must lie in [0, 1), got {delta!r}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie in (0, 1), got {confidence!r}")

    def outputs(position: int) -> list[Any]:
        if isinstance(mechanism, Batch):
            drawn = mechanism.many(inputs[position], runs, rng)
        else:
            drawn = [mechanism(inputs[position], rng) for _ in range(runs)]
        return _all_plain(list(map(statistic, drawn)) if statistic else drawn)

    seen = [outputs(position) for position in range(len(inputs))]
    score = partial(_bounds, runs=runs, delta=delta, confidence=confidence)
    pairs = itertools.permutations(range(len(inputs)), 2)
    best, pair = max(
        ((_best_event((seen[one], seen[other]), score), (one, other)) for one, other in pairs),
        key=lambda found: found[0].score,
    )
    first, second = (best.hits(outputs(position)) for position in pair)
    bound = lower_bound((first, second), runs, delta, confidence)
    return Bound(bound, delta, confidence, (inputs[pair[0]], inputs[pair[1]]), best.text, (first, second), runs)


@dataclass(frozen=True)
class Kind:
    """An output that is no value: equal to itself, which nan is not, and never cut with numbers."""

    name: str

    def __str__(self) -> str:
        return self.name


_NAN, _NUMBER = Kind("nan"), Kind("a number")


def _all_plain(outputs: Any) -> list[Any]:
    """Each of `outputs` as `_plain` has it; arrays of numbers at once."""
    if isinstance(outputs, np.ndarray) and outputs.dtype.kind in "biuf" and outputs.ndim < 3 and not np.isnan(outputs).any():
        listed: list[Any] = outputs.tolist()
        return listed if outputs.ndim == 1 else list(map(tuple, listed))
    return list(map(_plain, outputs))


def _plain(output: Any) -> Any:
    """An output that can be compared and counted: arrays and lists as tuples, numpy's scalars as Python's, nan as a kind."""
    if isinstance(output, np.ndarray | np.generic):
        output = output.tolist()
    if isinstance(output, float) and math.isnan(output):
        return _NAN
    return tuple(map(_plain, output)) if isinstance(output, list | tuple) else output


def _number(value: Any) -> bool:
    return isinstance(value, (int, float))


def _numbers(values: list[Any]) -> NDArray[np.float64]:
    return np.array([value for value in values if _number(value)], dtype=float)


def _best_event(samples: Samples, score: Score) -> _Event:
    """The event with the best bound on these runs, among sets of outputs and halves of the line for each coordinate."""
    views: dict[str, View] = {"output": list}
    lengths = {len(output) for side in samples for output in side if isinstance(output, tuple)}
    for place in range(min(lengths, default=0)):
        views[f"output[{place}]"] = partial(_coordinates, place)
    events = [event for name, view in views.items() for event in _events(name, view, samples, score)]
    return max(events, key=lambda event: event.score)


def _coordinates(place: int, outputs: list[Any]) -> list[Any]:
    return [output[place] if isinstance(output, tuple) else output for output in outputs]


def _events(name: str, view: View, samples: Samples, score: Score) -> Iterator[_Event]:
    values = [view(side) for side in samples]
    yield _best_set(name, view, values, score)
    numbers = list(map(_numbers, values))
    found = sum(map(len, numbers))
    if found:
        yield _best_cut(name, view, numbers, score)
    if 0 < found < sum(map(len, values)):

        def kinds(outputs: list[Any]) -> list[Any]:
            return [_NUMBER if _number(value) else value for value in view(outputs)]

        yield _best_set(name, kinds, list(map(kinds, samples)), score)


def _best_set(name: str, view: View, values: list[list[Any]], score: Score) -> _Event:
    """The best of the sets of values that a likelihood ratio cuts off; the whole where there are too many values."""
    first, second = map(Counter, values)
    kinds = list(dict.fromkeys((*first, *second)))
    if len(kinds) > max(_KINDS, len(values[0]) // 20):
        return _Event(len, "any output", -1.0)
    order = sorted(kinds, key=lambda value: (first[value] + 0.5) / (second[value] + 0.5), reverse=True)
    bounds = score(*np.cumsum([(first[value], second[value]) for value in order], axis=0).T)
    last = int(np.argmax(bounds))
    members = frozenset(order[: last + 1])
    shown = ", ".join(map(str, order[: min(3, last + 1)])) + (", ..." if last > 2 else "")
    return _Event(
        lambda outputs: sum(map(members.__contains__, view(outputs))), f"{name} in {{{shown}}}", float(bounds[last])
    )


def _best_cut(name: str, view: View, numbers: list[NDArray[np.float64]], score: Score) -> _Event:
    """x >= c or x <= c for quantiles c of the numbers in both samples together; what is no number is in neither."""
    first, second = map(np.sort, numbers)
    cuts = np.unique(np.quantile(np.concatenate([first, second]), np.linspace(0.002, 0.998, _CUTS), method="nearest"))
    above = score(*(len(side) - np.searchsorted(side, cuts, "left") for side in (first, second)))
    below = score(*(np.searchsorted(side, cuts, "right") for side in (first, second)))
    sign, text, bounds = (1, ">=", above) if above.max() >= below.max() else (-1, "<=", below)
    cut = float(cuts[np.argmax(bounds)])

    def beyond(outputs: list[Any]) -> int:
        return int(np.count_nonzero(sign * _numbers(view(outputs)) >= sign * cut))

    return _Event(beyond, f"{name} {text} {cut:.6g}", float(bounds.max()))
