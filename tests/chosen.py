"""A generator whose Laplace and normal draws are chosen: 0, or moved by what a test asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class Drawn(NamedTuple):
    law: str
    scale: float


class Chosen:
    """Block k of its draws is `moved[k]`, which may be shorter, and 0 beyond; child i of `spawn` is moved by `moved[i]`.

    `asked` has law and scale of each block.
    """

    def __init__(self, moved: Sequence[Any] = ()) -> None:
        self.asked: list[Drawn] = []
        self.children: list[Chosen] = []
        self._moved = moved

    def spawn(self, count: int) -> list[Chosen]:
        self.children = [Chosen(part) for part in [*self._moved, *[()] * (count - len(self._moved))]]
        return self.children

    def laplace(self, loc: float, scale: float, size: int) -> np.ndarray:
        return loc + self._block("laplace", scale, size)

    def normal(self, loc: float, scale: float, size: int) -> np.ndarray:
        return loc + self._block("normal", scale, size)

    def _block(self, law: str, scale: float, size: int) -> np.ndarray:
        block = np.zeros(size)
        if len(self.asked) < len(self._moved):
            part = np.asarray(self._moved[len(self.asked)], dtype=float)
            block[: len(part)] = part
        self.asked.append(Drawn(law, scale))
        return block
