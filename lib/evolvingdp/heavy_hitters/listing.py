"""What a search holds, and what it returns: sketches of reports, and a list of words with estimates and standard errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

from evolvingdp.heavy_hitters.count_sketch import Sketch

_BY_CHANCE = 200  # words that nobody holds may pass a level: each has thousands of children to ask for


@dataclass(frozen=True)
class Reports:
    """What the server holds: a sketch per level (one of all levels where they share it), and one of whole words after a
    final phase.  Merge with `+`.
    """

    levels: tuple[Sketch, ...]
    final: Sketch | None

    def __add__(self, other: Reports) -> Reports:
        if len(self.levels) != len(other.levels) or (self.final is None) != (other.final is None):
            raise ValueError(f"reports must be of one plan to be merged, got {self} and {other}")
        final = None if self.final is None or other.final is None else self.final + other.final
        return Reports(tuple(a + b for a, b in zip(self.levels, other.levels, strict=True)), final)

    def __str__(self) -> str:
        return f"{len(self.levels)} sketches of levels and {0 if self.final is None else 1} of a final phase"


@dataclass(frozen=True)
class HeavyHitters:
    """The public result: columns word, estimate, standard_error (in users), most frequent first; and the search's path."""

    words: pd.DataFrame
    path: pd.DataFrame = field(compare=False)  # a row per level: candidates asked for, survivors, dropped, error, cut

    @classmethod
    def of(
        cls,
        words: list[str],
        estimates: NDArray[np.float64],
        errors: NDArray[np.float64],
        path: list[dict[str, Any]],
    ) -> HeavyHitters:
        """The list in the order of the estimates, largest first; ties as in the alphabet, which tells nothing of users."""
        order = sorted(range(len(words)), key=lambda place: (-estimates[place], words[place]))
        ordered = {"word": [words[place] for place in order], "estimate": estimates[order], "standard_error": errors[order]}
        return cls(pd.DataFrame(ordered), pd.DataFrame(path))


def adaptive_cut(threshold: float, error: float, asked: float = 0.0) -> float:
    """A cut above the last level at which a word at the threshold is rarely lost, and few words that nobody holds pass: one
    in 44, and of `asked` words about 200."""
    few = float(ndtri(1 - _BY_CHANCE / asked)) if asked > _BY_CHANCE else 0.0
    return max(threshold - 3 * error, max(2.0, few) * error)
