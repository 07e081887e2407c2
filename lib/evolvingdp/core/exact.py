"""Exact sums: elements are whole numbers of steps of a public grid, so that no rounding of a sum depends on what is in it.

In floating point a running sum may move by more than its element does: of 365 daily counts near a million in float32 by up
to 64 where one count moves by 1, while the noise pays for 1.  Whether an element is refused depends on itself alone: a
refusal that read the sum would tell it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evolvingdp.core import checks


@dataclass(frozen=True)
class Grid:
    """The grid for at most `count` elements of which one changes by at most `sensitivity`: about 2^-20 of it, or integers.

    All sums are exact, as doubles or as integers of 64 bits.
    """

    sensitivity: float
    count: int
    integer: bool = False

    def __post_init__(self) -> None:
        checks.positive(sensitivity=self.sensitivity)
        checks.integer_at_least(1, count=self.count)
        if not self.step:
            raise ValueError(f"sensitivity must be at least 1e-300, so that floats have a grid, got {self.sensitivity!r}")

    @property
    def step(self) -> float:
        """A power of two."""
        return 1.0 if self.integer else math.ldexp(1.0, math.frexp(self.sensitivity)[1] - 21)

    @property
    def moved(self) -> float:
        """What an element on the grid moves by at most: an even number of steps, by which halves round alike."""
        return self.sensitivity if self.integer else 2 * self.step * math.ceil(self.sensitivity / self.step / 2)

    @property
    def largest(self) -> float:
        """Of an element's absolute value, so that `count` of them have an exact sum."""
        return self.step * (2**60 if self.integer else 2**53) / self.count

    def steps(self, elements: ArrayLike, name: str = "elements") -> NDArray[np.int64]:
        """`elements` (n,), n <= count, in steps.  Raises TypeError, ValueError with the first that cannot be."""
        given = np.asarray(elements)
        if given.size and (given.dtype.kind not in "biuf" or given.dtype.itemsize > 8):
            raise TypeError(f"{name} must be numbers of at most 64 bits, got {given.dtype}")
        if given.ndim != 1 or len(given) > self.count:
            raise ValueError(f"{name} must be one-dimensional with at most {self.count} entries, got shape {given.shape}")
        values = given.astype(np.float64)
        if not np.isfinite(values).all():
            raise ValueError(f"{name} must be finite, got {values[~np.isfinite(values)][0]}")
        if (large := ~(np.abs(values) <= self.largest)).any():
            raise ValueError(self._too_large(name, values[large][0]))
        if not self.integer:
            return np.rint(values / self.step).astype(np.int64)
        if given.dtype.kind == "f" and (values != np.rint(values)).any():
            raise ValueError(f"{name} must be integers where noise is, got {values[values != np.rint(values)][0]}")
        return given.astype(np.int64)

    def steps_of(self, element: float, name: str = "element") -> int:
        """One element in steps; raises as `steps` does."""
        checks.number(**{name: element})
        element = element.item() if isinstance(element, np.generic) else element  # else a bound is rounded to its type
        checks.finite(**{name: element + 0})
        if not abs(element) <= self.largest:
            raise ValueError(self._too_large(name, element))
        if not self.integer:
            return round(float(element) / self.step)
        if element != round(element):
            raise ValueError(f"{name} must be an integer where noise is, got {element!r}")
        return int(element)

    def _too_large(self, name: str, value: float) -> str:
        kind = "integer noise" if self.integer else f"sensitivity {self.sensitivity:g}"
        advice = "fewer elements" if self.integer else "fewer elements, or integer=True"
        return (
            f"{name} must lie within +-{self.largest:.6g}, so that {self.count} have an exact sum with {kind}, "
            f"got {value:.6g}; {advice} allow more"
        )
