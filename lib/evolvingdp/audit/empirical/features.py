"""What an audit looks at of an output: its structure, its leaves, and what several of them say together.

An output may be a number, a text, an array of any shape, a table, or nested lists, tuples, dicts and dataclasses; it is
flattened, and what gets lost in that (types, lengths, keys) becomes a feature of its own. What cannot be looked into is
refused: an audit that sees nothing must not look like one that found nothing. A feature is a table with a column for each
output, and a `Score` maps outputs to numbers of which events are made: the output is in {score >= cut}.
"""

from __future__ import annotations

import importlib.util
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evolvingdp.core.checks import ParameterError

Array = NDArray[np.float64]
_BINS = 32  # of a number's likelihood ratio
_MOST_LEAVES, _PAIRED = 64, 8  # leaves that are looked at, and whose differences are
_LEARNABLE, _NOTHING = 50, -1e9  # runs; where an output has no number
_DIGITS = 9  # of numbers that are compared exactly: what comes after belongs to floating point
_WHOLE = (bytes, Decimal, Fraction, date, time, timedelta, Enum)  # leaves that are known by their words
_MOST_NUMBERS = 16  # of an input that digits are compared with


@dataclass(frozen=True)
class Kind:
    """An output that is no value: equal to itself, which nan is not, and never cut with numbers."""

    name: str

    def __str__(self) -> str:
        return self.name


NAN = Kind("nan")


def flat(output: Any, within: tuple[int, ...] = ()) -> tuple[str, list[Any]]:
    """The structure of an output, in words, and its leaves. Raises ParameterError for what cannot be looked into; `within`:
    the ids of what the output is a part of."""
    if isinstance(output, bool | int | float | str | None):  # most of them
        leaf = _leaf(output)
        return (str(leaf) if isinstance(leaf, Kind) else "None" if leaf is None else "."), [leaf]
    if id(output) in within:
        raise ParameterError("output must not hold itself")
    within = (*within, id(output))
    if is_dataclass(output) and not isinstance(output, type | Kind):
        output = {each.name: getattr(output, each.name) for each in fields(output)}
    if isinstance(output, pd.DataFrame | pd.Series):
        output = output.reset_index().to_dict("list")
    if isinstance(output, np.ndarray | np.generic):
        if np.ndim(output) > 1 and output.dtype.kind not in "OV":
            return f"array{np.shape(output)}", [_leaf(one) for one in np.ravel(output).tolist()]
        output = output.tolist()
    if isinstance(output, complex):
        output = [output.real, output.imag]
    if isinstance(output, dict):
        parts = [flat(value, within) for value in output.values()]
        for key in output:
            flat(key, within)
        names = ", ".join(f"{key!r}: {shape}" for key, (shape, _) in zip(output, parts, strict=True))
        return f"{{{names}}}", [leaf for _, leaves in parts for leaf in leaves]
    if isinstance(output, set | frozenset):
        output = sorted(output, key=repr)
    if isinstance(output, list | tuple):
        parts = [flat(value, within) for value in output]
        shapes = [shape for shape, _ in parts]
        same = len(set(shapes)) == 1
        words = f"{len(shapes)} x {shapes[0]}" if same and len(shapes) > 1 else ", ".join(shapes)
        return f"[{words}]", [leaf for _, leaves in parts for leaf in leaves]
    leaf = _leaf(output)
    return (str(leaf) if isinstance(leaf, Kind) else "None" if leaf is None else "."), [leaf]


def _leaf(value: Any) -> Any:
    if isinstance(value, float):
        return NAN if math.isnan(value) else value
    if isinstance(value, bool | int | str | Kind) or value is None:
        return value
    if isinstance(value, _WHOLE):
        return repr(value)
    raise ParameterError(
        f"output must be of numbers, texts, lists, tuples, sets, dicts, arrays, tables and dataclasses, got {_kind(value)}; "
        "a statistic can make some of it"
    )


def _kind(value: Any) -> str:
    name = type(value).__name__
    return f"a {name}, which can be read once" if isinstance(value, Iterator) else f"a {name}"


@dataclass(frozen=True)
class Outputs:
    """Outputs of one input: structures (runs,), numeric leaves (runs, leaves), nan where there is none, and all leaves, of
    each in a tuple or a row of a table."""

    shapes: list[str]
    numbers: Array
    told: list[tuple[Any, ...]] | NDArray[Any]

    @classmethod
    def of(cls, outputs: Any) -> Outputs:
        if (
            isinstance(outputs, np.ndarray)
            and outputs.dtype.kind in "biuf"
            and outputs.ndim < 3
            and np.isfinite(outputs).all()
        ):
            table = outputs.reshape(len(outputs), -1)[:, :_MOST_LEAVES]
            shape = "." if outputs.ndim == 1 else f"[{outputs.shape[1]} x .]"
            return cls([shape] * len(outputs), table.astype(float), table)
        parts = list(map(flat, outputs))
        width = min(_MOST_LEAVES, max((len(leaves) for _, leaves in parts), default=0))
        numbers = np.full((len(parts), width), np.nan)
        for row, (_, leaves) in enumerate(parts):
            for place, leaf in enumerate(leaves[:width]):
                if isinstance(leaf, bool | int | float):
                    numbers[row, place] = float(min(max(leaf, -1e300), 1e300))
        return cls([shape for shape, _ in parts], numbers, [tuple(leaves) for _, leaves in parts])

    def __len__(self) -> int:
        return len(self.shapes)

    def part(self, first: int, last: int) -> Outputs:
        return Outputs(self.shapes[first:last], self.numbers[first:last], self.told[first:last])

    def never_again(self) -> str:
        """A text that each output has, never one twice: nothing can be learned of these. Empty if there is none."""
        if isinstance(self.told, np.ndarray) or len(self) < _LEARNABLE:
            return ""
        for place in range(min(map(len, self.told))):
            texts = [leaves[place] for leaves in self.told if isinstance(leaves[place], str)]
            if len(texts) == len(self) and len(set(texts)) > 0.9 * len(self):
                return str(texts[0])
        return ""

    def wide(self, width: int) -> Outputs:
        """With so many columns of numbers."""
        if self.numbers.shape[1] == width:
            return self
        more = np.full((len(self), max(0, width - self.numbers.shape[1])), np.nan)
        return Outputs(self.shapes, np.hstack([self.numbers, more])[:, :width], self.told)

    @property
    def leaves(self) -> Iterable[tuple[Any, ...]]:
        return map(tuple, self.told.tolist()) if isinstance(self.told, np.ndarray) else self.told

    def values(self) -> Iterator[Any]:
        """Whole outputs, to be counted."""
        whole = self.leaves
        if not isinstance(self.told, np.ndarray) or self.told.dtype.kind == "f":
            whole = (tuple(round(one, _DIGITS) if isinstance(one, float) else one for one in row) for row in whole)
        return zip(self.shapes, whole, strict=True)

    @cached_property
    def differences(self) -> tuple[list[str], Array]:
        """Of every two of the first numeric leaves, and the sum of all."""
        width = min(self.numbers.shape[1], _PAIRED)
        pairs = list(itertools.combinations(range(width), 2))
        columns = [np.round(self.numbers[:, j] - self.numbers[:, i], _DIGITS) for i, j in pairs]
        columns.append(np.nan_to_num(self.numbers).sum(axis=1))
        return [*(f"output[{j}] - output[{i}]" for i, j in pairs), "the sum"], np.column_stack(columns)


@dataclass(frozen=True)
class Score:
    """`of(outputs)` is a number for each of them; `name` is what it is a score of."""

    name: str
    of: Callable[[Outputs], Array]


def table_score(name: str, sides: Sequence[Iterable[Any]], values: Callable[[Outputs], Iterable[Any]]) -> Score:
    """The log likelihood ratio of what `values` says of an output, as counted in `sides`, 0 for what was not seen."""
    first, second = map(Counter, sides)
    ratios = {one: math.log((first[one] + 0.5) / (second[one] + 0.5)) for one in (*first, *second)}
    best = sorted(ratios, key=lambda one: -ratios[one])
    shown = ", ".join(_words(one) for one in best[:2]) + (", ..." if len(best) > 2 else "")
    return Score(f"{name}, such as {shown}", lambda outputs: np.array([ratios.get(one, 0.0) for one in values(outputs)]))


def _words(value: Any) -> str:
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], tuple):
        value = value[1][0] if len(value[1]) == 1 else value[1]
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def scores(first: Outputs, second: Outputs) -> Iterator[Score]:
    """All scores that are worth a try to tell `first` from `second`, which they come from, but that which is `learned`."""
    width = max(first.numbers.shape[1], second.numbers.shape[1])
    first, second = first.wide(width), second.wide(width)
    few = max(64, len(first) // 10)
    if _at_most(few, itertools.chain(first.values(), second.values())):
        yield table_score("the output", [first.values(), second.values()], Outputs.values)
    if len({*first.shapes, *second.shapes}) > 1:
        yield table_score("the structure", [first.shapes, second.shapes], lambda outputs: outputs.shapes)
    names = ["output"] if width == 1 else [f"output[{place}]" for place in range(width)]
    ratios: list[Callable[[Outputs], Array]] = []
    for place, name in enumerate(names):

        def column(outputs: Outputs, place: int = place) -> Array:
            return _column(outputs, place)

        yield Score(name, column)
        yield Score(f"-{name}", lambda outputs, column=column: -column(outputs))  # type: ignore[misc]
        ratios.append(_binned(first.numbers[:, place], second.numbers[:, place], column))
        yield Score(f"the likelihood ratio of {name}", ratios[-1])
    if width > 1:
        yield Score("the likelihood ratio, leaf by leaf", lambda outputs: np.sum([one(outputs) for one in ratios], axis=0))
        labels, columns = first.differences
        others = second.differences[1]
        for place, label in enumerate(labels):

            def difference(outputs: Outputs, place: int = place) -> Array:
                return np.asarray(outputs.wide(width).differences[1][:, place])

            yield Score(f"the likelihood ratio of {label}", _binned(columns[:, place], others[:, place], difference))


def _at_most(few: int, values: Iterable[Any]) -> bool:
    """Whether so few are different; no more are looked at than it takes to say no."""
    seen = set[Any]()
    return all(len(seen) <= few for one in values if not seen.add(one))  # type: ignore[func-returns-value]


def _column(outputs: Outputs, place: int) -> Array:
    if place >= outputs.numbers.shape[1]:
        return np.full(len(outputs), -np.inf)
    column = outputs.numbers[:, place]
    return np.where(np.isnan(column), -np.inf, column)


def _binned(first: Array, second: Array, column: Callable[[Outputs], Array]) -> Callable[[Outputs], Array]:
    """The log likelihood ratio of a number by quantile, what is none counting as a bin of its own."""
    both = np.concatenate([first, second])
    finite = np.unique(both[np.isfinite(both)])
    if len(finite) > 2 * _BINS:
        finite = np.unique(np.quantile(both[np.isfinite(both)], np.linspace(0, 1, _BINS + 1)[1:-1], method="nearest"))
    edges = finite

    def bins(values: Array) -> NDArray[np.int64]:
        return np.where(np.isfinite(values), 1 + np.searchsorted(edges, values, "left"), 0)

    size = len(edges) + 2
    counts = [np.bincount(bins(np.where(np.isfinite(side), side, np.nan)), minlength=size) + 0.5 for side in (first, second)]
    ratios = np.log(counts[0] / counts[1])
    return lambda outputs: ratios[bins(column(outputs))]


def learned(first: Outputs, second: Outputs) -> Score | None:
    """The score of a classifier: boosted trees on leaves, differences and structure; None where there is one leaf alone, and
    without scikit-learn, which the library does not require."""
    width = max(first.numbers.shape[1], second.numbers.shape[1])
    if width < 2 or len(first) < _LEARNABLE or not can_learn():
        return None
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    codes = {shape: float(code) for code, shape in enumerate(dict.fromkeys([*first.shapes, *second.shapes]))}

    def features(outputs: Outputs) -> Array:
        wide = outputs.wide(width)
        shapes = np.array([codes.get(shape, -1.0) for shape in outputs.shapes])
        return np.asarray(np.nan_to_num(np.column_stack([wide.numbers, wide.differences[1], shapes]), nan=_NOTHING))

    model = HistGradientBoostingClassifier(
        max_iter=30, max_leaf_nodes=15, learning_rate=0.25, min_samples_leaf=max(5, len(first) // 200), early_stopping=False
    )

    def decided(outputs: Outputs) -> Array:
        with threadpool_limits(1):  # threads that wait for each other cost more than these small tables
            return np.asarray(model.decision_function(features(outputs)))

    with threadpool_limits(1):
        model.fit(np.vstack([features(first), features(second)]), np.repeat([1, 0], [len(first), len(second)]))
    return Score("a classifier's score", decided)


def can_learn() -> bool:
    """Whether there is a classifier."""
    return importlib.util.find_spec("sklearn") is not None


def digits(inputs: Sequence[Any]) -> Callable[[Any], list[tuple[int, ...]]]:
    """The statistic of floating point, which does not say what a number is: how many binary digits after the point it has;
    and for each of `inputs`, whether it is one of that input's numbers, and whether it can be one of them plus a double."""
    held = [
        list(dict.fromkeys(float(one) for one in flat(each)[1] if isinstance(one, int | float)))[:_MOST_NUMBERS]
        for each in inputs
    ]

    def told(one: Any) -> tuple[int, ...]:
        if not isinstance(one, float) or not math.isfinite(one):
            return (-1,)
        of_inputs = ((one in each, all((one - value) + value == one for value in each)) for each in held)
        return (one.as_integer_ratio()[1].bit_length() - 1, *(int(flag) for flags in of_inputs for flag in flags))

    return lambda output: [told(one) for one in flat(output)[1]]
