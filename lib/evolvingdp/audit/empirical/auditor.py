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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import beta

from evolvingdp.core import checks

Mechanism = Callable[[Any, np.random.Generator], Any]
Event = Callable[[Any], bool]
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
class _Candidate:
    happens: Event
    text: str
    score: float


def lower_bound(hits: tuple[int, int], runs: int, delta: float = 0.0, confidence: float = 0.95) -> float:
    """The bound for an event that was fixed beforehand and happened hits[0] and hits[1] times in `runs` runs each."""
    return float(_bounds(np.array([hits[0]]), np.array([hits[1]]), runs, delta, confidence)[0])


def _bounds(first: Any, second: Any, runs: int, delta: float, confidence: float) -> Any:
    """Clopper-Pearson for arrays of hits; never below 0, which holds for every mechanism."""
    error = (1 - confidence) / 2
    low = np.where(first > 0, beta.ppf(error, np.maximum(first, 1), runs - first + 1), 0.0)
    high = np.where(second < runs, beta.ppf(1 - error, second + 1, np.maximum(runs - second, 1)), 1.0)
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
    what events are made of, where it is not the output itself. Raises ValueError for arguments that allow no conclusion.
    """
    checks.integer_at_least(10, runs=runs)
    if len(inputs) < 2:
        raise ValueError(f"inputs must hold two neighbouring inputs or more, got {len(inputs)}")
    if not 0 <= delta < 1:
        raise ValueError(f"delta must lie in [0, 1), got {delta!r}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie in (0, 1), got {confidence!r}")
    tell = statistic or (lambda output: output)

    def outputs(position: int) -> list[Any]:
        return [_plain(tell(mechanism(inputs[position], rng))) for _ in range(runs)]

    seen = [outputs(position) for position in range(len(inputs))]
    best, pair = _Candidate(lambda output: True, "any output", -1.0), (0, 1)
    for one, other in itertools.permutations(range(len(inputs)), 2):
        found = _best_event(seen[one], seen[other], delta, confidence)
        if found.score > best.score:
            best, pair = found, (one, other)
    first, second = (sum(map(best.happens, outputs(position))) for position in pair)
    bound = lower_bound((first, second), runs, delta, confidence)
    return Bound(bound, delta, confidence, (inputs[pair[0]], inputs[pair[1]]), best.text, (first, second), runs)


@dataclass(frozen=True)
class Kind:
    """An output that is no value: equal to itself, which nan is not, and never cut with numbers."""

    name: str

    def __str__(self) -> str:
        return self.name


_NAN, _NUMBER = Kind("nan"), Kind("a number")


def _plain(output: Any) -> Any:
    """An output that can be compared and counted: arrays and lists as tuples, numpy's scalars as Python's, nan as a kind."""
    if isinstance(output, np.ndarray | np.generic):
        output = output.tolist()
    if isinstance(output, float) and math.isnan(output):
        return _NAN
    return tuple(map(_plain, output)) if isinstance(output, list | tuple) else output


def _number(value: Any) -> bool:
    return isinstance(value, int | float)


def _best_event(first: list[Any], second: list[Any], delta: float, confidence: float) -> _Candidate:
    """The event with the best bound on these runs, among sets of outputs and halves of the line for each coordinate."""
    candidates = [_best_set(first, second, delta, confidence, lambda output: output, "output")]
    lengths = {len(output) for output in (*first, *second) if isinstance(output, tuple)}
    if lengths:
        for place in range(min(lengths)):

            def coordinate(output: Any, place: int = place) -> Any:
                return output[place] if isinstance(output, tuple) else output

            candidates.append(_best_of(first, second, delta, confidence, coordinate, f"output[{place}]"))
    else:
        candidates.append(_best_of(first, second, delta, confidence, lambda output: output, "output"))
    return max(candidates, key=lambda candidate: candidate.score)


def _best_of(
    first: list[Any], second: list[Any], delta: float, confidence: float, part: Callable[[Any], Any], name: str
) -> _Candidate:
    values = [[part(output) for output in side] for side in (first, second)]
    candidates = [_best_set(first, second, delta, confidence, part, name)]
    if any(_number(value) for side in values for value in side):
        candidates.append(_best_cut(values, delta, confidence, part, name))
        if not all(_number(value) for side in values for value in side):

            def kind(output: Any) -> Any:
                return _NUMBER if _number(part(output)) else part(output)

            candidates.append(_best_set(first, second, delta, confidence, kind, name))
    return max(candidates, key=lambda candidate: candidate.score)


def _best_set(
    first: list[Any], second: list[Any], delta: float, confidence: float, part: Callable[[Any], Any], name: str
) -> _Candidate:
    """The outputs in order of their ratio; every initial part of that order is an event."""
    counts: dict[Any, list[int]] = {}
    for world, side in enumerate((first, second)):
        for output in side:
            counts.setdefault(part(output), [0, 0])[world] += 1
    if len(counts) > max(_KINDS, len(first) // 20):
        return _Candidate(lambda output: True, "any output", -1.0)
    order = sorted(counts, key=lambda value: (counts[value][0] + 0.5) / (counts[value][1] + 0.5), reverse=True)
    totals = np.cumsum([counts[value] for value in order], axis=0)
    bounds = _bounds(totals[:, 0], totals[:, 1], len(first), delta, confidence)
    last = int(np.argmax(bounds))
    members = frozenset(order[: last + 1])
    shown = ", ".join(map(str, order[: min(3, last + 1)])) + (", ..." if last > 2 else "")
    return _Candidate(lambda output: part(output) in members, f"{name} in {{{shown}}}", float(bounds[last]))


def _best_cut(values: list[list[Any]], delta: float, confidence: float, part: Callable[[Any], Any], name: str) -> _Candidate:
    """x >= c and x <= c for quantiles c of the numbers in both samples together; what is no number is in neither."""
    first, second = (np.sort(np.array([value for value in side if _number(value)], dtype=float)) for side in values)
    cuts = np.unique(np.quantile(np.concatenate([first, second]), np.linspace(0.002, 0.998, _CUTS), method="nearest"))
    best = _Candidate(lambda output: True, "any output", -1.0)
    for sign, text in ((1, ">="), (-1, "<=")):
        hits = [
            len(side) - np.searchsorted(side, cuts, "left") if sign > 0 else np.searchsorted(side, cuts, "right")
            for side in (first, second)
        ]
        bounds = _bounds(hits[0], hits[1], len(values[0]), delta, confidence)
        place = int(np.argmax(bounds))
        cut = float(cuts[place])
        if bounds[place] > best.score:

            def happens(output: Any, sign: int = sign, cut: float = cut) -> bool:
                value = part(output)
                return _number(value) and bool(sign * value >= sign * cut)

            best = _Candidate(happens, f"{name} {text} {cut:.6g}", float(bounds[place]))
    return best
