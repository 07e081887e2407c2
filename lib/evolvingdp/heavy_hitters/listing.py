"""A search: the descent of a tree of prefixes, what it holds while it descends, and the list of words that it returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evolvingdp.core import checks
from evolvingdp.core.sampling import skewed_isf
from evolvingdp.heavy_hitters.count_sketch import FreqOracle, Sketch
from evolvingdp.heavy_hitters.word_tree import Nodes, TooManyCandidatesError, WordTree

if TYPE_CHECKING:  # whose import takes as long as a plan
    import pandas as pd

# level, parents, how many children they have -> the children that survive, their estimates, and the level's error and cut
Ask = Callable[[int, Nodes, int], tuple[Nodes, NDArray[Any], float, float]]
_BY_CHANCE = 200  # words that nobody holds may pass a level: each has thousands of children to ask for


def descend(tree: WordTree, ask: Ask, max_candidates: int) -> tuple[Nodes, NDArray[Any], list[dict[str, Any]]]:
    """From the root level by level to the leaves, below what survives: leaves, their estimates, and a row for each level.

    Raises TooManyCandidatesError rather than ask for more than `max_candidates` at one level.
    """
    nodes, estimates, path = tree.root, np.zeros(0), []
    for level in range(tree.depth):
        asked = len(nodes) * tree.fan(level)
        if asked > max_candidates:
            raise TooManyCandidatesError(
                f"level {level} would ask for {asked} candidates below {len(nodes)} survivors, max_candidates is "
                f"{max_candidates}: raise threshold or max_candidates, or take smaller steps"
            )
        nodes, estimates, error, cut = ask(level, nodes, asked)
        path.append({"level": level, "candidates": asked, "survivors": len(nodes), "standard_error": error, "cut": cut})
    return nodes, estimates, path


def adaptive_cut(threshold: float, error: float, asked: float = 0.0, held: float = 0.0, skew: float = 0.0) -> float:
    """A cut above the last level at which a word at the threshold is rarely lost, whose error is `held` if larger, and few
    words that nobody holds pass: one in 44, and of `asked` words about 200, whose errors have that skewness."""
    few = skewed_isf(_BY_CHANCE / asked, skew) if asked > _BY_CHANCE else 0.0
    return max(threshold - 3 * max(error, held), max(2.0, few) * error)


@dataclass(frozen=True)
class Reports:
    """What the server holds: a sketch of each level, and one of whole words if all report those.  Merge with `+`."""

    levels: tuple[Sketch, ...]
    final: Sketch | None = None

    def __add__(self, other: Reports) -> Reports:
        if len(self.levels) != len(other.levels) or (self.final is None) != (other.final is None):
            raise ValueError(f"reports must be of one plan to be merged, got {self} and {other}")
        final = None if self.final is None or other.final is None else self.final + other.final
        return Reports(tuple(a + b for a, b in zip(self.levels, other.levels, strict=True)), final)

    def __str__(self) -> str:
        return _kinds(self.levels, self.final)

    def check(self, levels: Sequence[FreqOracle], final: FreqOracle | None, n_users: int, both: bool = True) -> None:
        """Raise ValueError unless these are what `n_users` users reported to these oracles: to a level, and where there is a
        final phase to it, or to one of the `both`."""
        checks.integer_at_least(0, n_users=n_users)
        if str(self) != (wanted := _kinds(levels, final)):
            raise ValueError(f"reports must be {wanted}, got {self}")
        for oracle, sketch in zip((*levels, final), (*self.levels, self.final), strict=True):
            if oracle and sketch:
                oracle.check(sketch)
        sent, last = sum(sketch.n_reports for sketch in self.levels), self.final.n_reports if self.final else 0
        if (sent, last) != (n_users, n_users) if final and both else sent + last != n_users:
            also = f" and {last} to the final phase" if final else ""
            raise ValueError(f"n_users must be the number of users who reported, {sent} to the levels{also}, got {n_users}")


def _kinds(levels: Sequence[object], final: object | None) -> str:
    return f"{len(levels)} sketches of levels and {0 if final is None else 1} of a final phase"


@dataclass(frozen=True)
class HeavyHitters:
    """The public result: columns word, estimate, standard_error (in users), most frequent first; and the search's path."""

    words: pd.DataFrame
    path: pd.DataFrame = field(compare=False)  # a row per level: candidates asked for, survivors, error, cut

    @classmethod
    def of(
        cls,
        words: list[str],
        estimates: NDArray[np.float64],
        errors: NDArray[np.float64],
        path: list[dict[str, Any]],
    ) -> HeavyHitters:
        """The list in the order of the estimates, largest first; ties as in the alphabet, which tells nothing of users."""
        import pandas as pd

        order = sorted(range(len(words)), key=lambda place: (-estimates[place], words[place]))
        ordered = {"word": [words[place] for place in order], "estimate": estimates[order], "standard_error": errors[order]}
        return cls(pd.DataFrame(ordered), pd.DataFrame(path))
