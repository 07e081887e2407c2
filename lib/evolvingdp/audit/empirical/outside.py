"""A reader's own mechanism, named as `module:function` or `file.py:function`, and its inputs, written as a Python list."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from evolvingdp.audit.empirical.auditor import Bound, Kind, Mechanism
from evolvingdp.core.checks import ParameterError


def load(target: str) -> Mechanism:
    """The function that `target` names.  Raises ParameterError, one line, where there is none, whatever its file does."""
    place, _, name = target.partition(":")
    if not place or not name:
        raise ParameterError(f"mechanism must be written as module:function or file.py:function, got {target!r}")
    try:
        module = _from_file(Path(place)) if place.endswith(".py") else _from_name(place)
    except (ImportError, OSError) as error:
        raise ParameterError(f"mechanism {target!r} cannot be imported: {' '.join(str(error).split())}") from None
    except (Exception, SystemExit) as error:
        raise ParameterError(f"mechanism {target!r} cannot be imported: {_told(error)}") from None
    function = getattr(module, name, None)
    if not callable(function):
        raise ParameterError(f"mechanism must be a function (input, rng) -> output; {place} has none named {name!r}")
    mechanism: Mechanism = function
    return mechanism


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}".rstrip(": ")


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
        except (Exception, SystemExit) as error:
            self.failures += 1
            self.first = self.first or f"{_told(error)}, for {value!r}"
            return Kind(f"raises {type(error).__name__}")

    @property
    def fails_always(self) -> bool:
        return 0 < self.calls == self.failures

    def sentence(self) -> str:
        """How often it raised; empty if never."""
        if not self.failures:
            return ""
        return f"it raised in {self.failures} of {self.calls} runs, counted as outputs of their own; first {self.first}"


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


def inputs_of(text: str) -> list[Any]:
    """The inputs from `0, 1` or `[(0, 1), (1, 1)]`.  Raises ParameterError unless two different literals or more."""
    try:
        value = ast.literal_eval(text)
        repr(value)  # of an integer of thousands of digits there is none
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        raise ParameterError(f"inputs must be Python literals, such as '0, 1', got {text[:60]!r}") from None
    if not isinstance(value, list | tuple) or len(value) < 2:
        raise ParameterError(f"inputs must be two neighbouring inputs or more, such as '0, 1', got {text!r}")
    for place, one in enumerate(value):
        if one in value[:place]:
            raise ParameterError(f"inputs must differ from each other, got {one!r} twice in {text!r}")
    return list(value)


def sentence(bound: Bound) -> str:
    """What an audit has found, in words."""
    first, second = bound.hits
    delta = f" at delta = {bound.delta:g}" if bound.delta else ""
    return (
        f"epsilon >= {bound.epsilon:.3f}{delta}, with {bound.confidence:.6g} confidence: of {bound.runs} runs each, "
        f"{bound.event} happened {first} times for {bound.inputs[0]!r} and {second} times for {bound.inputs[1]!r}"
    )
