"""Frequent texts that nobody listed beforehand: a round in which each user reports once, for `core.exchange`.

**Computes** a list of the most frequent texts, of any length up to a stated one and in any script, with intervals.

**Guarantee.** Pure epsilon-local differential privacy per user, who reports once; neighbouring inputs are any two texts.
What a report says in clear (its level and its hash function) is drawn without looking at the text.

**Error.** A text that `found_from` users hold is listed about every other time, one that a fifth more hold nearly always.
Each level of the tree has an equal share of the users, so that this grows with the root of how long a text may be.

**Source.** TreeHist of Bassily et al. (2020) with the reports of `sketches.projective` and this chapter's joint fit.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from evolvingdp.core import checks
from evolvingdp.core.exchange import Round
from evolvingdp.core.seeds import stream
from evolvingdp.heavy_hitters.listing import Reports
from evolvingdp.heavy_hitters.tree_hist import Protocol, TreeHist
from evolvingdp.heavy_hitters.word_tree import WordTree

if TYPE_CHECKING:  # whose import takes as long as a plan
    import pandas as pd

_FORM = struct.Struct(">BHI")  # of a report: level, row, point
_ERRORS = 5.5  # standard errors of a level: few texts are lost at any, and few of thousands that nobody holds pass


@checks.plain
@dataclass(frozen=True)
class Texts(Round):
    """What users and servers agree on before anybody reports: `Client(Texts(...))` sends, `Server(Texts(...))` adds up."""

    form: ClassVar[str] = "points in Singer's order"
    epsilon: float  # of a user, who reports once
    public: str  # names the collection, and draws its public hash functions
    longest: int = 16  # bytes of a text in UTF-8
    rows: int = 16  # hash functions of a level
    cells: int = 1 << 12  # of a row, at least

    def __post_init__(self) -> None:
        checks.positive(epsilon=self.epsilon)
        object.__setattr__(self, "epsilon", float(self.epsilon))  # 1 and 1.0 are one round
        checks.integer_at_least(2, longest=self.longest, cells=self.cells)
        checks.integer_at_least(1, rows=self.rows)
        if self.rows >= 2**16:
            raise ValueError(f"rows must be below 2^16, which a report has room for, got {self.rows}")
        if not isinstance(self.public, str) or not self.public:
            raise ValueError(f"public must be a string that names the collection, got {self.public!r}")
        _ = self._settings

    @cached_property
    def _settings(self) -> TreeHist:
        tree = WordTree((1,) * self.longest, self.longest, "bytes", shorter=True)
        return TreeHist(tree, self.epsilon, 1.0, self.rows, self.cells, 1 / self.longest)

    @cached_property
    def protocol(self) -> Protocol:
        """The search with its hash functions, which `public` draws."""
        return self._settings.draw_hashes(stream(0, "hash functions of a search for texts", self.public))

    @property
    def size(self) -> int:
        return _FORM.size

    @property
    def width(self) -> int:
        return math.prod(self._shape)

    def found_from(self, n_users: int, heaviest: float = 0.0) -> float:
        """How many users an estimate must show for its text to be listed, where `n_users` report and the most frequent text
        has `heaviest` of them: what shares a cell with that errs by how its users fell on levels and rows."""
        checks.integer_at_least(1, n_users=n_users)
        error = max(self._settings.level_error(level, n_users) for level in range(self.longest))
        return _ERRORS * math.hypot(error, math.sqrt(max(0.0, heaviest) * self.longest))

    def encode(self, value: str, rng: np.random.Generator) -> bytes:
        self._settings.tree.encode([value])
        public, private = rng.spawn(2)  # what is published of one says nothing about the other
        level, row = int(public.integers(0, self.longest)), int(public.integers(0, self.rows))
        return _FORM.pack(level, row, self.point(value, level, row, private))

    def point(self, text: str, level: int, row: int, private: np.random.Generator) -> int:
        """What a user of this level and row reports: its secret part."""
        oracle, tree = self.protocol.oracles[level], self._settings.tree
        return int(oracle.report(tree.prefixes(tree.encode([text]), level), np.array([row]), private)[0])

    def add_up(self, payloads: list[bytes]) -> NDArray[np.int64]:
        told, shape = np.array([_FORM.unpack(each) for each in payloads], dtype=np.int64), self._shape
        if (wrong := (told >= shape).any(axis=1)).any():
            place = int(wrong.argmax())
            raise ValueError(
                f"reports must have level, row and point below {', '.join(map(str, shape))}, "
                f"got {told[place].tolist()} in place {place}"
            )
        return np.bincount(np.ravel_multi_index(tuple(told.T), shape), minlength=self.width)

    @property
    def _shape(self) -> tuple[int, ...]:
        return (self.longest, *self.protocol.oracles[0].shape)

    def table(self, sums: NDArray[np.int64], n_reports: int, top: int = 100, coverage: float = 0.95) -> pd.DataFrame:
        """Empty where no text stands out; intervals are normal, of each text by itself."""
        levels = sums.reshape(self._shape)
        held = [
            replace(oracle.empty(), sums=own, n_reports=int(own.sum()))
            for oracle, own in zip(self.protocol.oracles, levels, strict=True)
        ]
        settings = replace(self._settings, threshold=self.found_from(n_reports))
        words = replace(self.protocol, settings=settings).search(Reports(tuple(held)), n_reports).words
        if len(words):
            words = words[words.estimate >= self.found_from(n_reports, words.estimate.max())]
        share, half = words.estimate / n_reports, ndtri((1 + coverage) / 2) * words.standard_error / n_reports
        return words[["word"]].assign(estimate=share, low=share - half, high=share + half).head(top)
