"""A reader's own mechanism, named as `module:function` or `file.py:function`, and its inputs, Python literals."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import itertools
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from evolvingdp.audit.empirical.auditor import Bound, Kind, Mechanism
from evolvingdp.core.checks import ParameterError

_MOST_ENTRIES = 1000  # of one set of data


def load(target: str, option: str = "mechanism") -> Mechanism:
    """The function that `target` names.  Raises ParameterError, one line, where there is none, whatever its file does."""
    place, _, name = target.partition(":")
    if not place or not name:
        raise ParameterError(f"{option} must be written as module:function or file.py:function, got {target!r}")
    try:
        module = _from_file(Path(place)) if place.endswith(".py") else _from_name(place)
    except (ImportError, OSError) as error:
        raise ParameterError(f"{option} {target!r} cannot be imported: {' '.join(str(error).split())}") from None
    except BaseException as error:  # KeyboardInterrupt, too: who really stops a command ends it by a signal
        raise ParameterError(f"{option} {target!r} cannot be imported: {told(error)}") from None
    function = getattr(module, name, None)
    if not callable(function):
        raise ParameterError(f"{option} must name a function; {place} has none named {name!r}")
    mechanism: Mechanism = function
    return mechanism


def told(error: BaseException) -> str:
    words = ""
    with suppress(Exception):  # there are errors that cannot be told
        words = " ".join(str(error).split())
    return f"{type(error).__name__}: {words}".rstrip(": ")


@dataclass
class Guarded:
    """`mechanism`, for which to raise, or to end the process, is an output: failing is something that others see."""

    mechanism: Mechanism
    calls: int = 0
    failures: int = 0
    first: str = field(default="", init=False)  # what was raised first, and where

    def __call__(self, value: Any, rng: np.random.Generator) -> Any:
        self.calls += 1
        try:
            return self.mechanism(value, rng)
        except BaseException as error:
            self.failures += 1
            self.first = self.first or f"{told(error)}, for {value!r}"
            return Kind(f"raises {type(error).__name__}")

    @property
    def fails_always(self) -> bool:
        return 0 < self.calls == self.failures

    def sentence(self) -> str:
        """How often it raised; empty if never."""
        if not self.failures:
            return ""
        return f"it raised in {self.failures} of {self.calls} runs, counted as outputs of their own; first {self.first}"


@contextmanager
def no_way_out() -> Iterator[None]:
    """`os._exit` is an exception in this process, whose exit code is a verdict; other processes may end."""
    leave, own = os._exit, os.getpid()

    def instead(code: int) -> None:
        if os.getpid() != own:
            leave(code)
        raise SystemExit(code)

    os._exit = instead  # type: ignore[assignment]
    try:
        yield
    finally:
        os._exit = leave


def _from_name(name: str) -> Any:
    if "" not in sys.path:
        sys.path.insert(0, "")  # as python -m does: a module of the folder where one stands
    return importlib.import_module(name)


def _from_file(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def inputs_of(text: str) -> tuple[list[Any], list[tuple[int, int]] | None]:
    """The inputs from `0, 1` or `[(0, 1), (1, 1)]`, any two of which are neighbours; or from `[(3, 1, 4)]` one set of data,
    whose neighbours lack one of its entries each. Raises ParameterError unless they are literals that differ."""
    values = _literals(text)
    if len(values) > 1:
        return values, None
    data: Any = values[0] if values else None
    if not (isinstance(data, list | tuple | str) and 0 < len(data) <= _MOST_ENTRIES):
        raise ParameterError(
            "inputs must be two neighbouring inputs or more, such as '0, 1', or one set of at most "
            f"{_MOST_ENTRIES} data, such as '[(3, 1, 4)]', got {text[:60]!r}"
        )
    kind: Any = type(data) if isinstance(data, list | tuple) else "".join
    fewer = [kind([*data[:place], *data[place + 1 :]]) for place in range(len(data))]
    others = [one for place, one in enumerate(fewer) if one not in fewer[:place]]
    return [data, *others], [(0, place) for place in range(1, len(others) + 1)]


def _literals(text: str) -> list[Any]:
    """Raises ParameterError unless different ones."""
    try:
        value = ast.literal_eval(text)
        repr(value)  # of an integer of thousands of digits there is none
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        raise ParameterError(f"inputs must be Python literals, such as '0, 1', got {text[:60]!r}") from None
    if not isinstance(value, list | tuple):
        value = [value]
    for place, one in enumerate(value):
        if one in value[:place]:
            raise ParameterError(f"inputs must differ from each other, got {one!r} twice in {text!r}")
    return list(value)


def domain_of(text: str) -> tuple[list[Any], list[tuple[int, int]]]:
    """A domain that is searched, and which two of it are neighbours: numbers that differ by at most 1, and sequences that
    differ in one place, or of which one has an entry more."""
    values = _literals(text)
    pairs = [(i, j) for i, j in itertools.combinations(range(len(values)), 2) if _neighbours(values[i], values[j])]
    if not pairs:
        raise ParameterError(f"domain must hold two neighbours, such as 0 and 1 or (0, 1) and (1, 1), got {text!r}")
    return values, pairs


def _neighbours(one: Any, other: Any) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        return bool(abs(one - other) <= 1)
    if not isinstance(one, list | tuple | str) or not isinstance(other, list | tuple | str):
        return False
    if len(one) == len(other):
        return bool(sum(a != b for a, b in zip(one, other, strict=True)) == 1)
    longer, shorter = sorted((list(one), list(other)), key=len, reverse=True)
    return len(longer) == len(shorter) + 1 and any(longer[:i] + longer[i + 1 :] == shorter for i in range(len(longer)))


def report(mechanism: str, bound: Bound, epsilon: float | None, floating: Bound | None = None) -> dict[str, Any]:
    """What an audit has found, for machines."""
    told = {name: getattr(bound, name) for name in ("epsilon", "delta", "confidence", "event", "runs")}
    found = {"mechanism": mechanism, "promised": epsilon, "at_least": told.pop("epsilon"), **told, "hits": list(bound.hits)}
    found["inputs"] = list(map(repr, bound.inputs))
    found["refuted"] = None if epsilon is None else bound.refutes(epsilon)
    if floating is not None:
        found["floating_point"] = {"at_least": floating.epsilon, "told_apart": floating.refutes(epsilon or 0.0)}
    return found


def sentence(bound: Bound) -> str:
    """What an audit has found, in words."""
    first, second = bound.hits
    delta = f" at delta = {bound.delta:g}" if bound.delta else ""
    if first == second == bound.runs:  # an event that says nothing
        return (
            f"epsilon >= 0{delta}: in {bound.runs} runs each nothing was found that tells "
            f"{bound.inputs[0]!r} and {bound.inputs[1]!r} apart"
        )
    return (
        f"epsilon >= {bound.epsilon:.3f}{delta}, with {bound.confidence:.6g} confidence: of {bound.runs} runs each, "
        f"{bound.event} happened {first} times for {bound.inputs[0]!r} and {second} times for {bound.inputs[1]!r}"
    )
