"""Generators whose draws are chosen: what a mechanism's own sampler asks for, and what the mechanism makes of the answer.

A `Chosen` is handed to a mechanism instead of a generator. It notes law and scale of each block of noise as the sampler
hands them over, and moves the noise by what an audit wants to hide.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evolvingdp.audit.exact.integers import Steps
from evolvingdp.core import noise

Array = NDArray[np.float64]
LAPLACE, NORMAL = "laplace", "normal"


class Drawn(NamedTuple):
    """What a sampler asks for: density or mass ~ exp(-|z| / scale), or N(0, scale^2)."""

    law: str
    scale: float


class Chosen:
    """Noise of `rng`, or 0 without one; block k is moved by `moved[k]`, a sequence that may be shorter than the block.

    `asked` has an item a block. `children` are those of `spawn`, and child i is moved by `moved[i]`.
    """

    def __init__(self, rng: np.random.Generator | None = None, moved: Sequence[Any] = ()) -> None:
        self.asked: list[Drawn] = []
        self.children: list[Chosen] = []
        self._rng, self._moved, self._steps = rng, moved, Steps(0, 0, False)

    def spawn(self, count: int) -> list[Chosen]:
        own = [None] * count if self._rng is None else self._rng.spawn(count)
        moved = [*self._moved, *[()] * (count - len(self._moved))]
        self.children = [Chosen(rng, part) for rng, part in zip(own, moved, strict=True)]
        return self.children

    def random(self) -> float:
        return 0.0  # the place of a median: the first bin, whatever the data

    def laplace(self, loc: float, scale: float, size: int | None = None) -> Any:
        return loc + (self._block(LAPLACE, scale, 1)[0] if size is None else self._block(LAPLACE, scale, size))

    def normal(self, loc: float, scale: float, size: int) -> Array:
        return loc + self._block(NORMAL, scale, size)

    def integers(self, low: int, high: int | None = None, size: int = 1) -> Any:
        """The steps of the discrete sampler, answered so that it draws the whole numbers next to this block."""
        if high is not None and self._steps.sized != 1:  # the first step of a block; the signs are the second
            wanted = np.rint(self._block(LAPLACE, high / noise._GRID, size)).astype(np.int64)
            whole, rest = np.divmod(np.abs(wanted) * noise._GRID, high)
            self._steps = Steps(rest, whole, wanted < 0)
        return self._steps.integers(low, high, size)

    def _block(self, law: str, scale: float, size: int) -> Array:
        block = np.zeros(size) if self._rng is None else getattr(self._rng, law)(0.0, scale, size)
        if len(self.asked) < len(self._moved):
            part = np.asarray(self._moved[len(self.asked)], dtype=float)
            block[: len(part)] += part
        self.asked.append(Drawn(law, float(scale)))
        return block
