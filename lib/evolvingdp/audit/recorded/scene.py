"""A scene: one mechanism in many settings on one seed; and a fingerprint of all that it returned.

The ledger's rows verify the law of shipped code in some settings, and nothing in the others. Scenes go through all options,
entry points and formulas of calibration, and verify nothing: their fingerprints, recorded when the rows had been verified,
show that the code still does what it did. Whoever changes it on purpose looks at what has changed, and records anew
(`fingerprints`).

A fingerprint has one part that must be equal (structure, names, integers, which numbers are finite, what was refused) and
sums of the floats under two systems of weights, which must agree to nine digits of the largest such sum: the last digits of
a logarithm are the machine's. Numpy's generators are those of the locked version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evolvingdp.core.seeds import stream

Scene = Callable[[np.random.Generator], Iterable[Any]]  # all that is yielded is recorded
DIGITS, OF_A_SEARCH = 1e-9, 1e-5  # of the sum of sizes: what must agree
_UNIT = 1e-6
_SEED = 20_16


class Fingerprint(NamedTuple):
    """How many outputs; a digest of what must be equal; of the floats the sum of sizes, and two weighted sums."""

    outputs: int
    exact: str
    size: float
    first: float
    second: float


def fingerprint(name: str, scene: Scene) -> Fingerprint:
    """Of all that `scene` of this `name` returns on its own seed."""
    exact, floats, outputs = hashlib.sha256(), _Sums(), 0
    for place, output in enumerate(scene(stream(_SEED, name))):
        outputs += _add(output, f"{place}", exact, floats)
    return Fingerprint(outputs, exact.hexdigest()[:12], *floats.rounded())


def same(one: Fingerprint, other: Fingerprint, agrees: float = DIGITS) -> bool:
    far = max(abs(one.size - other.size), abs(one.first - other.first), abs(one.second - other.second))
    return (one.outputs, one.exact) == (other.outputs, other.exact) and far <= agrees * one.size


def outcome(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What `call` returns, or that it refuses its arguments."""
    try:
        return call(*args, **kwargs)
    except (ValueError, TypeError, LookupError, ArithmeticError) as error:
        return f"refused: {type(error).__name__}"


def taken(call: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    """Whether `call` takes its arguments, where what it returns is a state."""
    told = outcome(call, *args, **kwargs)
    return told if isinstance(told, str) else "taken"


@contextmanager
def in_blocks(*sizes: tuple[ModuleType, dict[str, int]]) -> Iterator[None]:
    """Modules with other values of these constants, sizes of blocks, so that few users or keys fill several; code of many
    users has no other way. Raises AttributeError where a module has no such constant."""
    before = [(module, {name: getattr(module, name) for name in named}) for module, named in sizes]
    try:
        for module, named in sizes:
            vars(module).update(named)
        yield
    finally:
        for module, named in before:
            vars(module).update(named)


class _Sums:
    """Sums of all floats of a scene, each with weights by its place."""

    def __init__(self) -> None:
        self._parts: list[NDArray[np.float64]] = []

    def add(self, numbers: NDArray[np.float64]) -> None:
        self._parts.append(np.arcsinh(numbers / _UNIT))  # so that small numbers are seen beside large ones

    def rounded(self) -> tuple[float, float, float]:
        numbers = np.concatenate([np.zeros(0), *self._parts])
        places = np.arange(len(numbers))
        sums = np.abs(numbers).sum(), np.cos(places + 1.0) @ numbers, np.cos(1.618 * places) @ numbers
        first, second, third = (float(f"{total:.11g}") for total in sums)
        return first, second, third


def _add(output: Any, path: str, exact: Any, floats: _Sums) -> int:
    """Structure, names and integers go into `exact`, floats into `floats`; how many they are."""
    outputs = 0
    for where, leaf in _leaves(output, path):
        values = np.asarray(leaf)
        outputs += values.size
        exact.update(f"{where}:{values.dtype.kind}{values.shape}".encode())
        if values.dtype.kind == "f":
            flat = values.astype(float).ravel()
            finite = np.isfinite(flat)
            exact.update(flat[~finite].tobytes() + np.packbits(finite).tobytes())
            floats.add(flat[finite])
        elif values.dtype.kind in "biu":
            exact.update(values.astype("<u8" if values.dtype.kind == "u" else "<i8").tobytes())
        elif values.dtype.kind in "US" or leaf is None or isinstance(leaf, int):
            exact.update(repr(values.tolist()).encode())
        else:
            raise TypeError(f"an output must be made of numbers, text and what holds them, got {leaf!r}")
    return outputs


def _leaves(output: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(output, pd.DataFrame):
        output = {str(name): column.to_numpy() for name, column in output.items()}
    if isinstance(output, pd.Series):
        output = {"index": output.index.to_numpy(), "values": output.to_numpy()}
    if is_dataclass(output) and not isinstance(output, type):
        output = {field.name: getattr(output, field.name) for field in fields(output) if not field.name.startswith("_")}
    if isinstance(output, np.ndarray) and output.dtype == object:
        output = output.tolist()
    if isinstance(output, Mapping):
        for name, value in output.items():
            yield from _leaves(value, f"{path}.{name}")
    elif isinstance(output, (set, frozenset)):
        yield f"{path}.set", str(sorted(map(repr, output)))
    elif isinstance(output, (str, bytes, np.ndarray)) or not isinstance(output, Iterable):
        yield path, output
    else:
        items = list(output)
        if items and all(isinstance(item, (float, np.floating)) for item in items):
            yield path, np.array(items, dtype=float)
        else:
            yield f"{path}.length", str(len(items))
            for place, item in enumerate(items):
                yield from _leaves(item, f"{path}.{place}")
