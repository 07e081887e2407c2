"""A lower bound on epsilon for any black box, by trying to tell two inputs apart.

**Computes** for a mechanism `(input, rng) -> output` and a few neighbouring inputs: an event and, from it, a number that
epsilon is at least, with the stated confidence. Half of the runs choose event and inputs; the other half, which none of
this has seen, counts how often the event happens.

A quarter of the runs teach scores that tell two inputs apart (`features`: likelihood ratios of the output, of its structure
and leaves, and a classifier), the next quarter chooses score, cut and inputs. For (epsilon,
delta)-privacy P(E) <= e^epsilon Q(E) + delta; `limits` bounds epsilon from the two counts: it has two limits, and the
one that showed more on the runs that chose the event is taken.

**What it says.** A bound above the promise refutes it. A bound below proves nothing: the event, the inputs and the number of
runs may be poor. With `runs` = n, the half that counts, no bound exceeds about ln(n / 3.7) at 95 %, however bad the
mechanism is.

**Source.** The likelihood ratio's event is that of DP-Sniper (Bichsel et al. 2021), counted as in Ding et al. (2018).
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evolvingdp.audit.empirical import limits
from evolvingdp.audit.empirical.features import Kind, Outputs, Score, learned, scores
from evolvingdp.core import checks
from evolvingdp.core.checks import ParameterError

__all__ = ["Batch", "Bound", "Kind", "Mechanism", "audit", "lower_bound"]

Mechanism = Callable[[Any, np.random.Generator], Any]
_CUTS = 128
_CAUTION = 2.5  # standard errors off what an event seems to show, when one is chosen: rare ones look best by luck


@dataclass(frozen=True)
class Bound:
    """The true epsilon is `epsilon` or more, at this `confidence`; `event` happened hits[0] of `runs` times on inputs[0]."""

    epsilon: float
    delta: float
    confidence: float
    inputs: tuple[Any, Any] = field(repr=False)
    event: str
    hits: tuple[int, int]
    runs: int

    def refutes(self, epsilon: float) -> bool:
        """Whether the mechanism is not (`epsilon`, `delta`)-private, at this confidence."""
        return self.epsilon > epsilon


@dataclass(frozen=True)
class Batch:
    """Runs of a mechanism drawn together: `many(input, runs, rng)` returns `runs` independent outputs, (runs, ...)."""

    many: Callable[[Any, int, np.random.Generator], Any]

    def __call__(self, input: Any, rng: np.random.Generator) -> Any:
        return self.many(input, 1, rng)[0]


def with_generator(function: Callable[..., Any]) -> Mechanism:
    """A function of the input alone, whose randomness is its own, as one of (input, rng); others as they are."""
    try:
        signature = inspect.signature(function)
        signature.bind(None, None)
    except ValueError:  # of some built-in functions nothing is known
        return function
    except TypeError:
        with suppress(TypeError):
            signature.bind(None)
            return lambda value, rng: function(value)
        raise ParameterError(f"mechanism must take (input, rng), or (input) alone, got {signature}") from None
    return function


def lower_bound(hits: tuple[int, int], runs: int, delta: float = 0.0, confidence: float = 0.95) -> float:
    """The bound for an event that was fixed beforehand and happened hits[0] and hits[1] times in `runs` runs each."""
    return limits.separate(hits, runs, delta, confidence)


@checks.draws
def audit(
    mechanism: Mechanism,
    inputs: Sequence[Any],
    rng: np.random.Generator,
    *,
    runs: int = 10_000,
    delta: float = 0.0,
    confidence: float = 0.95,
    statistic: Callable[[Any], Any] | None = None,
    pairs: Sequence[tuple[int, int]] | None = None,
) -> Bound:
    """Lower bound on the epsilon of `mechanism` over `inputs`, every two of which are neighbours, or those in `pairs`.

    `runs` runs of each input choose pair and event (of more than six pairs a tenth as many choose three), `runs` more of the
    chosen pair decide. `statistic` maps an output to what events are made of. The runs of a `Batch` are drawn at once.
    Raises ValueError for arguments that allow no conclusion.
    """
    checks.integer_at_least(10, runs=runs)
    run = mechanism if isinstance(mechanism, Batch) else with_generator(mechanism)
    if len(inputs) < 2:
        raise ValueError(f"inputs must hold two neighbouring inputs or more, got {len(inputs)}")
    if not 0 <= delta < 1:
        raise ValueError(f"delta must lie in [0, 1), got {delta!r}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie in (0, 1), got {confidence!r}")
    chosen = list(itertools.combinations(range(len(inputs)), 2)) if pairs is None else list(pairs)
    if not chosen:
        raise ValueError("pairs must hold a pair of neighbouring inputs or more, got none")

    def outputs(position: int, count: int) -> Outputs:
        if isinstance(mechanism, Batch):
            drawn = mechanism.many(inputs[position], count, rng)
        else:
            drawn = [run(inputs[position], rng) for _ in range(count)]
        return Outputs.of(list(map(statistic, drawn)) if statistic else drawn)

    if len(chosen) > 6:  # a search: a tenth of the runs says where the others go
        few = {place: outputs(place, max(10, runs // 10)) for place in sorted({one for pair in chosen for one in pair})}
        chosen = sorted(chosen, key=lambda pair: -_best(few, [pair], delta, learn=False)[0])[:3]
    seen = {place: outputs(place, runs) for place in sorted({one for pair in chosen for one in pair})}
    if text := next(filter(None, (one.never_again() for one in seen.values())), ""):
        raise ValueError(
            f"outputs must have parts that come again, got texts of which no two are alike, such as {text[:40]!r}; "
            "a statistic can make some of them"
        )
    _, (one, other), score, cut = _best(seen, chosen, delta)
    chose = [_hits(score, cut, seen[place].part(runs // 2, runs)) for place in (one, other)]
    limit = max(
        limits.separate, limits.joint, key=lambda way: way((chose[0], chose[1]), runs - runs // 2, delta, confidence)
    )
    first, second = (_hits(score, cut, outputs(place, runs)) for place in (one, other))
    bound, between = limit((first, second), runs, delta, confidence), (inputs[one], inputs[other])
    return Bound(bound, delta, confidence, between, _words(score, cut), (first, second), runs)


Found = tuple[float, tuple[int, int], Score, float]  # the bound on the runs that chose, the pair, the score, the cut


def _hits(score: Score, cut: float, outputs: Outputs) -> int:
    return int(np.count_nonzero(score.of(outputs) >= cut))


def _best(seen: dict[int, Outputs], pairs: Sequence[tuple[int, int]], delta: float, *, learn: bool = True) -> Found:
    """The score, the cut and the ordered pair with the best bound on the second halves of the runs."""
    return max((found for pair in pairs for found in _tried(seen, pair, delta, learn)), key=lambda found: found[0])


def _tried(seen: dict[int, Outputs], pair: tuple[int, int], delta: float, learn: bool) -> Iterator[Found]:
    runs = len(seen[pair[0]])
    taught = [seen[place].part(0, runs // 2) for place in pair]
    picked = [seen[place].part(runs // 2, runs) for place in pair]
    size = runs - runs // 2
    best, most = 0.0, float(limits.predicted(size, 0, size, delta, _CAUTION))

    def tries() -> Iterator[Score]:
        yield from scores(*taught)
        more = learned(*taught) if learn and best < most - 1 else None  # nothing is left to learn where nearly all is shown
        if more is not None:
            yield more

    for score in tries():
        values = [score.of(side) for side in picked]
        for order in (1, -1):
            signed = score if order == 1 else _turned(score)
            ahead, behind = (order * one for one in values[::order])
            cuts = np.unique(np.quantile(np.concatenate([ahead, behind]), np.linspace(0.002, 1, _CUTS), method="nearest"))
            sizes = [len(side) - np.searchsorted(np.sort(side), cuts, "left") for side in (ahead, behind)]
            bounds = limits.predicted(sizes[0], sizes[1], len(ahead), delta, _CAUTION)
            place = int(np.argmax(bounds))
            best = max(best, float(bounds[place]))
            yield float(bounds[place]), pair if order == 1 else (pair[1], pair[0]), signed, float(cuts[place])


def _turned(score: Score) -> Score:
    return Score(f"-({score.name})", lambda outputs: -score.of(outputs))


def _words(score: Score, cut: float) -> str:
    name, turned = score.name, 1
    while name.startswith("-"):
        name, turned = name[1:].removeprefix("(").removesuffix(")"), -turned
    if math.isinf(cut):
        return "any output"
    return f"{name} {'>=' if turned > 0 else '<='} {turned * cut:.6g}"
