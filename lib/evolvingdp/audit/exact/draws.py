"""The law of what shipped code draws, by running it on all draws: uniform integers, and uniform numbers on a grid.

A uniform number is drawn as the middle of one of k cells, each with probability 1 / k. That is exact where code compares it
with multiples of 1 / k: choose an epsilon for which its probabilities are such multiples.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Answered:
    """A generator whose draws are `answers`, in turn, and 0 after them; `spans` are how many values each could have had."""

    def __init__(self, answers: Sequence[int], grid: int) -> None:
        self._left, self._grid = list(reversed(answers)), grid
        self.drawn: list[int] = []
        self.spans: list[int] = []

    def random(self, size: Any = None) -> NDArray[np.float64]:
        return (self._draw(np.full(() if size is None else size, self._grid)) + 0.5) / self._grid

    def integers(self, low: ArrayLike, high: ArrayLike, size: Any = None, dtype: Any = np.int64) -> NDArray[Any]:
        first, last = np.asarray(low), np.asarray(high)
        spans = np.broadcast_to(last - first, np.broadcast(first, last).shape if size is None else size)
        return np.asarray(first + self._draw(spans)).astype(dtype)

    def _draw(self, spans: NDArray[np.integer]) -> NDArray[np.int64]:
        answers = [self._left.pop() if self._left else 0 for _ in range(spans.size)]
        self.drawn += answers
        self.spans += [int(span) for span in spans.flat]
        return np.array(answers, dtype=np.int64).reshape(spans.shape)


def law_of(run: Callable[[Any], Hashable], grid: int) -> dict[Hashable, float]:
    """The law of what `run` returns when it is handed a generator: it is run once for each sequence of draws."""
    law: Counter[Hashable] = Counter()
    answers: list[int] = []
    while True:
        rng = Answered(answers, grid)
        law[run(rng)] += 1 / math.prod(rng.spans)  # type: ignore[assignment]
        answers, spans = rng.drawn, rng.spans
        while answers and answers[-1] + 1 == spans[-1]:
            answers.pop()
            spans.pop()
        if not answers:
            return dict(law)
        answers[-1] += 1
